"""Writes a timeline in Perfetto's format: track events on CLOCK_MONOTONIC, their words once, packets compressed.

Many packets are written at once: Perfetto's own classes build one of each shape, its bytes are repeated, and the fields
that differ from packet to packet are written into all of them. That needs fields of a fixed width, so whole numbers are
padded: a varint may end in bytes that add nothing.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BuiltinClock, Trace, TracePacket, TrackEvent

from castmates.files import replace, writing
from castmates.timeline.export.layout import EVENTS, ON_CPU, WAKES, Layout, Numbers, layout, lookup, wakings
from castmates.timeline.export.perfetto_head import ANNOTATIONS, SEQUENCE, Words, first_packets
from castmates.timeline.model import Timeline

REAL, FIXED = "real", "fixed"  # the widths of a double, and of a whole number in eight bytes
Fill = Callable[[TracePacket, Mapping[str, Any]], None]  # fills a packet in from the values of its fields


class Shape:
    """The bytes of a packet, and where its fields lie."""

    def __init__(self, fill: Fill, widths: Mapping[str, int | str]) -> None:
        """Find each field by the bytes that change when it does: `widths` has its bytes, REAL or FIXED."""
        low, high = ({name: _mark(width, end) for name, width in widths.items()} for end in (0, 1))
        self._bytes = _packet(fill, low)
        self._places = {name: (_differing(self._bytes, _packet(fill, low | {name: high[name]}))) for name in widths}
        for name, width in widths.items():
            if len(self._places[name]) != (width if isinstance(width, int) else 8):
                raise AssertionError(f"{name} lies in {len(self._places[name])} bytes")
        self._wide = {
            name: {REAL: "<f8", FIXED: "<u8"}[width] for name, width in widths.items() if width in (REAL, FIXED)
        }

    def packets(self, count: int, fields: Mapping[str, Numbers | int]) -> bytes:
        """So many packets, with these fields."""
        rows = np.tile(self._bytes, (count, 1))
        for name, places in self._places.items():
            values = np.broadcast_to(np.asarray(fields[name]), count)
            wide = self._wide.get(name)
            rows[:, places] = _eights(values, wide) if wide else _varints(values, len(places))
        return rows.tobytes()


def width(highest: int) -> int:
    """How many bytes a varint of numbers up to this one needs."""
    return max(1, -(-int(highest).bit_length() // 7))


def _mark(width: int | str, end: int) -> int | float:
    """One of two values that differ in every byte."""
    if width == REAL:
        return float(struct.unpack("<d", bytes([1 + end]) * 8)[0])
    if width == FIXED:
        return int.from_bytes(bytes([1 + end]) * 8)
    return (1 << 7 * int(width)) - 1 if end else 1 << 7 * (int(width) - 1)


def _packet(fill: Fill, values: Mapping[str, Any]) -> Numbers:
    trace = Trace()
    fill(trace.packet.add(), values)
    return np.frombuffer(trace.SerializeToString(), np.uint8)


def _differing(one: Numbers, other: Numbers) -> Numbers:
    if len(one) != len(other):
        raise AssertionError("the length of a packet depends on its fields")
    return np.flatnonzero(one != other)


def _varints(values: Numbers, width: int) -> Numbers:
    """Whole numbers in seven bits a byte, the lowest first; every byte but the last has its high bit set."""
    shifts = 7 * np.arange(width, dtype=np.uint64)
    groups = (values.astype(np.uint64)[:, None] >> shifts) & np.uint64(127)
    groups[:, :-1] |= np.uint64(128)
    return groups.astype(np.uint8)


def _eights(values: Numbers, kind: str) -> Numbers:
    return np.ascontiguousarray(values, kind).view(np.uint8).reshape(-1, 8)


ROWS = 200_000  # that are in memory as packets at once
LEVEL = 1  # of compression: higher ones take far longer, and save little of rows that repeat
OF_ROWS = ("detail", "value", "cpu", "ends")  # what a row has beside its name, a bit each
FLOWS = ("begins", "ends")  # an arrow does so
NEEDS_WORDS = TracePacket.SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE


def write(timeline: Timeline, file: Path) -> None:
    """Write the file; it appears only once it is whole."""
    with writing(file):
        replace(file, lambda temporary: _write(timeline, temporary))


def _write(timeline: Timeline, file: Path) -> None:
    tree, words = layout(timeline), Words(timeline)
    with file.open("wb") as out:
        _put(out, first_packets(timeline, tree, words))
        for packets in _Rows(timeline, tree, words).parts():
            if packets:
                _put(out, packets)


def _put(out: BinaryIO, packets: bytes) -> None:
    """Packets as Perfetto itself compresses them: one packet that holds many."""
    whole = Trace()
    whole.packet.add().compressed_packets = zlib.compress(packets, LEVEL)
    out.write(whole.SerializeToString())


class _Rows:
    """All rows as packets, in parts by time."""

    def __init__(self, timeline: Timeline, tree: Layout, words: Words) -> None:
        self._words, self._shapes = words, dict[Any, Shape]()
        intervals, instants, samples, stacks = timeline.intervals, timeline.instants, timeline.samples, timeline.stacks
        self._intervals, self._instants, self._samples, self._stacks = intervals, instants, samples, stacks
        self._begins, self._ends = intervals["t0_ns"].to_numpy(), intervals["t1_ns"].to_numpy()
        self._by_end = _by_end(self._ends)
        self._ran = _ran(tree, intervals)
        self._tree, self._wakers = tree, _wakers(tree, instants)
        latest = max(
            (int(times.max()) for times in (self._ends, *(_times(each) for each in (instants, samples, stacks)))
             if len(times)), default=0,
        )  # fmt: skip
        self._widths = {
            "time": width(latest),
            "line": width(len(tree.nodes)),
            "name": width(words.count("names")),
            "kind": width(words.count("kinds")),
            "detail": width(words.count("details")),
            "stack": width(words.count("stacks")),
            "cpu": width(max((int(one["cpu"].max()) for one in (intervals, instants) if one["cpu"].notna().any()),
                             default=0)),
            "value": REAL,
            "flow": FIXED,
        }  # fmt: skip
        threads = timeline.tracks[timeline.tracks["pid"].notna() & timeline.tracks["tid"].notna()]
        self._threads = {row["track"]: (int(row["pid"]), int(row["tid"])) for row in threads.to_dict("records")}

    def parts(self) -> Iterator[bytes]:
        """The packets of one part after the other.

        Within a part, packets of one shape stand together: readers order them by time, and keep the order of those of
        the same time. So ends stand before begins, and outer intervals before those inside them.
        """
        series = [self._begins, *(_times(each) for each in (self._instants, self._samples, self._stacks))]
        edges = np.unique(np.concatenate([times[::ROWS] for times in series]))
        by_end = self._ends[self._by_end]
        at = [0] * (len(series) + 1)
        for edge in [*edges[1:].tolist(), None]:
            until = [len(times) if edge is None else int(np.searchsorted(times, edge)) for times in (by_end, *series)]
            ends, begins, instants, samples, stacks = (slice(*each) for each in zip(at, until, strict=True))
            at = until
            yield b"".join(
                [
                    *self._ended(self._by_end[ends]),
                    *self._begun(begins),
                    *self._happened(instants),
                    *self._sampled(samples),
                    *self._caught(stacks),
                ]
            )

    def _ended(self, rows: Numbers) -> Iterator[bytes]:
        rows = rows[self._begins[rows] < self._ends[rows]]
        part = self._intervals.take(rows)
        lines, ran = lookup(self._tree.lanes, part["track"], part["kind"]), self._ran[rows]
        yield self._packets("end", (), time=self._ends[rows], line=lines)
        yield self._packets("end", (), time=self._ends[rows][ran > 0], line=ran[ran > 0])

    def _begun(self, span: slice) -> Iterator[bytes]:
        part, ran = self._intervals.iloc[span], self._ran[span]
        lines = lookup(self._tree.lanes, part["track"], part["kind"])
        empty = (part["t0_ns"] == part["t1_ns"]).to_numpy()
        yield from self._named(
            part, part["t0_ns"].to_numpy(), lines, empty, part["depth"].to_numpy(), np.zeros(len(part), np.int8)
        )
        here = (ran > 0) & ~empty
        who = self._words.threads(part["track"].to_numpy()[here])
        kind = self._words.kind(ON_CPU)
        yield self._packets("begin", (), time=part["t0_ns"].to_numpy()[here], line=ran[here], name=who, kind=kind)

    def _happened(self, span: slice) -> Iterator[bytes]:
        part = self._instants.iloc[span]
        lines, times, wakers = lookup(self._tree.lanes, part["track"], EVENTS), _times(part), self._wakers[span]
        rows, flows = np.flatnonzero(wakers), np.arange(1, len(part) + 1) + span.start
        if len(rows):
            woken, kind = self._words.threads(part["track"].to_numpy()[rows]), self._words.kind(WAKES)
            who = {"time": times[rows], "line": wakers[rows], "name": woken, "kind": kind, "flow": flows[rows]}
            yield self._packets("instant", ("begins",), **who)
        flows[wakers == 0] = 0
        everything = np.ones(len(part), bool)
        yield from self._named(part, times, lines, everything, np.zeros(len(part), np.int8), flows)

    def _named(
        self, part: pd.DataFrame, times: Numbers, lines: Numbers, empty: Numbers, depths: Numbers, flows: Numbers
    ) -> Iterator[bytes]:
        """Begins of slices, outer ones first; what takes no time is an instant, to which an arrow may lead."""
        cells: dict[str, Numbers] = {
            "time": times,
            "line": lines,
            "name": self._words.numbers("names", part["name"]),
            "kind": self._words.numbers("kinds", part["kind"]),
            "detail": self._words.numbers("details", part["detail"]),
            "value": part["value"].to_numpy(),
            "cpu": part["cpu"].to_numpy(np.int64, na_value=0),
            "flow": flows,
        }
        there = (part["detail"] != "").to_numpy(), part["value"].notna().to_numpy(), part["cpu"].notna().to_numpy()
        bits = (*there, flows > 0, empty)
        shapes = np.add.reduce([has.astype(np.int64) << bit for bit, has in enumerate(bits)])
        for depth in np.unique(depths):
            for shape in np.unique(shapes[depths == depth]):
                chosen = np.flatnonzero((depths == depth) & (shapes == shape))
                more = tuple(name for bit, name in enumerate(OF_ROWS) if shape >> bit & 1)
                kind = "instant" if shape >> len(OF_ROWS) & 1 else "begin"
                yield self._packets(kind, more, **{name: cells[name][chosen] for name in _fields(more)})

    def _sampled(self, span: slice) -> Iterator[bytes]:
        part = self._samples.iloc[span]
        lines = lookup(self._tree.counters, part["track"], part["name"])
        yield self._packets("counter", (), time=part["t_ns"].to_numpy(), line=lines, value=part["value"].to_numpy())

    def _caught(self, span: slice) -> Iterator[bytes]:
        part = self._stacks.iloc[span]
        for track, rows in part.groupby("track", sort=False):
            if track in self._threads:  # Perfetto keeps stacks by numbered thread
                stacks = self._words.numbers("stacks", rows["stack"])
                yield self._packets("stack", self._threads[track], time=rows["t_ns"].to_numpy(), stack=stacks)

    def _packets(self, kind: str, more: tuple[Any, ...], /, **fields: Numbers | int) -> bytes:
        count = len(fields["time"])  # type: ignore[arg-type]  # times are always an array
        if not count:
            return b""
        if (kind, more) not in self._shapes:
            self._shapes[kind, more] = _shape(kind, more, {name: self._widths[name] for name in fields})
        return self._shapes[kind, more].packets(count, fields)


def _fields(more: tuple[str, ...]) -> tuple[str, ...]:
    return "time", "line", "name", "kind", *("flow" if each in FLOWS else each for each in more)


def _shape(kind: str, more: tuple[Any, ...], widths: Mapping[str, Any]) -> Shape:
    types = {"begin": TrackEvent.TYPE_SLICE_BEGIN, "end": TrackEvent.TYPE_SLICE_END, "instant": TrackEvent.TYPE_INSTANT,
             "counter": TrackEvent.TYPE_COUNTER}  # fmt: skip

    def fill(packet: TracePacket, values: Mapping[str, Any]) -> None:
        packet.timestamp, packet.trusted_packet_sequence_id = values["time"], SEQUENCE
        packet.timestamp_clock_id = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
        if kind in ("begin", "instant", "stack"):
            packet.sequence_flags = NEEDS_WORDS
        if kind == "stack":
            sample = packet.perf_sample
            sample.pid, sample.tid = more
            sample.callstack_iid = values["stack"]
            return
        event = packet.track_event
        event.type, event.track_uuid = types[kind], values["line"]
        if kind == "counter":
            event.double_counter_value = values["value"]
        if kind in ("begin", "instant"):
            event.name_iid = values["name"]
            event.category_iids.append(values["kind"])
        for name in more:
            _more(event, name, values)

    return Shape(fill, widths)


def _more(event: TrackEvent, name: str, values: Mapping[str, Any]) -> None:
    """What an event has beside its name."""
    match name:
        case "begins":
            event.flow_ids.append(values["flow"])
        case "ends":
            event.terminating_flow_ids.append(values["flow"])
        case "detail":
            event.debug_annotations.add(name_iid=ANNOTATIONS[name]).string_value_iid = values[name]
        case "value":
            event.debug_annotations.add(name_iid=ANNOTATIONS[name]).double_value = values[name]
        case "cpu":
            event.debug_annotations.add(name_iid=ANNOTATIONS[name]).uint_value = values[name]


def _by_end(ends: Numbers) -> Numbers:
    """The rows in the order in which they end; of those that end together, inner ones first."""
    rows: Numbers = len(ends) - 1 - np.argsort(ends[::-1], kind="stable")
    return rows


def _ran(tree: Layout, intervals: pd.DataFrame) -> Numbers:
    """For each interval the lane of a CPU that shows it too, or 0."""
    lines = np.zeros(len(intervals), np.int32)
    rows, cpus, levels = tree.running
    for (cpu, level), number in tree.ran.items():
        lines[rows[(cpus == cpu) & (levels == level)]] = number
    return lines


def _wakers(tree: Layout, instants: pd.DataFrame) -> Numbers:
    """For each instant the lane of the thread that woke another by it, or 0."""
    tids, codes = np.unique(wakings(instants), return_inverse=True)
    lines: Numbers = np.array([tree.wakers.get(tid, 0) for tid in tids.tolist()], np.int64)[codes]
    return lines


def _times(table: pd.DataFrame) -> Numbers:
    return table["t_ns"].to_numpy()
