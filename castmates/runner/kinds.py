"""The kinds of launches: what each does besides what every launch does. Each has its own outcome and its own record."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from castmates.protocols import Say
from castmates.runner.outcome import Measured, Outcome
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


class Measure(LaunchKind[Measured]):
    """Rounds of scenes are measured."""

    Outcome = Measured

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give the lead its page."""
        if self.launch.design.counters.profile:
            from castmates.runner.profiles import asking

            asking.offer(members[0], channels)

    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for."""
        from castmates.runner.after_rounds.measure import measure_after_rounds
        from castmates.runner.rounds.measure import measure_rounds
        from castmates.runner.rounds.processor_record import processor_record

        measure_rounds(self.outcome, stage, say)
        self.outcome.processor = processor_record(stage.hardware.allocator, self.launch)
        measure_after_rounds(self.outcome, stage, say)

    @staticmethod
    def write(outcome: Measured, folder: Path) -> None:
        """Write the files of the launch."""
        from castmates.runner import record

        record.write(outcome, folder)

    @staticmethod
    def words(outcome: Measured) -> str:
        """Say what it came to."""
        if not outcome.rounds:
            return (
                "measured, but every round has a rejected window; `castmates sweep --retry` measures launches like "
                "this again"
            )
        rejected = sum(bool(window.reasons) for window in outcome.windows)
        return f"measured {len(outcome.windows)} windows, {rejected} rejected, in {outcome.total_seconds:.0f} s"


def kind_of(launch: Launch) -> type[LaunchKind]:
    """Return the kind of a launch; one that measures need not import what traces."""
    if launch.design.profiling is not None:
        from castmates.runner.profiles.kind import Profile

        return Profile
    if launch.design.tracing is not None:
        from castmates.runner.tracing.kind import Trace

        return Trace
    return Measure
