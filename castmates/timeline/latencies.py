"""Sampled loads with their latencies, from PEBS, IBS or SPE: read, and summed up. Not tried on real hardware."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from castmates.timeline.flames.profile import ALONE, CORUN, stretches
from castmates.timeline.flames.reading import about, taken
from castmates.timeline.model import Making, Registry, Timeline

LOAD = 0x02
# `mem_lvl_num`, which newer kernels fill; 0 and 15 are no level.
LEVELS = {
    1: "L1",
    2: "L2",
    3: "LLC",
    4: "L4",
    5: "L2",  # its buffer of misses
    6: "memory-side cache",
    7: "L0",
    8: "uncached",
    9: "CXL",
    10: "I/O",
    11: "another cache",
    12: "fill buffer",
    13: "DRAM",
    14: "persistent memory",
}
# `mem_lvl`, bits of older kernels; of several the slowest, because it is what served the load.
MISS, REMOTE_CACHE, FARTHER_CACHE = 0x04, 0x400, 0x800
REMOTE_RAM = 0x100 | 0x200
FLAGS = (
    (0x2000, "uncached"),
    (0x1000, "I/O"),
    (REMOTE_RAM | 0x80, "DRAM"),
    (0x40, "LLC"),  # before other caches: AMD sets both bits for the caches of one node
    (REMOTE_CACHE | FARTHER_CACHE, "another cache"),
    (0x20, "L2"),
    (0x10, "fill buffer"),
    (0x08, "L1"),
)
UNKNOWN = "not known"
ORDER = (*dict.fromkeys(["L0", "L1", "fill buffer", "L2", "LLC", "L4", *LEVELS.values()]), UNKNOWN)


class Served(NamedTuple):
    """What served a load."""

    is_load: bool
    level: str
    is_remote: bool  # on another node


def served(data_source: int) -> Served:
    """Where a load was served from, by the bits in which Linux has it (perf_event.h, perf_mem_data_src)."""
    operation, level = data_source & 0x1F, data_source >> 5 & 0x3FFF
    number, remote, hops = data_source >> 33 & 0xF, data_source >> 37 & 1, data_source >> 43 & 7
    name = LEVELS.get(number, "")
    if not name and not level & MISS:  # "L1 miss" is all that some records know
        name = next((each for bits, each in FLAGS if level & bits), "")
    # One hop is another core of the same node, where the number of hops is known; AMD's caches of one node come with
    # the bit of a remote cache, too.
    far = hops >= 2 or (remote and not hops)
    by_flags = level & (REMOTE_RAM | FARTHER_CACHE) or (level & REMOTE_CACHE and not level & 0x40 and hops != 1)
    return Served(bool(operation & LOAD), name or UNKNOWN, bool(far or by_flags))


EVENT = "load latency"  # what these rows of the table of stacks are known by
MEMORY, REMOTE = "memory", "another node"
FIELDS = "comm,pid,tid,cpu,time,event,addr,data_src,weight"
# Of one record of SPE perf makes samples of several events; this one has all of them.
OF_SPE = re.compile(r"(l1d|llc|tlb|branch|remote)-(access|miss)|instructions|branch")

_LINE = re.compile(
    r"\s*(?P<comm>.*?)\s+(?:(?P<pid>-?\d+)/)?(?P<tid>-?\d+)\s+(?:\[(?P<cpu>\d+)\]\s+)?(?P<s>\d+)\.(?P<part>\d+):\s+"
    r"(?:\d+\s+)?(?P<event>\S+):\s+(?:(?P<addr>[0-9a-f]+)\s+)?(?P<source>[0-9a-f]+)\s+\|OP (?P<words>.*)$"
)
_WEIGHT = re.compile(r"\|BLK\s+.*?\s(\d+)(?:\s|$)|\|LCK \S+\s+(\d+)(?:\s|$)")


class Load(NamedTuple):
    """One sampled load."""

    comm: str
    pid: int | None
    tid: int
    cpu: int | None
    t_ns: int
    event: str
    level: str
    is_remote: bool
    cycles: float | None  # None where the source has none, as IBS of loads that hit L1


def loads(lines: Iterable[str]) -> Iterator[Load]:
    """The loads among the lines of `perf script`; stores and what has no source are left out."""
    for line in lines:
        found = _LINE.match(line)
        if found is None or OF_SPE.fullmatch(found["event"]):
            continue
        from_where = served(int(found["source"], 16))
        if not from_where.is_load:
            continue
        weight = _WEIGHT.search(found["words"])
        cycles = float(weight[1] or weight[2]) if weight else 0.0
        part = found["part"].ljust(9, "0")[:9]
        yield Load(
            comm=found["comm"],
            pid=int(found["pid"]) if found["pid"] else None,
            tid=int(found["tid"]),
            cpu=int(found["cpu"]) if found["cpu"] else None,
            t_ns=int(found["s"]) * 1_000_000_000 + int(part),
            event=found["event"],
            level=from_where.level,
            is_remote=from_where.is_remote,
            cycles=cycles or None,
        )


def add_latencies(
    making: Making,
    registry: Registry,
    file: Path,
    members: Mapping[int, str],
    span: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Add the sampled loads of a perf.data, of a `span` those within it; return what the record has of them."""
    rows: list[Load] = []

    def take(lines: Iterable[str]) -> None:
        rows.extend(each for each in loads(lines) if span is None or span[0] <= each.t_ns <= span[1])

    why = taken(file, FIELDS, take, "--itrace=M")
    if rows:
        making.stacks(
            t_ns=[each.t_ns for each in rows],
            track=[registry.thread(each.tid, each.pid, each.comm, members.get(each.pid or 0, "")) for each in rows],
            cpu=[each.cpu for each in rows],
            event=EVENT,
            weight=[float("nan") if each.cycles is None else each.cycles for each in rows],
            stack=[";".join([MEMORY, each.level, *([REMOTE] if each.is_remote else [])]) for each in rows],
            source="perf",
        )
    events = {EVENT: len(rows)} if rows else {}
    return about("latencies", file, events, 0, why or ("" if rows else "perf sampled no loads"))


ALL = "all"
QUANTILES = {"cycles_median": 0.5, "cycles_90": 0.9, "cycles_99": 0.99}


def latencies(timeline: Timeline, member: str) -> pd.DataFrame:
    """A row per scene and level: sampled loads, their share, quantiles of latency, and the share from other nodes.

    Quantiles are of the loads that the source samples: Intel's and Arm's take slow ones alone. They are in the cycles
    of that source, so they compare scenes, not processors.
    """
    tracks = timeline.tracks
    own = tracks.loc[(tracks["member"] == member) & (tracks["kind"] == "thread"), "track"]
    sampled = timeline.stacks[(timeline.stacks["event"] == EVENT) & timeline.stacks["track"].isin(own)]
    rows = []
    for scene in (ALONE, CORUN):
        times = sampled["t_ns"]
        inside = pd.Series(False, index=sampled.index)
        for each in stretches(timeline, member, scene):
            inside |= (times >= each.t0_ns) & (times < each.t1_ns)
        rows.extend(_of_scene(sampled[inside], member, scene))
    columns = ["member", "scene", "level", "loads", "share", *QUANTILES, "remote_share"]
    return pd.DataFrame(rows, columns=columns)


def _of_scene(found: pd.DataFrame, member: str, scene: str) -> list[list[object]]:
    if found.empty:
        return []
    parts = found["stack"].astype(str).str.split(";")
    level, remote = parts.str[1], parts.str[2] == REMOTE
    rows = []
    for name in (ALL, *ORDER):
        those = level.notna() if name == ALL else level == name
        if those.any():
            quantiles = [float(found.loc[those, "weight"].quantile(each)) for each in QUANTILES.values()]
            share, far = float(those.mean()), float(remote[those].mean())
            rows.append([member, scene, name, int(those.sum()), share, *quantiles, far])
    return rows
