"""Reads a recorded XSpace without TensorFlow, by the numbers of its fields (xplane.proto), for tests only."""

import gzip
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

RECORDED = Path(__file__).parents[1] / "data" / "xspace" / "tiny.xplane.pb.gz"


def recorded() -> SimpleNamespace:
    """The recorded space, with the attributes of TensorFlow's own reader that are used here."""
    space = _fields(gzip.decompress(RECORDED.read_bytes()))
    return SimpleNamespace(planes=[_plane(_fields(one)) for one in space[1]])


def _plane(fields):
    names = [_fields(entry) for entry in fields[4]]
    return SimpleNamespace(
        name=_text(fields[2]),
        lines=[_line(_fields(one)) for one in fields[3]],
        event_metadata={_one(entry[1]): SimpleNamespace(name=_text(_fields(entry[2][0])[2])) for entry in names},
    )


def _line(fields):
    events = [_fields(one) for one in fields[4]]
    return SimpleNamespace(
        name=_text(fields[2]),
        timestamp_ns=_one(fields[3]),
        events=[
            SimpleNamespace(metadata_id=_one(one[1]), offset_ps=_one(one[2]), duration_ps=_one(one[3]))
            for one in events
        ],
    )


def _one(values):
    return values[0] if values else 0


def _text(values):
    return values[0].decode() if values else ""


def _fields(data: bytes) -> dict[int, list]:
    """The fields of a message: numbers, and bytes for everything that has a length."""
    found, place = defaultdict(list), 0
    while place < len(data):
        tag, place = _number(data, place)
        kind = tag & 7
        if kind == 0:
            value, place = _number(data, place)
        else:
            size, place = _number(data, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
            value, place = data[place : place + size], place + size
        found[tag >> 3].append(value)
    return found


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
