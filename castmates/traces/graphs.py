"""Reads the graph that a traced job left of its step, as nodes in an order in which each follows what it needs."""

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castmates.analysis.dataflow.work import HANDLE, Node, Tensor, in_order
from castmates.errors import CastmatesError
from castmates.files import reason
from castmates.traces.operations import identity
from castmates.workloads.tfmodels.xspace import FETCH

MOST_BYTES = 500_000_000  # that a graph has when it is unpacked
BACK = "NextIteration"  # from the end of a loop's body to its begin: no edge of one pass
CONTROL = -1


@dataclass(frozen=True)
class GraphNode:
    """A node with what it takes and gives."""

    name: str
    operation: str  # as calls are named
    device: str
    does: Node


@dataclass(frozen=True)
class StepGraph:
    """The graph of a step."""

    nodes: Sequence[GraphNode]  # each after all that it needs
    edges: Sequence[tuple[int, int, int]]  # needed node, node that needs it, which output (-1: control)
    other_graphs: int = 0  # that were made beside it, smaller ones
    other_nodes: int = 0


def read_graph(packed: bytes) -> StepGraph:
    """Read what a job has left; a graph that was not taken, is cut, foreign or a circle is a sentence."""
    content = _unpacked(packed)
    if reason := content.get("reason"):
        raise CastmatesError(str(reason))
    try:
        return _graph(content)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise CastmatesError("what the job left is no graph of its step") from None


def _unpacked(packed: bytes) -> Mapping[str, Any]:
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(packed, MOST_BYTES)
        if not unpacking.eof:
            raise CastmatesError("the graph of its step is cut, or larger than any that is read")
        content = json.loads(text)
    except (zlib.error, ValueError, RecursionError):
        raise CastmatesError("the graph of its step cannot be read: it is cut or damaged") from None
    if not isinstance(content, dict):
        raise CastmatesError("what the job left is no graph of its step")
    return content


def _graph(content: Mapping[str, Any]) -> StepGraph:
    given = content["nodes"]
    places = {str(each["name"]): place for place, each in enumerate(given)}
    edges = [
        (places[source], place, output)
        for place, each in enumerate(given)
        for source, output in map(_input, each["inputs"])
        if given[places[source]]["type"] != BACK
    ]
    order = in_order(list(places), ((source, target) for source, target, _ in edges))
    place_of = {old: new for new, old in enumerate(order)}
    outputs = [[_tensor(one) for one in each["outputs"]] for each in given]
    nodes = [_node(given[old], places, outputs) for old in order]
    moved = sorted((place_of[source], place_of[target], output) for source, target, output in edges)
    return StepGraph(nodes, moved, int(content.get("other_graphs", 0)), int(content.get("other_nodes", 0)))


def _input(text: str) -> tuple[str, int]:
    """`^name`, `name` or `name:2`: the node, and which of its outputs."""
    if text.startswith("^"):
        return text[1:], CONTROL
    name, colon, number = text.partition(":")
    return name, int(number) if colon else 0


def _tensor(given: Sequence[Any]) -> Tensor:
    dtype, shape = given
    return Tensor(str(dtype), None if shape is None else tuple(int(size) for size in shape))


def _node(given: Mapping[str, Any], places: Mapping[str, int], outputs: Sequence[Sequence[Tensor]]) -> GraphNode:
    name, type_ = str(given["name"]), str(given["type"])
    type_ = FETCH if type_.startswith(FETCH) else type_  # as calls are named
    taken = []
    for source, output in map(_input, given["inputs"]):
        if output != CONTROL:
            there = outputs[places[source]]
            taken.append(there[output] if output < len(there) else Tensor("", None))
    does = Node(type_, taken, outputs[places[name]], dict(given.get("attributes", {})))
    device = str(given.get("device", "")).rpartition("device:")[2]
    return GraphNode(name, FETCH if type_ == FETCH else identity(name), device, does)


def words_of(tensors: Sequence[Tensor]) -> str:
    """`float32[256,32]; int32[256]`: what a node takes or gives."""
    return "; ".join(_words(each) for each in tensors)


def _words(tensor: Tensor) -> str:
    dtype = tensor.dtype.removesuffix(HANDLE) or "?"
    mark = HANDLE if tensor.dtype.endswith(HANDLE) else ""
    if tensor.shape is None:
        return f"{dtype}{mark}[?]"
    return f"{dtype}{mark}[{','.join('?' if size < 0 else str(size) for size in tensor.shape)}]"


# Reads oneDNN's log of the primitives that it executed (ONEDNN_VERBOSE=profile_exec, with time stamps).
#
# A line has, separated by commas: the mark, the format's version and `primitive` (from oneDNN 3 on), the time stamp,
# `exec`, the engine, the primitive, its implementation, propagation, operands, attributes, algorithm, shapes, and how
# long it took. Time stamps are milliseconds of CLOCK_REALTIME when the primitive began, in steps of about 0.25 µs.
# Whatever else stands in the log is counted, and not read.

MARKS = ("onednn_verbose", "dnnl_verbose", "mkldnn_verbose")
FIELDS = 8  # after the engine, the time at the end
FOREIGN, CUT, UNKNOWN = "not oneDNN's", "cut", "unknown form"  # why a line is no execution
TIMELESS, ELSEWHERE = "without a time stamp", "not on a CPU"
_VERSION = re.compile(r"v\d+")
_STAMP = re.compile(r"\d+\.\d+")
_INFORMATION = re.compile(r"info,(?:oneDNN|DNNL|MKL-DNN) (v[\d.]+)|info,cpu,isa:(.*)")


@dataclass(frozen=True)
class Execution:
    """One execution of a primitive."""

    begin_ns: int  # CLOCK_REALTIME
    duration_ns: int
    primitive: str  # matmul, convolution …
    implementation: str  # brg_matmul:avx512_core; "" where oneDNN does not log it
    propagation: str  # forward_training, backward_data …; undef where there is only one
    operands: str  # as logged: src:f32::blocked:ab::f0 wei:…
    attributes: str
    algorithm: str
    shapes: str  # 256x384:384x512, mb4_ic16oc32_ih28…


@dataclass
class Log:
    """What a log has."""

    executions: list[Execution] = field(default_factory=list)
    other_lines: Counter[str] = field(default_factory=Counter)  # why they are no executions
    version: str = ""  # of oneDNN
    instructions: str = ""  # the most that oneDNN found on the processor, in its own words


def read_log(path: Path) -> Log:
    """Read a log; a file that cannot be read is a sentence, a line that cannot be is counted."""
    log = Log()
    try:
        with path.open("rb") as file:
            for raw in file:
                _take(log, raw)
    except OSError as problem:
        raise CastmatesError(f"{path}: oneDNN's log cannot be read ({reason(problem)}).") from None
    return log


def _take(log: Log, raw: bytes) -> None:
    line = raw.decode("utf-8", "replace")
    whole = line.endswith("\n")
    mark, _, rest = line.strip().partition(",")
    if mark not in MARKS:
        log.other_lines[FOREIGN if whole else CUT] += 1
        return
    if not whole:
        log.other_lines[CUT] += 1  # its last number may lack digits
        return
    words = rest.split(",")
    if _VERSION.fullmatch(words[0]):
        words.pop(0)
    if found := _INFORMATION.match(",".join(words)):
        log.version, log.instructions = found[1] or log.version, found[2] or log.instructions
    stamp = words.pop(0) if words and _STAMP.fullmatch(words[0]) else None
    if words[:1] == ["primitive"]:
        words.pop(0)
    if words[:1] != ["exec"]:
        log.other_lines[words[0].partition(":")[0] if words else CUT] += 1  # info, create, graph …
        return
    found_or_why = _execution(stamp, words[1:])
    if isinstance(found_or_why, str):
        log.other_lines[found_or_why] += 1
    else:
        log.executions.append(found_or_why)


def _execution(stamp: str | None, words: list[str]) -> Execution | str:
    """What a line says, or why it says nothing that can be used."""
    if len(words) != 1 + FIELDS:
        return UNKNOWN
    engine, *words, took = words
    if engine.partition(":")[0] != "cpu":
        return ELSEWHERE
    if stamp is None:
        return TIMELESS
    try:
        milliseconds = float(took)
    except ValueError:
        return UNKNOWN
    if not math.isfinite(milliseconds) or milliseconds < 0:
        return UNKNOWN
    primitive, implementation, propagation, operands, attributes, algorithm, shapes = (word.strip() for word in words)
    return Execution(
        begin_ns=nanoseconds(stamp),
        duration_ns=round(1e6 * milliseconds),
        primitive=primitive,
        implementation=implementation,
        propagation=propagation,
        operands=operands,
        attributes=attributes,
        algorithm=algorithm,
        shapes=shapes,
    )


def nanoseconds(milliseconds: str) -> int:
    """A time stamp in nanoseconds, by its digits: a float would lose some."""
    whole, _, part = milliseconds.partition(".")
    return 1_000_000 * int(whole) + int(f"{part:0<6.6}")


def operand_types(operands: str) -> Iterator[tuple[str, str]]:
    """The data type of each operand, by its role: src f32; `src:f32::blocked:ab::f0`, or `src_f32::…` before 3.5."""
    for operand in operands.split():
        found = re.match(r"((?:diff_)?(?:src|wei|bia|dst|data)|diff|ws|dat|stats)\d*[:_](\w+)", operand)
        if found and found[2] != "undef":
            yield found[1], found[2]
