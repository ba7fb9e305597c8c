"""Who was on each CPU: which member's thread, and who came after it, as far as that shows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.keys import Keys
from castmates.timeline.perf.people import People
from castmates.timeline.perf.reading import Recording
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
