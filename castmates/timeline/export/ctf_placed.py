"""What of a timeline is the kernel's and on which CPU, with the switches that the states of threads imply.

What has no CPU cannot be in a stream of the kernel's tracer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.timeline.export.ctf_streams import Array
from castmates.timeline.model import Timeline
from castmates.timeline.states import rows_of

IDLE = -1  # who runs where nobody does; -2 and below are programs that were not recorded
FOREIGN = 1 << 22  # numbers of threads of other programs, which are not known, begin behind Linux's largest
RUNNABLE, SLEEPS, DISK, DEAD = 0, 1, 2, 32  # Linux's states
SWAPPER = "swapper"
EXIT = "exit"  # a thread ends after its last state
IN_DISK = ("io", "fault")


SWITCH = np.dtype([("t", "i8"), ("cpu", "i8"), ("prev", "i8"), ("next", "i8"), ("state", "i8")])
"""A switch: who leaves and who comes are tracks, or negative numbers (IDLE and below)."""
RUN = np.dtype([("track", "i8"), ("t0_ns", "i8"), ("t1_ns", "i8"), ("cpu", "i8")])


@dataclass(frozen=True)
class Switches:
    """Switches between threads."""

    rows: Array  # of SWITCH, in the order of CPUs and times
    others: Sequence[str]  # names of who is no track: the idle thread first
    runs: Array  # of RUN: what runs, by track and time

    def on(self, cpu: int) -> Array:
        """Those of a CPU."""
        own: Array = self.rows[self.rows["cpu"] == cpu]
        return own

    def cpu_at(self, track: Array, t: Array, otherwise: Array, ends: bool) -> Array:
        """The CPU on which a thread runs at a moment (or until then); `otherwise` where that is not known."""
        found = otherwise.copy()
        for number in np.unique(track):
            own, asked = self.runs[self.runs["track"] == number], np.flatnonzero(track == number)
            if not len(own):
                continue
            place = np.searchsorted(own["t0_ns"], t[asked], "left" if ends else "right") - 1
            inside = (place >= 0) & (own["t1_ns"][np.maximum(place, 0)] >= t[asked])
            found[asked[inside]] = own["cpu"][place[inside]]
        return found


def switches_of(timeline: Timeline, states: pd.DataFrame) -> Switches:
    """The switches that the states of threads imply."""
    table = states[["t0_ns", "t1_ns", "track", "name", "cpu", "detail"]].copy()
    table["name"], table["detail"] = table["name"].astype(str), table["detail"].astype(str)
    table = table.sort_values(["track", "t0_ns"], kind="stable").reset_index(drop=True)
    later = table.shift(-1)
    follows = (later["track"] == table["track"]) & (later["t0_ns"] == table["t1_ns"])
    table["after"] = np.where(follows, later["name"], "")
    table["who"] = np.where(follows, later["detail"], "")
    exits = timeline.instants[timeline.instants["kind"] == "exit"].groupby("track")["t_ns"].max()
    last = (later["track"] != table["track"]) & (table["t1_ns"] >= table["track"].map(exits).fillna(np.inf))
    table.loc[last, "after"] = EXIT
    runs = table[(table["name"] == "running") & table["cpu"].notna()]
    others = [SWAPPER, *sorted(set(runs["who"][runs["after"] == "preempted"]) - {"", "idle"})]
    known = set(timeline.tracks["name"]) | set(timeline.tracks["member"])
    numbers = {name: -place - 1 for place, name in enumerate(others) if name not in known}
    parts = [_on_cpu(own, numbers) for _, own in runs.groupby("cpu")]
    columns = {name: runs[name].to_numpy(np.int64) for name in RUN.names or ()}
    return Switches(np.concatenate([np.empty(0, SWITCH), *parts]), others, rows_of(RUN, **columns))


def _on_cpu(runs: pd.DataFrame, others: dict[str, int]) -> Array:
    """The switches on one CPU."""
    runs = runs.sort_values("t0_ns", kind="stable")
    t0, t1, track = (runs[name].to_numpy(np.int64) for name in ("t0_ns", "t1_ns", "track"))
    after, who = runs["after"].to_numpy(), runs["who"].to_numpy()
    sleeps = (after == "blocked") | ((after == "unknown") & (who != ""))  # who left a CPU, woken later or not
    state = np.select([sleeps, after == EXIT], [np.where(np.isin(who, IN_DISK), DISK, SLEEPS), DEAD], RUNNABLE)
    between = np.array(
        [others.get(name, IDLE) if kind == "preempted" else IDLE for name, kind in zip(who, after, strict=True)]
    )
    touches = np.r_[t1[:-1] >= t0[1:], False]  # the next one runs at once
    out = np.flatnonzero(~touches)
    comes = np.r_[IDLE, np.where(touches, track, between)[:-1]]  # who ran before
    left = np.r_[RUNNABLE, np.where(touches, state, RUNNABLE)[:-1]]
    cpu = int(runs["cpu"].iloc[0])
    begins = rows_of(SWITCH, t=t0, cpu=cpu, prev=comes, next=track, state=left)
    ends = rows_of(SWITCH, t=t1[out], cpu=cpu, prev=track[out], next=between[out], state=state[out])
    rows = np.concatenate([ends, begins])  # of one moment, ends come first
    return rows[np.argsort(rows["t"], kind="stable")]


NAME = 16  # bytes of a thread's name, the last of them zero
INSTANTS = frozenset({"wakeup", "migration", "fault"})
NOWHERE = -1


@dataclass(frozen=True)
class Threads:
    """The numbers and names of threads, by their tracks."""

    tid: Array  # -1 for what is no thread
    pid: Array
    comm: Array

    def who(self, track: Array) -> dict[str, Array]:
        """The context of events in these threads."""
        return {"c_tid": self.tid[track], "c_pid": self.pid[track], "c_procname": self.comm[track]}

    def on_cpu(self, who: Array, others: Array) -> dict[str, Array]:
        """The same of tracks, and of the idle thread and other programs, which have negative numbers and no track."""
        is_track, track = who >= 0, np.maximum(who, 0)
        other = np.where(is_track, 0, -who - 1)
        number = np.where(other == 0, 0, FOREIGN + other)
        tid, pid = (np.where(is_track, own[track], number) for own in (self.tid, self.pid))
        return {"c_tid": tid, "c_pid": pid, "c_procname": np.where(is_track, self.comm[track], others[other])}


@dataclass(frozen=True)
class Placed:
    """The kernel's rows with their CPUs."""

    threads: Threads
    switches: Switches
    calls: pd.DataFrame
    begins: Array  # the CPUs on which calls begin …
    ends: Array  # … and end: a thread may return on another one
    irqs: pd.DataFrame
    moments: pd.DataFrame
    at: Array  # the CPUs of moments: of a wake-up that of the waker
    wakers: pd.DataFrame  # the context of each moment that is a wake-up
    intervals_left: Array  # rows that are not the kernel's, or have no CPU
    instants_left: Array

    def cpus(self) -> list[int]:
        """Those on which anything happened."""
        numbers = [self.switches.rows["cpu"], self.begins, self.ends, numbers_of(self.irqs["cpu"]), self.at]
        return sorted(set(np.concatenate(numbers).tolist()))


def numbers_of(cells: pd.Series) -> Array:
    """Numbers without gaps: -1 where there is none."""
    numbers: Array = cells.fillna(-1).to_numpy(np.int64)
    return numbers


def names_of(tracks: pd.DataFrame) -> Array:
    """The names of tracks as the kernel keeps those of threads."""
    return np.array([str(name).encode()[: NAME - 1] for name in tracks["name"]] or [b""], f"S{NAME}")


def placed(timeline: Timeline) -> Placed:
    """Find the CPU of everything."""
    tracks, rows, moments = timeline.tracks, timeline.intervals, timeline.instants
    tid, pid = numbers_of(tracks["tid"]), numbers_of(tracks["pid"])
    threads = Threads(tid, np.where(pid >= 0, pid, tid), names_of(tracks))
    of_thread = _of(tid >= 0, rows)
    state = ((rows["kind"] == "state") & of_thread).to_numpy()
    runs = rows[state & (rows["name"] == "running").to_numpy() & rows["cpu"].notna().to_numpy()]
    state = state & np.isin(rows["track"], runs["track"].unique())
    switches = switches_of(timeline, rows[state])
    call = np.flatnonzero((rows["kind"] == "syscall") & of_thread)
    begins, ends = _where_calls(switches, rows.iloc[call])
    known = begins != NOWHERE
    irq = (rows["kind"].isin(["irq", "softirq"]) & rows["cpu"].notna()).to_numpy()
    moment = np.flatnonzero(moments["kind"].isin(INSTANTS) & _of(tid >= 0, moments))
    wakers, at = _where_moments(threads, switches, moments.iloc[moment])
    there = at != NOWHERE
    taken = state | irq
    taken[call[known]] = True
    happened = np.zeros(len(moments), bool)
    happened[moment[there]] = True
    return Placed(
        threads,
        switches,
        rows.iloc[call[known]],
        begins[known],
        ends[known],
        rows[irq],
        moments.iloc[moment[there]],
        at[there],
        wakers[there],
        ~taken,
        ~happened,
    )


def _of(known: Array, table: pd.DataFrame) -> Array:
    return known[table["track"].to_numpy()] if len(table) else np.empty(0, bool)


def _where_calls(switches: Switches, calls: pd.DataFrame) -> tuple[Array, Array]:
    track, given = calls["track"].to_numpy(), numbers_of(calls["cpu"])
    begins = switches.cpu_at(track, calls["t0_ns"].to_numpy(), given, False)
    ends = switches.cpu_at(track, calls["t1_ns"].to_numpy(), given, True)
    return np.where(begins == NOWHERE, ends, begins), np.where(ends == NOWHERE, begins, ends)


def _where_moments(threads: Threads, switches: Switches, moments: pd.DataFrame) -> tuple[pd.DataFrame, Array]:
    """The wakers of those moments that are wake-ups, and the CPUs of all."""
    t, given = moments["t_ns"].to_numpy(), numbers_of(moments["cpu"])
    wakes = (moments["kind"] == "wakeup").to_numpy()
    number = moments["value"].to_numpy()
    tid = np.where(wakes & ~np.isnan(number), np.nan_to_num(number), 0).astype(np.int64)  # 0: an interrupt, or idle
    found = {int(one): track for track, one in enumerate(threads.tid.tolist()) if one > 0}
    each, codes = np.unique(tid, return_inverse=True)  # there are far fewer threads than moments
    waker = np.array([found.get(one, NOWHERE) for one in each.tolist()], np.int64)[codes]
    who = np.where(wakes, waker, moments["track"].to_numpy())
    at = given.copy()
    asked = (who != NOWHERE) & (wakes | (given == NOWHERE))
    at[asked] = switches.cpu_at(who[asked], t[asked], given[asked], False)
    is_track, track = waker != NOWHERE, np.maximum(waker, 0)
    words = moments["detail"].cat
    named = np.array([*(word.encode()[: NAME - 1] for word in words.categories), b""], f"S{NAME}")[words.codes]
    comm = np.where(tid == 0, switches.others[-IDLE - 1].encode(), named)
    return pd.DataFrame(
        {
            "c_tid": tid,
            "c_pid": np.where(is_track, threads.pid[track], tid),
            "c_procname": np.where(is_track, threads.comm[track], comm),
        }
    ), at
