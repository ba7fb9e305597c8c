"""Writes a timeline as Chrome's trace JSON: an object a line, times in microseconds from the first moment.

A reader of this format knows processes and threads only, and lets what is on one thread nest. So every lane is a thread
there: the first lane of a thread has its number, and the others have numbers that no real thread has.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from castmates.files import replace, writing
from castmates.timeline.export.layout import EVENTS, ON_CPU, Layout, Numbers, layout, lookup
from castmates.timeline.model import Timeline, clock_of, start

ROWS = 200_000  # that are text at once
FIRST_MADE_UP = 1 << 23  # Linux numbers processes and threads up to 2**22
Places = Mapping[int, tuple[int, int]]  # line -> pid, tid


def write(timeline: Timeline, file: Path) -> None:
    """Write the file; it appears only once it is whole."""
    with writing(file):
        replace(file, lambda temporary: _write(timeline, temporary))


def _write(timeline: Timeline, file: Path) -> None:
    tree, origin = layout(timeline), start(timeline)
    places = _places(tree)
    about = {"clock": clock_of(timeline.about), "origin_ns": origin, "about": timeline.about}
    with file.open("w", encoding="utf-8") as out:
        out.write(f'{{"displayTimeUnit": "ns",\n"otherData": {json.dumps(about, default=str)},\n"traceEvents": [\n')
        _lines(out, _names(tree, places), first=True)
        _lines(out, _intervals(timeline.intervals, tree, places, origin))
        _lines(out, _ran(timeline, tree, places, origin))
        _lines(out, _instants(timeline.instants, tree, places, origin))
        _lines(out, _samples(timeline.samples, tree, places, origin))
        out.write("\n]}\n")


def _lines(out: TextIO, rows: Iterator[str], first: bool = False) -> None:
    for row in rows:
        out.write(row if first else f",\n{row}")
        first = False


def _places(tree: Layout) -> Places:
    """The process and the thread as which each line is shown."""
    made_up, found, taken = count(FIRST_MADE_UP), dict[int, tuple[int, int]](), set[tuple[int, int]]()
    nodes = {node.number: node for node in tree.nodes}
    for node in tree.nodes:
        above = node
        while above.parent and above.pid is None:
            above = nodes[above.parent]
        pid = above.pid if above.pid is not None else found.get(above.number, (next(made_up), 0))[0]
        own = (pid, above.tid) if above.tid is not None and node.kind == "lane" else None
        if own is None or own in taken:
            own = (pid, pid if node.kind in ("process", "counter") else next(made_up))
        found[node.number] = own
        if node.kind == "lane":
            taken.add(own)
    return found


def _names(tree: Layout, places: Places) -> Iterator[str]:
    """The names of processes, and of lanes with the thread that they belong to."""
    nodes = {node.number: node for node in tree.nodes}
    for node in tree.nodes:
        pid, tid = places[node.number]
        if not node.parent:
            yield _meta("process_name", pid, pid, name=node.name)
        if node.kind == "lane":
            above = nodes[node.parent]
            number = f" ({above.tid})" if above.kind == "thread" else ""
            yield _meta("thread_name", pid, tid, name=node.name + number)
            yield _meta("thread_sort_index", pid, tid, sort_index=node.number)


def _meta(what: str, pid: int, tid: int, **args: str | int) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args})


def _intervals(table: pd.DataFrame, tree: Layout, places: Places, origin: int) -> Iterator[str]:
    """Complete events (X); their order is that of the table, so outer ones stand before inner ones."""
    for part in _parts(table):
        lines = lookup(tree.lanes, part["track"], part["kind"])
        cells = (part["t0_ns"] - origin, part["t1_ns"] - part["t0_ns"], lines, part["kind"], part["name"])
        rows = zip(*(each.tolist() for each in cells), _args(part), strict=True)
        for begin, length, line, kind, name, args in rows:
            yield f'{{"ph":"X",{_at(begin)},"dur":{_us(length)},{_place(places, line)},{_word(kind, name)}{args}}}'


def _ran(timeline: Timeline, tree: Layout, places: Places, origin: int) -> Iterator[str]:
    """Which thread ran on each CPU."""
    rows, cpus, levels = tree.running
    names = timeline.tracks.set_index("track")["name"]
    for first in range(0, len(rows), ROWS):
        span = slice(first, first + ROWS)
        part = timeline.intervals.take(rows[span])
        who = names.loc[part["track"]].tolist()
        cells = (part["t0_ns"] - origin, part["t1_ns"] - part["t0_ns"], cpus[span], levels[span])
        for begin, length, cpu, level, name in zip(*(each.tolist() for each in cells), who, strict=True):
            line = tree.ran[cpu, level]
            yield f'{{"ph":"X",{_at(begin)},"dur":{_us(length)},{_place(places, line)},{_word(ON_CPU, name)}}}'


def _instants(table: pd.DataFrame, tree: Layout, places: Places, origin: int) -> Iterator[str]:
    for part in _parts(table):
        lines = lookup(tree.lanes, part["track"], EVENTS)
        cells = (part["t_ns"] - origin, lines, part["kind"], part["name"])
        for time, line, kind, name, args in zip(*(each.tolist() for each in cells), _args(part), strict=True):
            yield f'{{"ph":"i","s":"t",{_at(time)},{_place(places, line)},{_word(kind, name)}{args}}}'


def _samples(table: pd.DataFrame, tree: Layout, places: Places, origin: int) -> Iterator[str]:
    """Counters (C), whose value is named by its unit."""
    for part in _parts(table[table["value"].notna()]):
        lines = lookup(tree.counters, part["track"], part["name"])
        cells = (part["t_ns"] - origin, lines, part["name"], part["unit"], part["value"])
        for time, line, name, unit, value in zip(*(each.tolist() for each in cells), strict=True):
            args = f'"args":{{{_text(unit or "value")}:{_number(value)}}}'
            yield f'{{"ph":"C",{_at(time)},{_place(places, line)},"name":{_text(name)},{args}}}'


def _parts(table: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for first in range(0, len(table), ROWS):
        yield table.iloc[first : first + ROWS]


def _args(part: pd.DataFrame) -> Iterator[str]:
    """What a row has beside its name: the CPU, the value, the detail."""
    cpus: Numbers = part["cpu"].to_numpy(np.int64, na_value=-1)
    for cpu, value, detail in zip(cpus.tolist(), part["value"].tolist(), part["detail"].tolist(), strict=True):
        found = [f'"cpu":{cpu}'] if cpu >= 0 else []
        if value == value:  # not NaN
            found.append(f'"value":{_number(value)}')
        if detail:
            found.append(f'"detail":{_text(detail)}')
        yield f',"args":{{{",".join(found)}}}' if found else ""


def _at(time: int) -> str:
    return f'"ts":{_us(time)}'


def _us(nanoseconds: int) -> str:
    """Nanoseconds as microseconds, exactly."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _place(places: Places, line: int) -> str:
    pid, tid = places[line]
    return f'"pid":{pid},"tid":{tid}'


@cache
def _word(kind: str, name: str) -> str:
    return f'"cat":{_text(kind)},"name":{_text(name)}'


@cache
def _text(word: str) -> str:
    return json.dumps(word)


def _number(value: float) -> str:
    """A number in JSON, which has no infinity."""
    return json.dumps(value) if abs(value) < float("inf") else json.dumps(str(value))
