"""Switches between threads, made from the states of those that were recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.timeline.export.ctf_streams import Array
from castmates.timeline.model import Timeline

IDLE = -1  # who runs where nobody does; -2 and below are programs that were not recorded
FOREIGN = 1 << 22  # numbers of threads of other programs, which are not known, begin behind Linux's largest
RUNNABLE, SLEEPS, DISK, DEAD = 0, 1, 2, 32  # Linux's states
SWAPPER = "swapper"
EXIT = "exit"  # a thread ends after its last state
IN_DISK = ("io", "fault")


@dataclass(frozen=True)
class Switches:
    """Switches in the order of CPUs and times; who is a track, or a negative number (IDLE and below)."""

    t: Array
    cpu: Array
    prev: Array
    next: Array
    state: Array
    others: Sequence[str]  # names of who is no track: the idle thread first
    runs: tuple[Array, Array, Array, Array]  # track, begin, end and CPU of what runs, by track and time

    def on(self, cpu: int) -> "Switches":
        """Those of a CPU."""
        own = self.cpu == cpu
        columns = (self.t[own], self.cpu[own], self.prev[own], self.next[own], self.state[own])
        return Switches(*columns, others=self.others, runs=self.runs)

    def cpu_at(self, track: Array, t: Array, otherwise: Array, ends: bool) -> Array:
        """The CPU on which a thread runs at a moment (or until then); `otherwise` where that is not known."""
        tracks, begin, end, cpu = self.runs
        found = otherwise.copy()
        for number in np.unique(track):
            own, asked = np.flatnonzero(tracks == number), np.flatnonzero(track == number)
            if not len(own):
                continue
            place = np.searchsorted(begin[own], t[asked], "left" if ends else "right") - 1
            inside = (place >= 0) & (end[own][np.maximum(place, 0)] >= t[asked])
            found[asked[inside]] = cpu[own][place[inside]]
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
    columns = tuple(runs[name].to_numpy(np.int64) for name in ("track", "t0_ns", "t1_ns", "cpu"))
    others = [SWAPPER, *sorted(set(runs["who"][runs["after"] == "preempted"]) - {"", "idle"})]
    known = set(timeline.tracks["name"]) | set(timeline.tracks["member"])
    parts = [
        _on_cpu(own, {name: -place - 1 for place, name in enumerate(others) if name not in known})
        for _, own in runs.groupby("cpu")
    ]
    whole = [
        np.concatenate([part[number] for part in parts]) if parts else np.empty(0, np.int64) for number in range(5)
    ]
    t, cpu, prev, next_, state = whole
    return Switches(t, cpu, prev, next_, state, others, (columns[0], columns[1], columns[2], columns[3]))


def _on_cpu(runs: pd.DataFrame, others: dict[str, int]) -> tuple[Array, ...]:
    """Times, CPUs, who leaves, who comes, and in which state who leaves is left."""
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
    t, cpu = np.r_[t0, t1[out]], np.full(len(t0) + len(out), int(runs["cpu"].iloc[0]))
    prev, next_ = np.r_[comes, track[out]], np.r_[track, between[out]]
    order = np.lexsort((np.r_[np.ones(len(t0)), np.zeros(len(out))], t))
    return t[order], cpu[order], prev[order], next_[order], np.r_[left, state[out]][order]
