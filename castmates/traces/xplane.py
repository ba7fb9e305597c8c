"""The messages of an XSpace that are read, as protobuf classes: field numbers are those of TensorFlow's xplane.proto.

Only what is named here is kept of a message; protobuf skips fields that newer versions add.
"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

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
        "metadata": (7, "OpMetadata", False),
        "called": (38, "int64", True),
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
