"""A trace launch: everything is recorded on one clock."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from castmates.protocols import Say
from castmates.runner.outcome import LaunchKind
from castmates.runner.processes.launch import Start
from castmates.runner.profiles import rounds
from castmates.runner.staging import LiveStage
from castmates.runner.tracing import record, recorders
from castmates.runner.tracing.recorded import Traced
from castmates.runner.tracing.rounds import RAW, trace_rounds, tracing_of
from castmates.runner.tracing.stacks import map_of, remove_maps
from castmates.study.counter_keys import MOST_RANGES
from castmates.study.spec import Launch
from castmates.study.trace_launches import profiled_steps, trace_name


class Trace(LaunchKind[Traced]):
    """Members leave maps for perf, which are removed whatever happens."""

    Outcome = Traced
    reading = "putting the trace together"
    keeps_logs = False

    @staticmethod
    def name_of(launch: Launch) -> str:
        """What the lines of the launch begin with."""
        return f"trace {trace_name(launch)}"

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give the lead its page."""
        if profiled_steps(self.launch):
            rounds.offer(members[0], channels, self.folder / RAW)
        for start in members:
            recorders.prepare(start, tracing_of(self.launch).events)

    def ranges_of(self, start: Start) -> int:  # noqa: ARG002
        """How many annotations are kept one by one."""
        return MOST_RANGES

    def started(self, stage: LiveStage, name: str) -> None:
        """Have the map that it leaves for perf removed."""
        stage.guard_orphan(map_of(stage.cast[name].pid))

    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for."""
        trace_rounds(self.outcome, stage, self.folder / RAW, say)

    @contextmanager
    def guarded(self, stage: LiveStage) -> Iterator[None]:
        """Note every process before it is killed: what it left for perf is removed then."""
        try:
            yield
        finally:
            for name in stage.cast:
                with suppress(OSError):
                    self.outcome.pids.update(stage.freezer.stragglers(name))

    def abandon(self) -> None:
        """Remove maps that nobody will read."""
        remove_maps({*self.outcome.pids, *(process.pid for process in self.outcome.cast)})

    @staticmethod
    def write(outcome: Traced, folder: Path) -> None:
        """Write the files of the launch."""
        record.write(outcome, folder)

    @staticmethod
    def words(outcome: Traced) -> str:
        """Say what it came to."""
        return f"made {len(outcome.recorded)} recordings in {outcome.total_seconds:.0f} s"
