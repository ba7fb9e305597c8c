"""Page faults, interrupts and migrations of members' threads."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.people import People
from castmates.timeline.perf.reading import KERNEL, Recording, Table
from castmates.timeline.perf.spans import Spans
from castmates.timeline.perf.states import RUNNING, States

Array = npt.NDArray[Any]
SOFT = ("hi", "timer", "net tx", "net rx", "block", "irq poll", "tasklet", "sched", "hrtimer", "rcu")
FAULTS = ("exceptions:page_fault_user", "exceptions:page_fault_kernel")


@dataclass(frozen=True)
class Interrupts:
    """Interrupts of one kind, in the order of CPUs and times; those of a CPU do not overlap."""

    kind: str  # irq, softirq
    thread: Array  # that was interrupted
    cpu: Array
    begins: Array
    ends: Array
    names: list[str]  # by code
    code: Array


def faults_of(recording: Recording, people: People, spans: Spans) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Page faults: thread, time, CPU, whether within the kernel. The software event knows all that the others do."""
    if "page-faults" in recording.samples:
        table = recording.samples["page-faults"]
        yield _of_members(table, people, spans, table["mode"] == KERNEL)
        return
    for name in FAULTS:
        if (other := recording.samples.get(name)) is not None:
            yield _of_members(other, people, spans, np.full(len(other["time"]), name.endswith("kernel")))


def interrupts_of(recording: Recording, people: People, spans: Spans) -> Iterator[Interrupts]:
    """Interrupts that members' threads had to bear: on a CPU each ends before the next of its kind begins."""
    for kind, begin, end, number in (
        ("irq", "irq:irq_handler_entry", "irq:irq_handler_exit", "irq"),
        ("softirq", "irq:softirq_entry", "irq:softirq_exit", "vec"),
    ):
        begins, ends = recording.samples.get(begin), recording.samples.get(end)
        if begins is None or ends is None:
            continue
        table = {name: np.concatenate([begins[name], ends[name]]) for name in ("time", "cpu", "tid", number)}
        is_end = np.arange(len(table["time"])) >= len(begins["time"])
        order = np.lexsort((is_end, table["time"], table["cpu"]))
        table, is_end = {name: column[order] for name, column in table.items()}, is_end[order]
        cpu, numbers = table["cpu"], table[number]
        pairs = np.flatnonzero(~is_end[:-1] & is_end[1:] & (cpu[1:] == cpu[:-1]) & (numbers[1:] == numbers[:-1]))
        thread, span = people.number(table["tid"][pairs]), spans.of(table["time"][pairs])
        pairs, thread = pairs[(thread >= 0) & (span >= 0)], thread[(thread >= 0) & (span >= 0)]
        unique, code = np.unique(numbers[pairs], return_inverse=True)
        names = [_name(recording, kind, number) for number in unique.tolist()]
        yield Interrupts(kind, thread, cpu[pairs], table["time"][pairs], table["time"][pairs + 1], names, code)


def migrations_of(states: States) -> tuple[Array, Array, Array, Array]:
    """Threads that came back on another CPU: thread, time, from, to."""
    ran = np.flatnonzero((states.state == RUNNING) & (states.cpu >= 0))
    group, cpu = states.group[ran], states.cpu[ran]
    moved = 1 + np.flatnonzero((group[1:] == group[:-1]) & (cpu[1:] != cpu[:-1]))
    return states.thread[ran[moved]], states.begins[ran[moved]], cpu[moved - 1], cpu[moved]


def _of_members(table: Table, people: People, spans: Spans, in_kernel: Array) -> tuple[Array, Array, Array, Array]:
    thread = people.number(table["tid"])
    kept = (thread >= 0) & (spans.of(table["time"]) >= 0)
    return thread[kept], table["time"][kept], table["cpu"][kept], in_kernel[kept]


def _name(recording: Recording, kind: str, number: int) -> str:
    if kind == "softirq":
        return SOFT[number] if 0 <= number < len(SOFT) else f"softirq {number}"
    return recording.tasks.irqs.get(number) or f"irq {number}"
