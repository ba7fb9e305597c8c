"""The metadata of a trace in the Common Trace Format 1.8: what its streams' bytes mean, in TSDL."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from castmates.timeline.export.ctf_streams import PACKET_CONTEXT, Labels, Trace

_START = """/* CTF 1.8 */

typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 32; align = 8; signed = true; }} := int32_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;
typealias floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} := double;

trace {{
	major = 1;
	minor = 8;
	uuid = "{uuid}";
	byte_order = le;
	packet.header := struct {{
		uint32_t magic;
		uint8_t uuid[16];
		uint32_t stream_id;
	}};
}};

env {{
{env}
}};

clock {{
	name = "{clock}";
	description = "{clock}";
	freq = 1000000000;
	offset_s = {offset_s};
	offset = {offset};
}};

typealias integer {{ size = 64; align = 8; signed = false; map = clock.{clock}.value; }} := time_t;
"""
_STREAM = """
stream {{
	id = 0;
	event.header := struct {{
		uint16_t id;
		time_t timestamp;
	}};
	packet.context := struct {{
{packet}
	}};
	event.context := struct {{
{context}
	}};
}};
"""
_EVENT = """
event {{
	name = "{name}";
	id = {number};
	stream_id = 0;
	fields := struct {{
{fields}
	}};
}};
"""
SECOND = 10**9


def metadata(trace: Trace, env: Mapping[str, str | int], clock: str, offset_ns: int) -> str:
    """The metadata of a trace whose streams are written."""
    offset_s, offset = divmod(offset_ns, SECOND)
    words = "\n".join(f"\t{key} = {_value(value)};" for key, value in env.items())
    text = _START.format(uuid=trace.uuid, env=words, clock=clock, offset_s=offset_s, offset=offset)
    packet = [(name, "time" if name.startswith("timestamp") else kind) for name, kind in PACKET_CONTEXT]
    text += _STREAM.format(packet=_fields(packet, ""), context=_fields(trace.context, "_"))
    for number, shape in sorted(trace.shapes.values(), key=lambda each: each[0]):
        text += _EVENT.format(name=shape.name, number=number, fields=_fields(shape.fields, "_"))
    return text


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else _quoted(value)


def _fields(fields: Sequence[tuple[str, str | Labels]], before: str) -> str:
    """Declarations of fields; LTTng puts an underscore before names, so that none is a word of TSDL."""
    return "\n".join(f"\t\t{_type(kind, before + name)};" for name, kind in fields)


def _type(kind: str | Labels, name: str) -> str:
    if isinstance(kind, Labels):
        labels = ", ".join(f"{_quoted(word)} = {number}" for number, word in enumerate(kind.words))
        return f"enum : uint32_t {{ {labels} }} {name}"
    if kind == "time":
        return f"time_t {name}"
    of = np.dtype(kind)
    if of.kind == "S":
        return f"integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} {name}[{of.itemsize}]"
    return f"{_number(of)} {name}"


def _number(of: np.dtype[Any]) -> str:
    if of.kind == "f":
        return "double"
    return f"{'u' if of.kind == 'u' else ''}int{8 * of.itemsize}_t"


def _quoted(word: str) -> str:
    escaped = (
        word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return '"' + "".join(letter if letter.isprintable() else "?" for letter in escaped) + '"'
