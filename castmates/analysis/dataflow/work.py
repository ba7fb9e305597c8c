"""How much a node of a graph computes and moves, estimated from its type and the shapes of its operands; pure.

Floating-point operations are nominal: 2 M N K of a product, all taps of a convolution with those in its padding, one
per element of what is computed element by element, whatever that takes the processor. What is fused to a product counts
with the product alone. Bytes are those of all operands, each once: a lower bound of the traffic. What only passes a
tensor on moves nothing. NaN is unknown; docs/tracing-graph.md has the table.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from castmates.analysis.operations.instructions import NOTHING_KNOWN, Work
from castmates.errors import CastmatesError

HANDLE = "*"  # behind the type of what a variable's handle stands for
BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "float8_e5m2": 1,
    "float8_e4m3fn": 1, "qint8": 1, "quint8": 1, "qint32": 4,
}  # fmt: skip
PREFIX = re.compile(r"_?(Mkl)?(Native)?_?(Fused)?")
KEPT = re.compile(r"Fused(BatchNorm\w*|Elementwise\w*)")  # types whose own name begins like the prefix


class Tensor(NamedTuple):
    """What a node takes or gives; a dimension of -1, and a shape of None, is not known."""

    dtype: str
    shape: tuple[int, ...] | None

    @property
    def size(self) -> float:
        """Elements; NaN where they are not known."""
        if self.shape is None or any(size < 0 for size in self.shape):
            return math.nan
        return float(math.prod(self.shape))

    @property
    def bytes(self) -> float:
        """Of the tensor, or of what the handle stands for."""
        return self.size * BYTES.get(self.dtype.removesuffix(HANDLE), math.nan)


class Node(NamedTuple):
    """What a node does."""

    type: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    attributes: Mapping[str, Any] = {}


def work_of(node: Node) -> Work:
    """The work of one execution; what is not known is NaN, never 0."""
    type_ = plain_type(node.type)
    try:
        if type_ in PASSES:
            return Work(0.0, 0.0)
        if (known := SPECIAL.get(type_)) is not None:
            return known(node)
        if type_ in MOVES:
            return Work(0.0, _all(node))
        if type_ in EACH:
            return Work(EACH[type_] * node.outputs[0].size, _all(node))
        if type_ in REDUCED:
            return Work(REDUCED[type_] * node.inputs[0].size, _all(node))
    except (IndexError, TypeError, ValueError, KeyError):
        return NOTHING_KNOWN
    return NOTHING_KNOWN


def plain_type(type_: str) -> str:
    """A type without what oneDNN and fusion put before it: _MklNativeFusedMatMul is a MatMul."""
    if KEPT.fullmatch(type_.lstrip("_")):
        return type_.lstrip("_")
    return PREFIX.sub("", type_, count=1) or type_


def _all(node: Node) -> float:
    """Bytes of all that a node takes and gives, each once."""
    return math.fsum(each.bytes for each in (*node.inputs, *node.outputs))


def _matmul(node: Node) -> Work:
    left = node.inputs[0].shape or ()
    turned = node.attributes.get("transpose_a") or node.attributes.get("adj_x")
    inner = float(left[-2] if turned else left[-1])
    return Work(2.0 * node.outputs[0].size * (inner if inner >= 0 else math.nan), _all(node))


def _einsum(node: Node) -> Work:
    """Two operands whose letters each stand for one dimension: a product over all letters."""
    taken, _, given = str(node.attributes["equation"]).replace(" ", "").partition("->")
    operands = taken.split(",")
    sizes: dict[str, float] = {}
    for letters, tensor in zip([*operands, given], [*node.inputs, node.outputs[0]], strict=True):
        shape = tensor.shape or ()
        if "." in letters or len(letters) != len(shape):
            return Work(math.nan, _all(node))
        sizes |= {letter: float(size) if size >= 0 else math.nan for letter, size in zip(letters, shape, strict=True)}
    if len(operands) != 2:
        return Work(math.nan, _all(node))
    return Work(2.0 * math.prod(sizes.values()), _all(node))


def _convolution(filters: int, images: int) -> Callable[[Node], Work]:
    """The places of the filter and of the larger side's images among inputs and, after them, outputs."""

    def work(node: Node) -> Work:
        tensors = [*node.inputs, *node.outputs]
        shape = tensors[filters if filters >= 0 else len(node.inputs)].shape
        result = tensors[images if images >= 0 else len(node.inputs)].size
        if shape is None or len(shape) < 3 or min(shape) < 0:
            return Work(math.nan, _all(node))
        return Work(2.0 * result * math.prod(shape[:-1]), _all(node))

    return work


def _depthwise(filters: int, images: int) -> Callable[[Node], Work]:
    whole = _convolution(filters, images)

    def work(node: Node) -> Work:
        found = whole(node)
        shape = [*node.inputs, *node.outputs][filters if filters >= 0 else len(node.inputs)].shape or ()
        return Work(found.flops / shape[-2], found.bytes) if shape else found  # each channel has filters by itself

    return work


def _pooled(node: Node) -> Work:
    window = math.prod(int(size) for size in node.attributes["ksize"])
    return Work(window * node.outputs[0].size, _all(node))


def _gather(node: Node) -> Work:
    """The rows that are asked for are read and written, and not the whole table."""
    return Work(0.0, 2.0 * node.outputs[0].bytes + node.inputs[1].bytes)


def _sliced(node: Node) -> Work:
    """What is cut out is read and written."""
    return Work(0.0, 2.0 * node.outputs[0].bytes)


def _scattered(node: Node) -> Work:
    """Rows are read, changed and written, and so are the indices and the updates read."""
    updates = node.inputs[2]
    return Work(updates.size, 3.0 * updates.bytes + node.inputs[1].bytes)


def _applied(flops: float, slots: int) -> Callable[[Node], Work]:
    """An optimizer's update: the variable and its slots are read and written, the gradient is read."""

    def work(node: Node) -> Work:
        variable = node.inputs[0]
        return Work(flops * variable.size, (2.0 * (1 + slots) + 1.0) * variable.bytes)

    return work


def _added_to_variable(node: Node) -> Work:
    value = node.inputs[1]
    return Work(value.size, 3.0 * value.bytes)


def _assigned(node: Node) -> Work:
    return Work(0.0, 2.0 * node.inputs[1].bytes)


def _add_n(node: Node) -> Work:
    return Work((len(node.inputs) - 1) * node.outputs[0].size, _all(node))


# Take a tensor and give the same one, or give what is there already: no number is touched.
PASSES = frozenset({
    "Arg", "Retval", "DeviceArg", "DeviceRetval", "Const", "Identity", "IdentityN", "Reshape", "Squeeze",
    "ExpandDims", "NoOp", "ReadVariableOp", "VarHandleOp", "StopGradient", "PreventGradient", "Shape", "ShapeN",
    "Rank", "Size", "Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond", "EnsureShape", "Snapshot",
    "PlaceholderWithDefault",
})  # fmt: skip
SPECIAL: Mapping[str, Callable[[Node], Work]] = {
    "MatMul": _matmul,
    "BatchMatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "BatchMatMulV3": _matmul,
    "Einsum": _einsum,
    "Conv2D": _convolution(1, -1),
    "Conv3D": _convolution(1, -1),
    "Conv2DBackpropInput": _convolution(1, 2),
    "Conv3DBackpropInputV2": _convolution(1, 2),
    "Conv2DBackpropFilter": _convolution(-1, 2),
    "Conv2DBackpropFilterWithBias": _convolution(-1, 2),
    "Conv3DBackpropFilterV2": _convolution(-1, 2),
    "DepthwiseConv2dNative": _depthwise(1, -1),
    "DepthwiseConv2dNativeBackpropInput": _depthwise(1, 2),
    "DepthwiseConv2dNativeBackpropFilter": _depthwise(-1, 2),
    "MaxPool": _pooled,
    "AvgPool": _pooled,
    "ResourceGather": _gather,
    "Slice": _sliced,
    "StridedSlice": _sliced,
    "GatherV2": _gather,
    "Gather": _gather,
    "ResourceScatterAdd": _scattered,
    "ResourceScatterSub": _scattered,
    "ResourceApplyGradientDescent": _applied(2.0, 0),
    "ResourceApplyMomentum": _applied(4.0, 1),
    "ResourceApplyKerasMomentum": _applied(4.0, 1),
    "ResourceApplyAdam": _applied(12.0, 2),
    "AssignAddVariableOp": _added_to_variable,
    "AssignSubVariableOp": _added_to_variable,
    "AssignVariableOp": _assigned,
    "AddN": _add_n,
}
MOVES = frozenset({
    "Transpose", "ConjugateTranspose", "ConcatV2", "Split", "SplitV", "StridedSliceGrad", "Pad", "PadV2", "Tile",
    "Pack", "Unpack", "BroadcastTo", "OneHot", "Cast", "Fill", "ZerosLike", "OnesLike", "ReverseV2", "Range",
    "SelectV2", "Select", "Where", "InvertPermutation", "Copy", "Bitcast", "Roll",
})  # fmt: skip
_ONE_EACH = (
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Mod", "Square", "Sqrt",
    "Rsqrt", "Pow", "Exp", "Expm1", "Log", "Log1p", "Neg", "Abs", "Sign", "Reciprocal", "Inv", "Maximum", "Minimum",
    "Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "LogicalNot",
    "BiasAdd", "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus", "Erf", "Ceil", "Floor",
    "Round", "Rint", "Sin", "Cos", "IsNan", "IsFinite", "MulNoNan", "ReluGrad", "Relu6Grad", "ClipByValue", "Cumsum",
)  # fmt: skip
# By element of the result: one each, whatever the processor takes; more where the function is made of several.
EACH: Mapping[str, float] = dict.fromkeys(_ONE_EACH, 1.0) | {
    "SquaredDifference": 2.0,
    "SigmoidGrad": 3.0,
    "TanhGrad": 3.0,
    "RsqrtGrad": 4.0,
    "SqrtGrad": 2.0,
    "Softmax": 5.0,
    "LogSoftmax": 5.0,
}
_ADDED_UP = (
    "Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin", "BiasAddGrad", "UnsortedSegmentSum",
    "SegmentSum",
)  # fmt: skip
# By element of what is reduced.
REDUCED: Mapping[str, float] = dict.fromkeys(_ADDED_UP, 1.0) | {"L2Loss": 2.0, "EuclideanNorm": 2.0}


# A dataflow graph: nodes in an order in which each comes after all that it needs.

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """Nodes 0 … count - 1; every edge leads from a lower number to a higher one."""

    count: int
    source: Ints  # of each edge: the node that is needed, and …
    target: Ints  # … the one that needs it

    def __post_init__(self) -> None:
        ends = np.concatenate([self.source, self.target])
        if len(ends) and (ends.min() < 0 or ends.max() >= self.count):
            raise CastmatesError(f"this graph has an edge to node {ends.max()}, and {self.count} nodes.")
        if (self.source >= self.target).any():
            raise CastmatesError("this graph has edges against the order of its nodes, as where they run in a circle.")

    @cached_property
    def needs(self) -> list[Ints]:
        """By node: those that it needs, each once."""
        return _by(self.count, self.target, self.source)

    @cached_property
    def needed_by(self) -> list[Ints]:
        """By node: those that need it, each once."""
        return _by(self.count, self.source, self.target)


def _by(count: int, keys: Ints, values: Ints) -> list[Ints]:
    pairs = np.unique(np.stack([keys, values], axis=1), axis=0) if len(keys) else np.empty((0, 2), np.int64)
    return np.split(pairs[:, 1], np.searchsorted(pairs[:, 0], np.arange(1, count)))[:count] if count else []


def in_order(names: Sequence[str], edges: Iterable[tuple[int, int]]) -> list[int]:
    """The nodes in an order in which each comes after all that it needs; of those that may come next, the first named.

    A graph that runs in a circle is a sentence.
    """
    from heapq import heapify, heappop, heappush

    later: list[list[int]] = [[] for _ in names]
    waits = [0] * len(names)
    for source, target in set(edges):
        later[source].append(target)
        waits[target] += 1
    free = [node for node, count in enumerate(waits) if not count]
    heapify(free)
    order = []
    while free:
        order.append(heappop(free))
        for target in later[order[-1]]:
            waits[target] -= 1
            if not waits[target]:
                heappush(free, target)
    if len(order) < len(names):
        stuck = next(node for node, count in enumerate(waits) if count)
        raise CastmatesError(
            f"this graph runs in a circle, which no step can: '{names[stuck]}' needs what comes after it."
        )
    return order
