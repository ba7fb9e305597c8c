"""Makes the timeline of a kernel's events: states, system calls, interrupts, wake-ups, migrations, faults, marks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.english import counted
from castmates.timeline.importers.kernel import (
    BEGIN,
    COUNTER,
    DEAD,
    END,
    IDLE,
    IRQ,
    NOTE,
    STARTED,
    WAKEUP,
    WAKING,
    KernelEvents,
    States,
    gaps_of,
    states_of,
)
from castmates.timeline.importers.lines import Ints
from castmates.timeline.model import Making, Registry, categories, or_none
from castmates.timeline.states import BLOCKED, NAMES, UNWOKEN, is_last, joined, rows_of
from castmates.timeline.states import UNKNOWN as NOT_KNOWN
from castmates.timeline.syscalls import FAULT, UNKNOWN, wait_of
from castmates.traces.nesting import fitted, pairs

Table = npt.NDArray[Any]  # of named columns
TABLES = ("switches", "wakes", "migrations", "calls", "interrupts", "faults", "marks", "lost")
OF_THREADS = ("wakes", "migrations", "calls", "faults", "marks")  # that name the thread, as switches do
SEEN = ("switches", "calls", "interrupts", "faults", "marks")  # whose CPU is the one that noted the event
NAMED = np.dtype([("tid", "i8"), ("comm", "i8"), ("n", "i8")])  # a thread with the name that it had at an event
UNKNOWN_THREAD = "unknown thread"  # of events that come before it is known who runs
UNNAMED = "<...>"  # ftrace's name of a thread that it has forgotten


class KernelTimeline:
    """Adds a kernel's events to a timeline."""

    def __init__(self, making: Making, registry: Registry, events: KernelEvents, source: str) -> None:
        self._making, self._registry, self._source = making, registry, source
        self._account, self._words = events.account, events.words.known()
        self._tables = {name: _in_order(getattr(events, name).table()) for name in TABLES}
        self._tables["wakes"] = self._once(self._tables["wakes"])
        self._tids, self._tracks = self._threads(events.processes)
        self.missing: list[str] = []  # what is not in the timeline, in sentences
        self.end = max((int(table["t"].max()) for table in self._tables.values() if len(table)), default=0)

    def fill(self) -> None:
        """Add everything."""
        opened, closed = self._calls()
        seen = [self._tables[name] for name in SEEN]
        gaps = gaps_of(self._tables["lost"], seen)
        states = states_of(self._tables["switches"], self._tables["wakes"], self.end, gaps)
        self._states(states, opened, closed)
        if states.unknown:
            self.missing.append(
                f"without a state, because switches are missing (lost, or recorded of some programs alone): "
                f"{counted(states.unknown, 'stretch')} of threads"
            )
        if states.cut:
            self.missing.append(f"cut, because events were lost: {counted(states.cut, 'stretch')} of threads")
        if unknown := int((self._tables["lost"]["count"] < 0).sum()):
            self.missing.append(f"the tracer did not count the events that it lost in {unknown} places")
        self._interrupts()
        self._marks()
        self._instants()

    def _once(self, wakes: Table) -> Table:
        """Wake-ups without their second part, where the trace has the first."""
        second = wakes["kind"] == WAKEUP
        if not (wakes["kind"] == WAKING).any():
            return wakes
        self._account.leave_used("sched_wakeup", "after sched_waking", int(second.sum()))
        return wakes.compress(~second)

    def _threads(self, processes: Mapping[int, int]) -> tuple[Ints, Ints]:
        """Tracks of all threads: of those that were named several times, with the last name."""
        switches, others = self._tables["switches"], [self._tables[name] for name in OF_THREADS]
        parts = [rows_of(NAMED, tid=table["tid"], comm=table["comm"], n=table["n"]) for table in (switches, *others)]
        parts.append(rows_of(NAMED, tid=switches["next"], comm=switches["next_comm"], n=switches["n"]))
        named = joined(parts)
        is_known = np.array([word != UNNAMED for word in self._words] or [True])[named["comm"]]
        named = named.take(np.lexsort((named["n"], is_known, named["tid"])))
        named = named.compress(is_last(named["tid"]))
        known, names = named["tid"], named["comm"]
        kept = (known != IDLE) | np.isin(known, np.concatenate([table["tid"] for table in others]))
        own = dict(zip(known.tolist(), names.tolist(), strict=True))
        for process in sorted(set(processes.values()) & own.keys()):
            self._registry.process(process, self._words[own[process]])
        tracks = [
            self._registry.thread(
                number, processes.get(number), name=self._words[name] if number >= 0 else UNKNOWN_THREAD
            )
            for number, name in zip(known[kept].tolist(), names[kept].tolist(), strict=True)
        ]
        return known[kept].astype(np.int64), np.array(tracks, np.int64)

    def _track(self, tid: Any) -> Ints:  # noqa: ANN401
        return self._tracks[np.searchsorted(self._tids, tid)] if len(self._tids) else np.empty(0, np.int64)

    def _named(self, numbers: Any) -> pd.Categorical:  # noqa: ANN401
        return categories(numbers, self._words)

    def _calls(self) -> tuple[Table, Ints]:
        """Add system calls; return the enters that count, and when each ends."""
        table = self._tables["calls"]
        begin, end = _adjacent(table["tid"], table["enters"], table["name"])
        unpaired = int((~table["enters"]).sum()) - len(end)
        self._account.leave_used("sys_exit", "without its sys_enter in the trace", unpaired)
        open_ = _open(table, begin)
        lost = int(table["enters"].sum()) - len(begin) - len(open_)
        self._account.leave_used("sys_enter", "without its sys_exit in the trace", lost)
        calls = table.take(np.concatenate([begin, open_]))
        until = np.concatenate([table["t"][end], self._last(table["tid"][open_])])
        self._making.intervals(
            t0_ns=calls["t"],
            t1_ns=until,
            track=self._track(calls["tid"]),
            kind="syscall",
            name=self._named(calls["name"]),
            cpu=or_none(calls["cpu"]),
            value=np.concatenate([table["value"][end], np.full(len(open_), np.nan)]),
            detail=categories(np.arange(len(calls)) >= len(begin), ["", "did not return"]),
            source=self._source,
        )
        order = np.lexsort((calls["t"], calls["tid"]))
        return calls.take(order), until[order]

    def _last(self, tid: npt.NDArray[Any]) -> Ints:
        """When threads end; the end of the trace for those that do not."""
        switches = self._tables["switches"]
        dead = switches["state"] == DEAD
        ends = dict(zip(switches["tid"][dead].tolist(), switches["t"][dead].tolist(), strict=True))
        return np.array([ends.get(thread, self.end) for thread in tid.tolist()], np.int64)

    def _states(self, states: States, calls: Table, until: Ints) -> None:
        """Add states; a blocked thread waits in the system call that is open then, with a wake-up seen or not."""
        rows = states.rows
        blocked = np.isin(rows["state"], (BLOCKED, UNWOKEN))
        asleep = rows[blocked]
        words = [*self._words, *map(wait_of, self._words), "", UNKNOWN, FAULT]
        count = len(self._words)
        detail = np.where(rows["other"] >= 0, rows["other"], 2 * count)
        place = _call_at(calls, until, asleep["tid"], asleep["t0"])
        inside = np.where(place >= 0, count + calls["name"][place] if len(calls) else 0, 2 * count + 1)
        faults = (place < 0) & asleep["is_disk"] & bool(len(calls))  # outside of calls no signal would end it
        detail[blocked] = np.where(faults, 2 * count + 2, inside)
        self._making.intervals(
            t0_ns=rows["t0"],
            t1_ns=rows["t1"],
            track=self._track(rows["tid"]),
            kind="state",
            name=categories(np.minimum(rows["state"], NOT_KNOWN), NAMES),
            cpu=or_none(rows["cpu"]),
            detail=categories(detail, words),
            source=self._source,
        )

    def _interrupts(self) -> None:
        table = self._tables["interrupts"]
        for kind, word in ((IRQ, "irq"), (IRQ + 1, "softirq")):
            own = table.compress(table["kind"] == kind)
            begin, end = pairs(own["cpu"].astype(np.int64), own["enters"])
            names = "irq_handler" if kind == IRQ else "softirq"
            self._account.leave_used(f"{names}_entry", "without its exit", int(own["enters"].sum()) - len(begin))
            self._account.leave_used(f"{names}_exit", "without its entry", int((~own["enters"]).sum()) - len(end))
            track = self._cpus(own["cpu"][begin])
            depth, until, _ = fitted(track, own["t"][begin], own["t"][end])
            self._making.intervals(
                t0_ns=own["t"][begin],
                t1_ns=until,
                track=track,
                kind=word,
                name=self._named(own["name"][begin]),
                depth=depth,
                cpu=or_none(own["cpu"][begin]),
                source=self._source,
            )

    def _marks(self) -> None:
        table = self._tables["marks"]
        span = np.isin(table["kind"], (BEGIN, END))
        own = table.compress(span)
        both = own["tid"].astype(np.int64) * (len(self._words) + 1) + own["group"]
        begin, end = pairs(both, own["kind"] == BEGIN)
        self._unpaired(own, np.r_[begin, end])
        track = self._track(own["tid"][begin])
        depth, until, _ = fitted(track, own["t"][begin], own["t"][end])
        self._making.intervals(
            t0_ns=own["t"][begin],
            t1_ns=until,
            track=track,
            kind="range",
            name=self._named(own["name"][begin]),
            depth=depth,
            cpu=or_none(own["cpu"][begin]),
            source=self._source,
        )
        self._notes(table)

    def _unpaired(self, own: Table, paired: Ints) -> None:
        """Begins without ends become notes, and so do ends that have a name."""
        alone = np.ones(len(own), bool)
        alone[paired] = False
        named = alone & (
            (own["kind"] == BEGIN) | (np.array([bool(word) for word in self._words] or [False])[own["group"]])
        )
        self._account.leave_used("marks (ends)", "without begin", int((alone & ~named).sum()))
        rows = own.compress(named)
        labels = [f"{word} {'begins' if kind == BEGIN else 'ends'}" for kind in (BEGIN, END) for word in self._words]
        numbers = rows["name"] + len(self._words) * (rows["kind"] == END)
        self._instant("annotation", rows, self._track(rows["tid"]), categories(numbers, labels))

    def _notes(self, table: Table) -> None:
        counters, notes = (table[table["kind"] == kind] for kind in (COUNTER, NOTE))
        self._making.samples(
            t_ns=counters["t"],
            track=self._track(counters["tid"]),
            name=self._named(counters["name"]),
            value=counters["value"],
            source=self._source,
        )
        self._instant("annotation", notes, self._track(notes["tid"]), self._named(notes["name"]))

    def _instants(self) -> None:
        wakes, moves, faults = (self._tables[name] for name in ("wakes", "migrations", "faults"))
        names = categories(wakes["kind"] == STARTED, ["woken", "started"])
        waker = np.where(wakes["waker"] >= 0, wakes["waker"], np.nan)
        woken = self._track(wakes["tid"])
        self._instant("wakeup", wakes, woken, names, value=waker, detail=self._named(wakes["by"]))
        paths = [f"cpu{origin}->cpu{target}" for origin, target in zip(moves["origin"], moves["cpu"], strict=True)]
        self._instant("migration", moves, self._track(moves["tid"]), "migration", detail=paths)
        self._instant("fault", faults, self._track(faults["tid"]), "page fault", detail=self._named(faults["name"]))
        dead = self._tables["switches"]["state"] == DEAD
        ends = self._tables["switches"][dead]
        self._instant("exit", ends, self._track(ends["tid"]), "exited")
        lost = self._tables["lost"]
        self._instant(
            "lost",
            lost,
            self._cpus(lost["cpu"]),
            "lost events",
            value=np.where(lost["count"] < 0, np.nan, lost["count"]),
        )

    def _instant(self, kind: str, table: Table, track: Ints, name: Any, **more: Any) -> None:  # noqa: ANN401
        if len(track):
            self._making.instants(
                t_ns=table["t"],
                track=track,
                kind=kind,
                name=name,
                cpu=or_none(table["cpu"]),
                source=self._source,
                **more,
            )

    def _cpus(self, numbers: npt.NDArray[Any]) -> Ints:
        tracks = {number: self._registry.cpu(number) for number in np.unique(numbers).tolist()}
        return np.array([tracks[number] for number in numbers.tolist()], np.int64)


def _in_order(table: Table) -> Table:
    """A table in the order of time, and of the trace where times are equal."""
    if (np.diff(table["t"]) >= 0).all():
        return table
    order = np.lexsort((table["n"], table["t"]))
    return table[order]


def _adjacent(tid: npt.NDArray[Any], enters: npt.NDArray[np.bool_], name: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Places of enters whose thread's next event is the exit of the same call, and of these exits."""
    order = np.argsort(tid, kind="stable")
    first, second = order[:-1], order[1:]
    match = enters[first] & ~enters[second] & (tid[first] == tid[second]) & (name[first] == name[second])
    return first[match], second[match]


def _open(table: Table, begin: Ints) -> Ints:
    """Enters that are the last event of their thread: those calls last until the end of the trace."""
    order = np.argsort(table["tid"], kind="stable")
    tid = table["tid"][order]
    last = order[np.r_[tid[1:] != tid[:-1], True]] if len(tid) else order
    return np.setdiff1d(last[table["enters"][last]], begin)


def _call_at(calls: Table, until: Ints, tid: Ints, t: Ints) -> Ints:
    """The call of a thread that is open at a moment; -1 for none. Calls are in the order of threads and times."""
    if not len(calls):
        return np.full(len(t), -1, np.int64)
    base = min(int(calls["t"].min()), int(t.min()) if len(t) else 0)
    wide = np.int64(max(int(calls["t"].max()), int(t.max()) if len(t) else 0) - base + 1)
    threads, number = np.unique(np.r_[calls["tid"], tid], return_inverse=True)
    del threads
    if int(number.max(initial=0) + 1) * int(wide) >= 2**63:  # years of many threads
        return np.full(len(t), -1, np.int64)
    keys = number[: len(calls)] * wide + (calls["t"] - base)
    place = np.searchsorted(keys, number[len(calls) :] * wide + (t - base), "right") - 1
    found = np.maximum(place, 0)
    inside = (place >= 0) & (calls["tid"][found] == tid) & (until[found] >= t)
    return np.where(inside, found, -1)
