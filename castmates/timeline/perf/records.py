"""The records of a perf.data file, piece by piece: where each begins, without reading more than a piece at a time."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from castmates.timeline.perf.header import Header, compressed, damaged
from castmates.timeline.perf.layout import Places, Words

PIECE = 1 << 25  # bytes
AUXTRACE, COMPRESSED, COMPRESSED2 = 71, 81, 83  # types that perf itself writes
_BROKEN = 1 << 60
_INCOMPLETE = "its last record is incomplete"


class Piece(NamedTuple):
    """Whole records of a file."""

    words: Words
    quarters: npt.NDArray[np.uint32]  # the same in units of four bytes
    begins: Places
    ends: Places
    types: npt.NDArray[np.uint32]
    misc: npt.NDArray[np.uint16]


def pieces(header: Header, stream: BinaryIO) -> Iterator[Piece]:
    """Yield the records, which follow each other without gaps; each has its size in its head."""
    at, end = header.begin, header.begin + header.size
    while at < end:
        stream.seek(at)
        data = stream.read(min(PIECE, end - at) // 8 * 8)
        piece, skipped = _piece(header, data, at)
        if not len(piece.begins):
            raise damaged(header.file, _INCOMPLETE)
        yield piece
        at += 8 * int(piece.ends[-1]) + skipped
    if at > end:
        raise damaged(header.file, _INCOMPLETE)


def _piece(header: Header, data: bytes, at: int) -> tuple[Piece, int]:
    """The whole records at the begin of some bytes; and how many bytes behind them are no records."""
    begins, end = _walk(memoryview(data).cast("H"))
    edges = np.array([*begins, end], np.int64)
    if end > len(data) // 2:
        edges = edges[:-1]  # the last one goes on behind these bytes
    words = np.frombuffer(data, "<u8")
    heads = words[edges[:-1] // 4]
    types = (heads & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    aux = np.flatnonzero(types == AUXTRACE)[:1]
    if len(aux):
        edges, types, heads = edges[: aux[0] + 2], types[: aux[0] + 1], heads[: aux[0] + 1]
    elif end >= _BROKEN:
        raise damaged(header.file, f"the record at byte {at + 2 * begins[-1]} has no size")
    if (edges % 4).any():
        raise damaged(header.file, f"a record behind byte {at} has an impossible size")
    if np.isin(types, (COMPRESSED, COMPRESSED2)).any():
        raise compressed(header.file)
    places = edges // 4
    misc = (heads >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.uint16)
    piece = Piece(words, np.frombuffer(data, "<u4"), places[:-1], places[1:], types, misc)
    return piece, _behind(piece) if len(aux) else 0


def _walk(halves: memoryview) -> tuple[list[int], int]:
    """Where records begin, in units of two bytes, and where the last one ends: this runs once for each record."""
    at, last, begins = 0, len(halves) - 3, list[int]()
    add = begins.append
    while at < last:
        add(at)
        at += (halves[at + 3] >> 1) or _BROKEN
    return begins, at


def _behind(piece: Piece) -> int:
    """How many bytes of a hardware trace follow the last record, as that record has it."""
    begin, end = int(piece.begins[-1]), int(piece.ends[-1])
    return int(piece.words[begin + 1]) if end > begin + 1 else 0
