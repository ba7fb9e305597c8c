"""Reads the graph that a traced job left of its step, as nodes in an order in which each follows what it needs."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castmates.analysis.dataflow.work import HANDLE, Node, Tensor, in_order
from castmates.errors import CastmatesError
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
