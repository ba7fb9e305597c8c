"""Which collectors this machine allows."""

from collections.abc import Sequence

from castmates.counters.nothing import NoCollector
from castmates.counters.perf_event import PerfEvent
from castmates.counters.procstat import ProcStat
from castmates.protocols import Collector


def choose_collectors(cpus: Sequence[int]) -> list[Collector]:
    """What /proc tells always; migrations, which it does not tell, where the kernel lets us count them.

    Every further software event costs a member about a microsecond a context switch (measured), so the switches
    and faults that /proc tells for nothing are not counted twice.
    """
    refused = PerfEvent.available("cpu_migrations")
    return [ProcStat(cpus), NoCollector(refused) if refused else PerfEvent(["cpu_migrations"])]
