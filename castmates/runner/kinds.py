"""The kinds of launches: one that measures, one that profiles, one that traces."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from castmates.protocols import Say
from castmates.runner import record
from castmates.runner.after_rounds.measure import measure_after_rounds
from castmates.runner.outcome import LaunchKind, Measured
from castmates.runner.processes.launch import Start
from castmates.runner.profiles import asking
from castmates.runner.rounds.hardware import processor_record
from castmates.runner.rounds.round import measure_rounds
from castmates.runner.staging import LiveStage
from castmates.study.spec import Launch


class Measure(LaunchKind[Measured]):
    """Rounds of scenes are measured."""

    Outcome = Measured

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give the lead its page."""
        if self.launch.design.counters.profile:
            asking.offer(members[0], channels)

    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for."""
        measure_rounds(self.outcome, stage, say)
        self.outcome.processor = processor_record(stage.hardware.allocator, self.launch)
        measure_after_rounds(self.outcome, stage, say)

    @staticmethod
    def write(outcome: Measured, folder: Path) -> None:
        """Write the files of the launch."""
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


def kind_of(launch: Launch) -> type[LaunchKind[Any]]:
    """Return the kind of a launch; one that measures need not import what traces."""
    if launch.design.profiling is not None:
        from castmates.runner.profiles.kind import Profile

        return Profile
    if launch.design.tracing is not None:
        from castmates.runner.tracing.kind import Trace

        return Trace
    return Measure
