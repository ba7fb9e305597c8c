"""Writes many packets of Perfetto's format at once.

Perfetto's own classes build one packet of each shape; its bytes are repeated, and the fields that differ from packet to
packet are written into all of them at once. That needs fields of a fixed width, so whole numbers are padded: a varint
may end in bytes that add nothing.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket

from castmates.timeline.export.layout import Numbers

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
