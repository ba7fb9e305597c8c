"""From a plan to the files of one profile launch, ending in good order however it is ended."""

from pathlib import Path

from castmates.errors import CastmatesError
from castmates.pipeline.measure_block import measure
from castmates.runner.profiles import record
from castmates.study.plan_text import Launch


def profile_launch(launch: Launch, folder: Path, cache: Path, owner: int | None = None) -> None:
    """Trace the lead of a launch in its scenes; the files are written into `folder`."""
    measure(launch, folder, cache, owner, record.write)


def planned(launch: Launch | None, name: str, study: str) -> Launch:
    """The launch, where the plan of the study has it."""
    if launch is None:
        raise CastmatesError(
            f"the plan of the study '{study}' has no profile launch '{name}'; if the study was edited while the sweep "
            "was starting, run the same command again."
        )
    return launch
