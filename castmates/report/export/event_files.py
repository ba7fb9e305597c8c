"""Writes scalars as TensorBoard reads them: an event file, which is TFRecords of Event messages (event.proto); pure.

A record is its length, the length's checksum, the message and its checksum. A message has a time, a step and a summary;
the field simple_value of a summary is a scalar. TensorBoard keeps a description where the metadata beside it call it
a scalar too.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

MASK = 0xA282EAD8  # added to a checksum, so that checksums of checksums are none that occur
POLYNOMIAL = 0x82F63B78  # of CRC-32C, its bits reversed
VARINT, FIXED64, TEXT, FIXED32 = 0, 1, 2, 5  # kinds of fields
WALL_TIME, STEP, VERSION, SUMMARY = 1, 2, 3, 5  # of an Event
VALUE = 1  # of a Summary
TAG, SIMPLE_VALUE, METADATA = 1, 2, 9  # of its Value
PLUGIN, DESCRIPTION, DATA_CLASS = 1, 3, 4  # of a SummaryMetadata
NAME, SCALARS, SCALAR = 1, b"scalars", 1  # of the plug-in, in PluginData; and the data class


@dataclass(frozen=True)
class Scalar:
    """One value of a run."""

    tag: str
    step: int
    wall_time: float  # seconds since 1970
    value: float
    about: str = ""  # what it is, where TensorBoard explains it


def event_file(scalars: Iterable[Scalar], begun: float) -> Iterator[bytes]:
    """The records of an event file; each tag is explained once."""
    yield _record(_fixed64(WALL_TIME, begun) + _text(VERSION, b"brain.Event:2"))
    explained: set[str] = set()
    for one in scalars:
        about = b"" if one.tag in explained else _metadata(one.about)
        explained.add(one.tag)
        value = _text(TAG, one.tag.encode()) + _key(SIMPLE_VALUE, FIXED32) + struct.pack("<f", one.value) + about
        step = _key(STEP, VARINT) + _varint(one.step)
        yield _record(_fixed64(WALL_TIME, one.wall_time) + step + _text(SUMMARY, _text(VALUE, value)))


def _metadata(about: str) -> bytes:
    plugin = _text(PLUGIN, _text(NAME, SCALARS))
    return _text(METADATA, plugin + _text(DESCRIPTION, about.encode()) + _key(DATA_CLASS, VARINT) + _varint(SCALAR))


def checksum(data: bytes) -> int:
    """CRC-32C, as records store it: turned, and with a constant added."""
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + MASK) & 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


def _record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", checksum(length)) + message + struct.pack("<I", checksum(message))


def _fixed64(number: int, value: float) -> bytes:
    return _key(number, FIXED64) + struct.pack("<d", value)


def _text(number: int, content: bytes) -> bytes:
    return _key(number, TEXT) + _varint(len(content)) + content


def _key(number: int, kind: int) -> bytes:
    return bytes([number << 3 | kind])


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])
