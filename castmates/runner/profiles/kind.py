"""A profile launch: steps of the lead are traced in each scene."""

from collections.abc import Sequence
from pathlib import Path

from castmates.machine.topology import read_topology
from castmates.protocols import Say
from castmates.runner.outcome import LaunchKind
from castmates.runner.processes import starts
from castmates.runner.processes.launch import Start
from castmates.runner.profiles import record, rounds
from castmates.runner.profiles.rounds import TRACES, Profiled, Roofs, profile_rounds, profiling_of, roofs_of
from castmates.runner.staging import LiveStage
from castmates.study.profile_launches import is_logged
from castmates.study.spec import Launch


class Profile(LaunchKind[Profiled]):
    """In the first one, and under oneDNN's log, the roofs of the lead's CPUs are measured, too."""

    Outcome = Profiled
    reading = "reading traces"
    _roofs: Roofs | None = None

    @staticmethod
    def name_of(launch: Launch) -> str:
        """What the lines of the launch begin with."""
        return f"profile launch {launch.path}"

    def helpers(self, scratch: Path, cache: Path) -> list[Start]:
        """What measures roofs."""
        if self.launch.number > 1 and not is_logged(self.launch):
            return []
        lead, native = self.launch.cohort.lead, starts.native_programs(self.launch.cohort, cache)
        self._roofs = roofs_of(lead, read_topology(), native, scratch)
        return self._roofs.starts

    def needed_bytes(self) -> int:
        """How much memory that takes."""
        return self._roofs.bytes if self._roofs else 0

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give the lead its page."""
        rounds.offer(members[0], channels, self.folder / TRACES, primitives=is_logged(self.launch))

    def ranges_of(self, start: Start) -> int:
        """How many annotations are kept one by one."""
        return profiling_of(self.launch).ranges if start.name == self.launch.cohort.lead.name else 0

    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for."""
        profile_rounds(self.outcome, stage, self.folder / TRACES, say, self._roofs)

    @staticmethod
    def write(outcome: Profiled, folder: Path) -> None:
        """Write the files of the launch."""
        record.write(outcome, folder)

    @staticmethod
    def words(outcome: Profiled) -> str:
        """Say what it came to."""
        return f"took {sum(not taken.reason for taken in outcome.taken)} traces in {outcome.total_seconds:.0f} s"
