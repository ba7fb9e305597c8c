"""Who was on each CPU, and what happened there: page faults, interrupts and migrations of members' threads."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.groups import Keys, People, Spans
from castmates.timeline.perf.reading import KERNEL, Recording, Table
from castmates.timeline.perf.states import PREEMPTED, RUNNABLE, RUNNING, States

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Turns:
    """Rows of CPUs in the order of CPUs and times; none of a CPU overlap."""

    cpu: Array
    begins: Array
    ends: Array
    thread: Array  # number of a member's thread; -1 for others, or nobody
    other_tid: Array  # of such a row, who was seen to come; -1 where nobody was


def instead_of(recording: Recording, people: People, states: States, keys: Keys) -> Array:
    """Of each interval in which a thread waited to run, which one ran instead; -1 where that does not show."""
    cpus, times, tids = _comings(recording, people, states)
    found = np.full(len(states.begins), -1)
    is_preempted = (states.state == PREEMPTED) & (states.cpu >= 0)
    is_runnable = (states.state == RUNNABLE) & (states.cpu >= 0)
    if len(cpus):
        coming = keys.of(cpus, times)
        after = keys.first_after(coming, states.cpu[is_preempted], states.begins[is_preempted])
        found[is_preempted] = np.where(after >= 0, tids[after], -1)
        before = keys.last_before(coming, states.cpu[is_runnable], states.begins[is_runnable])
        found[is_runnable] = np.where(before >= 0, tids[before], -1)
    shown = is_preempted & (states.next_tid >= 0)
    found[shown] = states.next_tid[shown]
    found[found == people.tids[states.thread]] = -1
    return found


def turns_of(people: People, states: States) -> Turns:
    """Who ran on each CPU that members ran on; between them, others or nobody."""
    ran = np.flatnonzero((states.state == RUNNING) & (states.cpu >= 0))
    ran = ran[np.lexsort((states.begins[ran], states.cpu[ran]))]
    cpu, begins, ends = states.cpu[ran], states.begins[ran].copy(), states.ends[ran]
    same = np.append(False, cpu[1:] == cpu[:-1])[: len(ran)]
    begins[1:] = np.where(same[1:], np.maximum(begins[1:], ends[:-1]), begins[1:])
    stretch = states.group[ran] % states.stretches
    gaps = np.flatnonzero(same[1:] & (stretch[1:] == stretch[:-1]) & (begins[1:] > ends[:-1]))
    other = _next_of(states)[ran[gaps]]
    is_other = people.number(other) < 0  # between two members' threads there is the switch, and nobody else
    gaps, other = gaps[is_other], other[is_other]
    columns = {
        "cpu": np.concatenate([cpu, cpu[gaps]]),
        "begins": np.concatenate([begins, ends[gaps]]),
        "ends": np.concatenate([ends, begins[gaps + 1]]),
        "thread": np.concatenate([states.thread[ran], np.full(len(gaps), -1)]),
        "other_tid": np.concatenate([np.full(len(ran), -1), other]),
    }
    kept = columns["ends"] > columns["begins"]
    return Turns(**{name: column[kept] for name, column in columns.items()})


def _next_of(states: States) -> Array:
    """Of each interval, who came to its CPU after it: what the following interval of its thread begins with."""
    following = np.full(len(states.begins), -1)
    following[:-1] = np.where(states.group[1:] == states.group[:-1], states.next_tid[1:], -1)
    return following


def _comings(recording: Recording, people: People, states: States) -> tuple[Array, Array, Array]:
    """Every moment at which somebody is known to have come to a CPU: CPUs, times, tids; in the order of both."""
    switch = recording.switches
    comes = ~switch["out"] & (people.number(switch["tid"]) < 0)
    runs = states.state == RUNNING
    parts = [
        (states.cpu[runs], states.begins[runs], people.tids[states.thread[runs]]),
        (switch["cpu"][comes], switch["time"][comes], switch["tid"][comes]),
    ]
    if (leaves := recording.samples.get("sched:sched_switch")) is not None:
        parts.append((leaves["cpu"], leaves["time"], people.here(leaves["next_pid"])))
    cpus, times, tids = (np.concatenate([part[place] for part in parts]) for place in range(3))
    kept = np.flatnonzero(cpus >= 0)
    kept = kept[np.lexsort((times[kept], cpus[kept]))]
    return cpus[kept], times[kept], tids[kept]


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
