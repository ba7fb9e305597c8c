"""The boundaries of protobuf's fields in a file that need not fit into memory; pure."""

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, TEXT, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


class NotProtobuf(ValueError):
    """The bytes end early, or are no message; the text is the reason."""


class Field(NamedTuple):
    """A field of a message."""

    number: int
    begin: int  # of its tag
    content: int  # where its payload begins
    end: int
    value: int  # of a varint; 0 for others


def fields(data: memoryview, begin: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message between two offsets, without looking into them."""
    at = begin
    while at < end:
        start = at
        tag, at = varint(data, at, end)
        number, kind, value = tag >> 3, tag & 7, 0
        if kind == VARINT:
            content = at
            value, at = varint(data, at, end)
        elif kind == TEXT:
            length, content = varint(data, at, end)
            at = content + length
        elif kind in (FIXED64, FIXED32):
            content = at
            at += 8 if kind == FIXED64 else 4
        else:
            raise NotProtobuf("it has bytes that are no field")
        if at > end or number == 0:
            raise NotProtobuf("it was cut" if number else "it has bytes that are no field")
        yield Field(number, start, content, at, value)


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= 7 * LONGEST_VARINT:
            raise NotProtobuf("it has bytes that are no field")
    raise NotProtobuf("it was cut")


def runs(data: memoryview, begin: int, end: int, number: int, bytes_at_once: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of whole fields of this number that follow each other, none much longer than so many bytes.

    Fields of a repeated message one after the other are themselves a message of the outer kind, which can be parsed.
    """
    first = last = -1
    for field in fields(data, begin, end):
        if field.number != number:
            if first >= 0:
                yield first, last
            first = -1
            continue
        if first < 0:
            first = field.begin
        last = field.end
        if last - first >= bytes_at_once:
            yield first, last
            first = -1
    if first >= 0:
        yield first, last
