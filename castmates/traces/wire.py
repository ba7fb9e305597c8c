"""Protobuf without generated code: the boundaries of fields, and the messages of an XSpace that are read.

A file need not fit into memory. Field numbers are those of TensorFlow's xplane.proto; only what is named here is kept
of a message, and protobuf skips fields that newer versions add.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

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


ONE, MANY = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL, descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
PACKAGE = "castmates.xplane"
FILE = "castmates/xplane.proto"
KINDS = {
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
}
MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {  # name -> field -> number, kind or message, repeated
    "Stat": {
        "metadata_id": (1, "int64", False),
        "double_value": (2, "double", False),
        "uint64_value": (3, "uint64", False),
        "int64_value": (4, "int64", False),
        "str_value": (5, "bytes", False),  # a string that need not be valid UTF-8
        "bytes_value": (6, "bytes", False),
        "ref_value": (7, "uint64", False),
    },
    "Event": {
        "metadata_id": (1, "int64", False),
        "offset_ps": (2, "int64", False),
        "duration_ps": (3, "int64", False),
        "stats": (4, "Stat", True),
    },
    "Line": {
        "id": (1, "int64", False),
        "name": (2, "bytes", False),
        "timestamp_ns": (3, "int64", False),
        "events": (4, "Event", True),
        "display_name": (11, "bytes", False),
    },
    "EventMetadata": {
        "id": (1, "int64", False),
        "name": (2, "bytes", False),
        "display_name": (4, "bytes", False),
        "stats": (5, "Stat", True),
    },
    "StatMetadata": {"id": (1, "int64", False), "name": (2, "bytes", False)},
    "EventEntry": {"key": (1, "int64", False), "value": (2, "EventMetadata", False)},
    "StatEntry": {"key": (1, "int64", False), "value": (2, "StatMetadata", False)},
    # A compiled program, of XLA's hlo.proto.
    "Program": {"module": (1, "Module", False)},
    "Module": {"computations": (3, "Computation", True)},
    "Computation": {"instructions": (2, "Instruction", True), "id": (5, "int64", False)},
    "Instruction": {
        "name": (1, "bytes", False),
        "opcode": (2, "bytes", False),
        "shape": (3, "Shape", False),
        "metadata": (7, "OpMetadata", False),
        "window": (15, "Window", False),
        "convolution": (16, "Convolution", False),
        "dot": (30, "Dot", False),
        "id": (35, "int64", False),
        "operands": (36, "int64", True),
        "called": (38, "int64", True),
        "feature_group_count": (50, "int64", False),
        "batch_group_count": (52, "int64", False),
    },
    "Shape": {
        "element_type": (2, "int64", False),
        "dimensions": (3, "int64", True),
        "tuple_shapes": (4, "Shape", True),
    },
    "Dot": {"lhs_contracting": (1, "int64", True)},
    "Window": {"dimensions": (1, "WindowDimension", True)},
    "WindowDimension": {
        "size": (1, "int64", False),
        "stride": (2, "int64", False),
        "padding_low": (3, "int64", False),
        "window_dilation": (5, "int64", False),
        "base_dilation": (6, "int64", False),
    },
    "Convolution": {
        "input_batch": (7, "int64", False),
        "input_feature": (8, "int64", False),
        "output_feature": (10, "int64", False),
        "input_spatial": (11, "int64", True),
        "output_spatial": (12, "int64", True),
    },
    "OpMetadata": {"op_name": (2, "bytes", False)},
}
STAT_VALUES = ("double_value", "uint64_value", "int64_value", "str_value", "bytes_value", "ref_value")


@cache
def message(name: str) -> Any:  # noqa: ANN401 (a class that protobuf makes)
    """The class of a message."""
    pool = _pool()
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto2")
    for name, fields in MESSAGES.items():
        own = file.message_type.add(name=name)
        for field, (number, kind, repeated) in fields.items():
            entry = own.field.add(name=field, number=number, label=MANY if repeated else ONE)
            entry.type = KINDS.get(kind, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE)
            if kind not in KINDS:
                entry.type_name = f".{PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
