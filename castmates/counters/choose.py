"""Which collectors this machine allows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from castmates import plugins
from castmates.counters.events.budget import Rota
from castmates.counters.events.counting import Counters, Migrations
from castmates.counters.gpus import GpuReadings
from castmates.counters.package.collector import BusyClock, Packages
from castmates.counters.proc.cpu_time import CpuTime
from castmates.counters.proc.frequency import Frequency, Throttling
from castmates.counters.proc.other_programs import Culprits
from castmates.counters.proc.procstat import Conditions, Places, ProcStat
from castmates.counters.topdown.topdown import choose_topdown
from castmates.linux.nvml import DRIVER
from castmates.protocols import Collector, Counter, Sample, Say
from castmates.study.spec import Counting


def choose_collectors(
    cpus: Sequence[int],
    quiet: Sequence[int] = (),
    around: Mapping[str, Sequence[int]] | None = None,
    is_ours: Callable[[int], bool] = lambda _pid: False,
) -> list[Collector]:
    """Return what can be collected for a launch: on `cpus`, their siblings (`quiet`) and neighbours in each domain.

    `is_ours` knows the members' processes that are no longer anybody's children.
    The first is read furthest from the window: those of plug-ins, whole tables; last what the rates are compared with.
    """
    around = around or {}
    watched = (*cpus, *quiet)
    return [
        *added_collectors(cpus),
        *_gpus(),
        Culprits({f"cpu{cpu}": [cpu] for cpu in watched} | dict(around), is_ours=is_ours),
        Conditions(cpus),
        Places(),
        _or_nothing(Packages(cpus)),
        _or_nothing(Throttling(cpus)),
        _or_nothing(BusyClock(cpus)),
        _or_nothing(Frequency(cpus)),
        _perf(),
        ProcStat(),
        CpuTime(watched, around),
    ]


def choose_counters(counting: Counting, cpus: Sequence[int], say: Say, rounds_before: int = 0) -> list[Counter]:
    """What is counted for the members of a launch on `cpus`; those that need the processor's counters take turns.

    The last is read nearest to the window: our own counters, so that their edges lie within those that perf answers.
    """
    rota = Rota(rounds_before)
    chosen: list[Counter] = []
    if counters := Counters.choose(counting, cpus, rota, say):
        chosen.append(counters)
    return [*choose_topdown(counting.topdown, counting.how, counting.series, rota, say), *chosen]


def _perf() -> Collector:
    """Migrations, which /proc does not show, where the kernel lets us count them.

    Every further software event costs a member about a microsecond a context switch (measured), so the switches
    and faults that /proc shows for nothing are not counted twice.
    """
    refused = Migrations.available()
    return NoCollector(refused) if refused else Migrations()


def _gpus() -> list[Collector]:
    """The GPUs, where NVIDIA's driver is: elsewhere no launch has to record that there are none."""
    if not (Path("/") / DRIVER).exists():
        return []
    readings = GpuReadings()
    reason = readings.available()
    return [NoCollector(reason, readings.name) if reason else readings]


def _or_nothing(collector: Throttling | Frequency | Packages | BusyClock) -> Collector:
    reason = collector.available()
    return NoCollector(reason, collector.name) if reason else collector


# Collectors that plug-ins add: each is asked as ours are, and where one fails, the sentence names its package.

Answer = TypeVar("Answer")
METHODS = ("attach", "start", "stop", "close", "about")


class Added:
    """A collector of a plug-in, whose mistakes become sentences."""

    def __init__(self, plugin: plugins.Plugin, make: Callable[[Sequence[int]], Collector], cpus: Sequence[int]) -> None:
        self._plugin = plugin
        self.name = plugin.name
        self._collector = self._asked(lambda: make(cpus))
        if lacking := [name for name in METHODS if not callable(getattr(self._collector, name, None))]:
            raise plugin.broken(f"cannot be used: it has no method {', '.join(lacking)} (castmates help plugins)")
        self.inside_windows = bool(getattr(self._collector, "inside_windows", False))
        self.every_slice = bool(getattr(self._collector, "every_slice", False))

    def attach(self, members: Mapping[str, int]) -> None:
        """Begin to watch these members."""
        self._asked(lambda: self._collector.attach(members))

    def start(self, active: Sequence[str]) -> None:
        """Mark the opening edge."""
        self._asked(lambda: self._collector.start(active))

    def stop(self) -> list[Sample]:
        """Mark the closing edge and return what was read."""
        return self._asked(lambda: list(self._collector.stop()))

    def close(self) -> None:
        """Let go of everything."""
        self._asked(self._collector.close)

    def about(self) -> dict[str, str]:
        """What is collected, and whose work that is."""
        package = f"{self._plugin.package} {self._plugin.version}"
        return {**self._asked(self._collector.about), "package": package}

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except Exception as problem:  # whatever a plug-in's code raises
            raise self._plugin.broken(f"failed: {type(problem).__name__}: {problem}") from problem


def added_collectors(cpus: Sequence[int]) -> list[Collector]:
    """One of each that is installed, for a launch on these CPUs."""
    makers = plugins.added("collectors", _wrong)
    return [Added(plugins.of("collectors", name), make, cpus) for name, make in makers.items()]


def _wrong(make: object) -> str:
    return "" if callable(make) else f"it is a {type(make).__name__}, and makes no collector of a list of CPUs"


# Counters on a machine that lets us count nothing.


class NoCollector:
    """Counts nothing and explains why."""

    reads = False

    def __init__(self, reason: str = "this machine gives no counters", name: str = "none") -> None:
        self.name = name  # of what would be collected
        self._reason = reason

    def attach(self, members: Mapping[str, int]) -> None:
        """Watch nothing."""

    def start(self, active: Sequence[str]) -> None:
        """Mark no edge."""

    def stop(self) -> list[Sample]:
        """Return no samples."""
        return []

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Report that nothing is counted, and why."""
        return {"counters": f"none: {self._reason}"}
