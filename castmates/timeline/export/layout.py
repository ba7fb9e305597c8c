"""Where each row of a timeline is shown: the tree of processes, threads and lanes that all formats share.

A lane holds intervals of one kind of one track, which nest. Those of different kinds may cross, so they never share a
lane. The instants of a track share one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.timeline.model import Timeline

Numbers = npt.NDArray[Any]
NONE: Numbers = np.empty(0, np.int64)

TITLES = {  # kinds in the order in which a track's lanes are shown; other kinds follow
    "on_cpu": "who ran",
    "scene": "scenes",
    "settling": "settling",
    "usual": "usual steps",
    "recording": "recordings",
    "profiled": "profiled",
    "step": "steps",
    "phase": "phases",
    "range": "ranges",
    "state": "states",
    "operation": "operations",
    "primitive": "primitives",
    "call": "calls",
    "syscall": "system calls",
    "irq": "interrupts",
    "softirq": "soft interrupts",
    "kernel": "kernels",
    "copy": "copies",
}
EVENTS, RAN = "events", "Who ran on each CPU"
RECORDED_RAN = "on_cpu"  # the kind of interval of a CPU that shows it, where that was recorded
ON_CPU, WAKES = "ran", "wakes"  # categories of what is shown a second time: states on CPUs, wake-ups at their wakers
LAUNCH, DEVICE = "Launch", "Device"


@dataclass
class Node:
    """A line of the tree: a process, a thread, a group of lanes, a lane or a counter."""

    number: int  # from 1, in the order of the tree: parents before children
    parent: int  # 0 for none
    kind: str  # process, thread, group, lane, counter
    name: str
    rank: int = 0  # its place among its siblings
    pid: int | None = None
    tid: int | None = None
    unit: str = ""


@dataclass
class Layout:
    """The tree, and which line shows what."""

    nodes: list[Node] = field(default_factory=list)
    lanes: dict[tuple[int, str], int] = field(default_factory=dict)  # (track, kind of interval, or EVENTS) -> node
    counters: dict[tuple[int, str], int] = field(default_factory=dict)  # (track, name of samples) -> node
    running: tuple[Numbers, Numbers, Numbers] = field(default_factory=lambda: (NONE, NONE, NONE))  # see `running`
    wakers: dict[int, int] = field(default_factory=dict)  # number of a thread -> the lane of those it wakes
    ran: dict[tuple[int, int], int] = field(default_factory=dict)  # CPU and level -> lane: which thread ran there

    def add(self, parent: int, kind: str, name: str, **about: Any) -> int:  # noqa: ANN401 (fields of Node)
        """Add a line and return its number."""
        self.nodes.append(Node(len(self.nodes) + 1, parent, kind, name, **about))
        return len(self.nodes)


def layout(timeline: Timeline) -> Layout:
    """The tree of a timeline: its launch, members' processes with their threads, CPUs, and everything else."""
    tree, tracks = Layout(), _tracks(timeline)
    homes = _homes(tree, tracks, timeline.about)
    threads = {node.number: f"{node.name}: " for node in tree.nodes if node.kind == "thread"}
    cpus = {one["track"]: one["name"] for one in _kind(tracks, "cpu")}
    tree.running = running(timeline.intervals)
    shown = len(tree.running[0]) or (timeline.intervals["kind"] == RECORDED_RAN).any()
    who = tree.add(0, "group", RAN, rank=1) if shown else 0
    for track, kind, rank in _lanes(timeline):
        # All lanes of a process stand in one list, so each has its thread's name.
        home, name = homes[track], threads.get(homes[track], "") + TITLES.get(kind, kind)
        if kind == RECORDED_RAN and track in cpus:
            home, name = who, cpus[track]
        tree.lanes[track, kind] = tree.add(home, "lane", name, rank=rank)
    _cpus(tree, who)
    _wakers(tree, tracks, homes, timeline.instants)
    samples = timeline.samples[["track", "name", "unit"]].drop_duplicates(["track", "name"])
    for track, name, unit in samples.itertuples(index=False):
        node = tree.add(homes[int(track)], "counter", name, rank=len(TITLES) + 2, unit=unit)
        tree.counters[int(track), name] = node
    return tree


def lookup(found: Mapping[tuple[int, str], int], tracks: pd.Series, words: pd.Series | str) -> Numbers:
    """The line of each row, by its track and a word, which may be the same for all."""
    names = [words] if isinstance(words, str) else list(words.cat.categories)
    columns = {name: column for column, name in enumerate(names)}
    table = np.zeros((max((track for track, _ in found), default=0) + 1, len(names)), np.int64)
    for (track, name), number in found.items():
        if name in columns:
            table[track, columns[name]] = number
    lines: Numbers = table[tracks.to_numpy(), 0 if isinstance(words, str) else words.cat.codes.to_numpy()]
    return lines


def running(intervals: pd.DataFrame) -> tuple[Numbers, Numbers, Numbers]:
    """The rows in which a thread ran on a known CPU, their CPUs, and their levels; none where CPUs show it themselves.

    Two threads never run on one CPU at once; where lost events make it look so, the later one is a level up.
    """
    chosen = (intervals["kind"] == "state") & (intervals["name"] == "running") & intervals["cpu"].notna()
    rows = np.flatnonzero(chosen.to_numpy() & ~(intervals["kind"] == RECORDED_RAN).any())
    cpus = intervals["cpu"].to_numpy(np.int64, na_value=-1)[rows]
    levels = np.zeros(len(rows), np.int64)
    begins, ends = (intervals[each].to_numpy()[rows] for each in ("t0_ns", "t1_ns"))
    for cpu in np.unique(cpus):
        left, level = np.flatnonzero(cpus == cpu), 0
        while len(left):
            levels[left] = level
            latest = np.maximum.accumulate(ends[left])
            left, level = left[1:][begins[left][1:] < latest[:-1]], level + 1
    return rows, cpus, levels


def _tracks(timeline: Timeline) -> Sequence[dict[str, Any]]:
    rows = timeline.tracks.astype(object).where(timeline.tracks.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def _homes(tree: Layout, tracks: Sequence[dict[str, Any]], about: dict[str, Any]) -> dict[int, int]:
    """The line of each track: threads under processes, and what belongs to a member under its first process."""
    homes: dict[int, int] = {}
    for one in _kind(tracks, "run"):
        homes[one["track"]] = tree.add(0, "group", f"{LAUNCH}: {one['name']}" if one["name"] else LAUNCH)
    processes = _processes(tree, tracks, homes, about)
    for one in _kind(tracks, "thread"):
        pid, tid = one["pid"], one["tid"]
        parent = processes.get(pid, 0) if pid is not None else homes.get(_above(one), 0)
        known = {"pid": pid, "tid": tid} if parent and pid is not None and tid is not None else {}
        name = one["name"] or (f"thread {tid}" if tid is not None else f"track {one['track']}")
        homes[one["track"]] = tree.add(parent, "thread" if known else "group", name, rank=10, **known)
    for one in tracks:
        if one["track"] not in homes:
            name = f"{DEVICE} {one['name']}" if one["kind"] == "device" else one["name"] or one["kind"]
            homes[one["track"]] = tree.add(homes.get(_above(one), 0), "group", name, rank=20)
    return homes


def _processes(
    tree: Layout, tracks: Sequence[dict[str, Any]], homes: dict[int, int], about: dict[str, Any]
) -> dict[int, int]:
    """A line per process, those of a member together; processes that only threads name are there too."""
    found: dict[int, int] = {}
    members = {one["member"] or one["name"]: one for one in _kind(tracks, "member")}
    known = [(one["member"] or "", one["pid"], one) for one in [*_kind(tracks, "process"), *_kind(tracks, "thread")]]
    for name in [*members, ""]:
        record = (about.get("members") or {}).get(name) or {}
        pids = dict.fromkeys(pid for whose, pid, _ in known if whose == name and pid is not None)
        first = record.get("pid") if record.get("pid") in pids or not pids else next(iter(pids))
        for pid in dict.fromkeys(each for each in (first, *pids) if each is not None):
            own = next((one["name"] for _, other, one in known if other == pid and one["kind"] == "process"), "")
            workload = str(record.get("workload") or "")
            words = [name, "" if workload in name else workload, own]
            title = " · ".join(filter(None, words)) or f"process {pid}"
            found[pid] = tree.add(0, "process", title, rank=5, pid=pid)
        if name:
            home = found[first] if first is not None else tree.add(0, "group", name, rank=5)
            homes[members[name]["track"]] = home
    for one in _kind(tracks, "process"):
        homes[one["track"]] = found[one["pid"]] if one["pid"] is not None else tree.add(0, "group", one["name"])
    return found


def _lanes(timeline: Timeline) -> Iterator[tuple[int, str, int]]:
    """Each track with each kind of its intervals and, last, its instants; and the place of that kind."""
    order = {kind: rank for rank, kind in enumerate(TITLES)}
    found = timeline.intervals[["track", "kind"]].drop_duplicates()
    rows = [(int(track), str(kind), order.get(kind, len(TITLES))) for track, kind in found.itertuples(index=False)]
    rows += [(int(track), EVENTS, len(TITLES) + 1) for track in pd.unique(timeline.instants["track"])]
    return iter(sorted(rows, key=lambda row: (row[0], row[2], row[1])))


def wakings(instants: pd.DataFrame) -> Numbers:
    """For each instant the number of the thread that woke another by it, or -1."""
    known = (instants["kind"] == "wakeup") & instants["value"].notna()
    numbers: Numbers = instants["value"].where(known, -1).to_numpy().astype(np.int64)
    return numbers


def _wakers(tree: Layout, tracks: Sequence[dict[str, Any]], homes: dict[int, int], instants: pd.DataFrame) -> None:
    """A lane for each thread that wakes others, from which arrows lead to them."""
    threads = {one["tid"]: one for one in _kind(tracks, "thread") if one["tid"] is not None}
    for tid in np.unique(wakings(instants)).tolist():
        if tid in threads:
            home = homes[threads[tid]["track"]]
            name = f"{threads[tid]['name'] or tid}: {WAKES}"
            tree.wakers[tid] = tree.add(home, "lane", name, rank=len(TITLES) + 1)


def _cpus(tree: Layout, who: int) -> None:
    """A lane per CPU on which threads of members ran, and further ones where two seem to have run at once."""
    _, cpus, levels = tree.running
    for rank, (cpu, level) in enumerate(sorted({*zip(cpus.tolist(), levels.tolist(), strict=True)})):
        tree.ran[cpu, level] = tree.add(who, "lane", f"cpu{cpu}" + (f" ({level + 1})" if level else ""), rank=rank)


def _kind(tracks: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in tracks if one["kind"] == kind]


def _above(track: dict[str, Any]) -> int:
    return -1 if track["parent"] is None else int(track["parent"])
