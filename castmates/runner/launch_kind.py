"""What a kind of launch does besides what every launch does; each has its own outcome and its own record."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from castmates.protocols import Say
from castmates.runner.outcome import Outcome
from castmates.runner.processes.launch import Start
from castmates.runner.staging import LiveStage
from castmates.study.spec import Launch

Kept = TypeVar("Kept", bound=Outcome)


class LaunchKind(Generic[Kept]):
    """One launch of a kind, from its members' start to its end."""

    Outcome: ClassVar[type[Outcome]]
    reading = ""  # what is said while what was recorded is read, which may take long
    keeps_logs = True  # where the launch failed

    @staticmethod
    def name_of(launch: Launch) -> str:
        """What the lines of the launch begin with."""
        return f"launch {launch.path}"

    def __init__(self, outcome: Kept, folder: Path) -> None:
        self.outcome, self.launch, self.folder = outcome, outcome.launch, folder

    def helpers(self, scratch: Path, cache: Path) -> list[Start]:  # noqa: ARG002
        """Programs that stand beside the members; they are known before the members start."""
        return []

    def needed_bytes(self) -> int:
        """How much memory the helpers take."""
        return 0

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give members, before they start, what this kind asks of them; the lead is the first."""

    def ranges_of(self, start: Start) -> int:  # noqa: ARG002
        """How many annotations of a member are kept one by one."""
        return self.launch.design.counters.ranges

    def started(self, stage: LiveStage, name: str) -> None:
        """A member or a helper has been started."""

    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for; all are ready, and frozen."""
        raise NotImplementedError

    @contextmanager
    def guarded(self, stage: LiveStage) -> Iterator[None]:  # noqa: ARG002
        """Whatever happens, what members leave is found in the end."""
        yield

    def abandon(self) -> None:
        """Nothing will be written: remove what members left for it."""

    @staticmethod
    def write(outcome: Kept, folder: Path) -> None:
        """Write what the launch leaves into its folder."""
        raise NotImplementedError

    @staticmethod
    def words(outcome: Kept) -> str:
        """Say in a line what a launch that did not fail came to."""
        raise NotImplementedError
