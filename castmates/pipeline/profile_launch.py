"""From a plan to the files of one profile launch, ending in good order however it is ended."""

from pathlib import Path

from castmates.pipeline.measure_launch import measure
from castmates.runner.profiles import record
from castmates.study.plan_text import Task


def profile_launch(task: Task, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Trace the lead of a launch in its scenes; the files are written into `folder`."""
    measure(task, folder, cache, owner, record.write)
