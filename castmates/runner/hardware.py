"""What a block reaches of the machine: one allocator, one monitor, several collectors, used as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castmates.counters.choose import choose_collectors
from castmates.machine.topology import read_topology
from castmates.protocols import Allocator, Collector, Monitor, Sample
from castmates.rdt.choose import choose_allocator, choose_monitor
from castmates.runner.kin import is_ours
from castmates.runner.surroundings import Surroundings, surroundings


@dataclass(frozen=True)
class Hardware:
    """The hardware side of a block."""

    allocator: Allocator
    monitor: Monitor
    collectors: Sequence[Collector]
    surroundings: Surroundings

    @classmethod
    def choose(cls, cpus: Sequence[int]) -> "Hardware":
        """Take what this machine gives for members on these CPUs."""
        beside = surroundings(read_topology(), cpus)
        collectors = choose_collectors(cpus, beside.quiet, beside.neighbours, is_ours)
        return cls(choose_allocator(), choose_monitor(), collectors, beside)

    def attach(self, members: Mapping[str, int]) -> None:
        """Begin to watch and to serve these members (name -> pid), once, after their launch."""
        self.allocator.prepare(members)
        self.monitor.attach(members)
        for collector in self.collectors:
            collector.attach(members)

    def open_window(self, active: Sequence[str]) -> None:
        """Mark the opening edge of a window in which these members run."""
        self.monitor.start()
        for collector in self.collectors:
            collector.start(active)

    def close_window(self) -> list[Sample]:
        """Mark the closing edge and return all that was read since the opening one; edges nest."""
        samples = [sample for collector in reversed(self.collectors) for sample in collector.stop()]
        return samples + self.monitor.stop()

    def release(self) -> None:
        """Put everything back and let go; safe to call twice."""
        for collector in self.collectors:
            collector.close()
        self.monitor.close()
        self.allocator.restore()

    def about(self) -> dict[str, dict[str, str]]:
        """Say, for the provenance, what each part is and does."""
        parts = {"allocator": self.allocator.about(), "monitor": self.monitor.about()}
        return parts | {collector.name: collector.about() for collector in self.collectors}
