"""Reads the loads that perf sampled into a timeline: as stacks whose weight is their latency in cycles."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from castmates.timeline.flames.printed import SLOWEST, about, taken
from castmates.timeline.latencies.data_source import served
from castmates.timeline.model import Making
from castmates.timeline.registry import Registry

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
    slowest: float = SLOWEST,
    span: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Add the sampled loads of a perf.data, of a `span` those within it; return what the record has of them."""
    rows: list[Load] = []

    def take(lines: Iterable[str]) -> None:
        rows.extend(each for each in loads(lines) if span is None or span[0] <= each.t_ns <= span[1])

    why = taken(file, FIELDS, slowest, take, "--itrace=M")
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
