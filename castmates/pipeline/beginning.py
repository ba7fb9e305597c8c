"""What is done once, before the first job of a sweep."""

from collections.abc import Mapping
from typing import Any

from castmates.pipeline.lock import hold_sweep_lock
from castmates.pipeline.planned_sweep import PlannedSweep
from castmates.results.asked import remember_launches


def begin(sweep: PlannedSweep, config: Mapping[str, Any], has_jobs_elsewhere: bool) -> None:
    """Keep other sweeps away from these results, and leave for jobs on other nodes what they need."""
    project = sweep.project
    hold_sweep_lock(project.results)
    if "launches" in config:
        remember_launches(project.results, project.study.budget.launches)
    if has_jobs_elsewhere:
        sweep.leave_for_jobs()
