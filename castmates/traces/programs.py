"""The compiled programs in a trace of JAX: what each of their instructions is an operation of.

XLA's CPU compiler names instructions; the program says which line of a JAX function each came from, by the scopes and
transformations around it: `jit(train)/transpose(jvp(layer0))/attention/dot_general` is the gradient of a product.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from castmates.analysis.explanations.framework_layers import jax_place
from castmates.traces import xplane
from castmates.traces.operations import WORKS, Operation
from castmates.traces.wire import NotProtobuf
from castmates.traces.xspace import Plane

METADATA = "/host:metadata"  # the plane that has them
PROGRAM = "Hlo Proto"  # the statistic that has one
NAMED = re.compile(r"(.*)\((\d+)\)")  # its module's name and number
CONTAINERS = frozenset({"while", "call", "conditional"})  # only call others
NOT_RUN = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
PRIMITIVES = {"dot": "dot_general", "convolution": "conv_general_dilated"}  # HLO's opcodes, and JAX's names
TRANSPOSED = "transpose"  # what JAX calls the transformation that makes gradients …
GRADIENT = "transpose(jvp)"  # … and the scope that they get here
_WRAPPED = re.compile(r"(\w+)\((.*)\)")
_NUMBER = re.compile(r"\.\d+$")
_SCOPE = re.compile(r"[A-Za-z_][\w.-]*")
Known = Mapping[str, Operation | None]  # by instruction; None for what only calls others


@dataclass(frozen=True)
class Path:
    """What a JAX operation's name shows."""

    scopes: tuple[str, ...]
    functions: tuple[str, ...]  # compiled apart by JAX itself, such as log_softmax
    primitive: str
    backward: bool


def programs_in(plane: Plane, ran: frozenset[str]) -> dict[int, Known]:
    """By number: the instructions of the programs that ran, or of all where it is not known which ones did."""
    every = [(found[1], int(found[2]), content) for found, content in _contents(plane)]
    chosen = [each for each in every if each[0] in ran] or every
    return {number: _instructions(content) for _, number, content in chosen}


def _contents(plane: Plane) -> Iterator[tuple[re.Match[str], bytes]]:
    for name, content in plane.bytes_of_events(PROGRAM):
        if found := NAMED.fullmatch(name):
            yield found, content


def _instructions(content: bytes) -> Known:
    try:
        module = xplane.message("Program").FromString(content).module
    except DecodeError:
        raise NotProtobuf("it has a program that is none") from None
    inside = {one.id: {each.opcode.decode() for each in one.instructions} for one in module.computations}
    fused = {called for one in module.computations for each in one.instructions for called in _fused(each)}
    return {
        each.name.decode(): _operation(each, inside)
        for one in module.computations
        if one.id not in fused
        for each in one.instructions
        if each.opcode.decode() not in NOT_RUN
    }


def _fused(instruction: Any) -> Sequence[int]:  # noqa: ANN401 (a message)
    return () if instruction.opcode.decode() in CONTAINERS else instruction.called


def _operation(instruction: Any, inside: Mapping[int, set[str]]) -> Operation | None:  # noqa: ANN401
    opcode, name = instruction.opcode.decode(), instruction.name.decode()
    if opcode in CONTAINERS:
        return None
    opcodes = {opcode}.union(*(inside.get(called, ()) for called in _fused(instruction)))
    path = path_of(instruction.metadata.op_name.decode("utf-8", "replace"))
    heavy = next((primitive for one, primitive in PRIMITIVES.items() if one in opcodes), "")
    primitive = heavy or path.primitive or (_NUMBER.sub("", name) if opcode == "fusion" else opcode)
    place = jax_place(path.scopes, path.functions, primitive, opcodes, path.backward)
    parts = [GRADIENT] * path.backward + [*path.scopes, f"{primitive} ({name})"]
    return Operation("/".join(parts), primitive, place, WORKS)


def path_of(name: str) -> Path:
    """The scopes, functions and primitive in a JAX operation's name."""
    scopes, functions, backward = [], [], False
    *around, primitive = _split(name)
    for number, part in enumerate(around):
        while found := _WRAPPED.fullmatch(part):
            backward |= found[1] == TRANSPOSED
            part = found[2]
            if found[1] in ("jit", "pjit"):
                functions += [part] * (number > 0)  # the first one is the whole program
                part = ""
        if _SCOPE.fullmatch(part):
            scopes.append(part)
    primitive = primitive if around and _SCOPE.fullmatch(primitive) else ""  # what stands alone is an argument
    return Path(tuple(scopes), tuple(functions), primitive, backward)


def _split(name: str) -> list[str]:
    """Parts between slashes, but for those within parentheses."""
    parts, depth = [""], 0
    for letter in name:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def merged(programs: Mapping[int, Known]) -> tuple[dict[str, Operation | None], frozenset[str]]:
    """Instructions of all programs by name alone, and the names that mean different things in different programs."""
    meanings: dict[str, list[Operation | None]] = defaultdict(list)
    for known in programs.values():
        for name, operation in known.items():
            if operation not in meanings[name]:
                meanings[name].append(operation)
    several = frozenset(name for name, found in meanings.items() if len(found) > 1)
    return {name: found[0] for name, found in meanings.items()}, several
