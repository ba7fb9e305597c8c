"""Which collectors this machine allows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from castmates.counters.added import added_collectors
from castmates.counters.events.counting import Counters
from castmates.counters.events.migrations import Migrations
from castmates.counters.events.turns import Rota
from castmates.counters.gpus import GpuReadings
from castmates.counters.nothing import NoCollector
from castmates.counters.package.busy_clock import BusyClock
from castmates.counters.package.collector import Packages
from castmates.counters.proc.conditions import Conditions
from castmates.counters.proc.cputime import CpuTime
from castmates.counters.proc.frequency import Frequency
from castmates.counters.proc.last_cpus import Places
from castmates.counters.proc.other_programs import Culprits
from castmates.counters.proc.procstat import ProcStat
from castmates.counters.proc.throttling import Throttling
from castmates.counters.topdown.topdown import choose_topdown
from castmates.linux.nvml import DRIVER
from castmates.protocols import Collector, Counter, Say
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
