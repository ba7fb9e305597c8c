"""From a plan to the files of one profile launch, ending in good order however it is ended."""

from pathlib import Path

from castmates.pipeline.measure_block import in_plan_of, measure
from castmates.runner.profiles import record
from castmates.study.plan_text import Launch


def profile_launch(launch: Launch, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Trace the lead of a launch in its scenes; the files are written into `folder`."""
    measure(launch, folder, cache, owner, record.write)


def planned(launch: Launch | None, name: str, study: str) -> Launch:
    """The launch, where the plan of the study has it."""
    return in_plan_of(study, launch, f"profile launch '{name}'")
