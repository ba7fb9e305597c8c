"""Takes the graph of a job's step as TensorFlow executes it: optimised, placed on devices, cut by none of our marks.

TensorFlow hands graphs out where it makes them, which is when a function is called for the first time. They are
collected around that call and no longer: all later steps, warm-up, traced and usual ones, run as if nobody had asked.
What cannot be taken is a reason, and the job goes on.
"""

import json
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from castmates.workloads.tfmodels.xspace import FETCH

MOST_NODES = 50_000  # of a graph that is left
MOST_WORDS = 200  # characters of an attribute
# What decides how much work a node does (analysis/dataflow/work.py reads them).
ATTRIBUTES = (
    "T", "dtype", "transpose_a", "transpose_b", "adj_x", "adj_y", "strides", "ksize", "padding", "data_format",
    "dilations", "explicit_paddings", "equation", "fused_ops", "batch_dims", "use_nesterov",
)  # fmt: skip
BIAS = "/castmates_bias"  # of a convolution's gradient, a node by itself while shapes are inferred
Content = dict[str, Any]


class Given(NamedTuple):
    """What a step was called with."""

    shapes: Sequence[Sequence[int]] = ()  # of the tensors and arrays, in their order
    batch: int = 0  # that its iterator gives; 0 where that is not known


NOTHING = Given()


def _batch_of(dataset: Any) -> int:
    """How many examples the last stage that makes batches puts into each; 0 where none is seen."""
    while "Unbatch" not in type(dataset).__name__:
        if hasattr(dataset, "_batch_size"):
            return int(dataset._batch_size)
        inputs = dataset._inputs()
        if len(inputs) != 1:
            return 0
        dataset = inputs[0]
    return 0


class StepGraph:
    """The graphs that TensorFlow makes from now on, until they are taken."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._context: Any = None
        self._reason = ""
        self._given = NOTHING
        try:
            from tensorflow.python.eager import context

            self._context = context.context()
            self._context.enable_graph_collection()
        except Exception as error:  # no public interface: another version may have none
            self._reason = f"this TensorFlow hands out no graphs ({_line(error)})"

    def called_with(self, arguments: Any, batch: int = 0) -> None:
        """Note what the first step is called with: sizes that may differ between calls are not in a graph."""
        with suppress(Exception):  # then they stay unknown
            leaves = self._tf.nest.flatten(arguments)
            shapes = [list(map(int, each.shape)) for each in leaves if hasattr(each, "dtype")]
            found = (_batch_of(each._dataset) for each in leaves if hasattr(each, "_dataset"))
            self._given = Given(tuple(shapes), next(filter(None, found), batch))

    def taken(self) -> Content:
        """The largest graph that was made, as plain values; collecting ends."""
        if self._reason:
            return {"reason": self._reason}
        try:
            try:
                made = self._context.export_run_metadata().function_graphs
            finally:
                with suppress(Exception):  # or a later step would pay for it; and a job does not end because of it
                    self._context.disable_graph_collection()
            graphs = [part for one in made for part in (one.partition_graphs or [one.post_optimization_graph])]
            if not graphs:
                return {"reason": "no graph was made in the first step"}
            largest = max(graphs, key=lambda graph: len(graph.node))
            if len(largest.node) > MOST_NODES:
                return {"reason": f"its graph has {len(largest.node)} nodes, more than {MOST_NODES}"}
            others = sum(len(graph.node) for graph in graphs) - len(largest.node)
            nodes = nodes_of(self._tf, largest, self._given)
            return {"nodes": nodes, "other_graphs": len(graphs) - 1, "other_nodes": others}
        except Exception as error:
            return {"reason": f"its graph cannot be taken ({_line(error)})"}


def packed(content: Content) -> bytes:
    """As it is left beside the page."""
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode())


def nodes_of(tf: Any, graph: Any, given: Given = NOTHING) -> list[Content]:
    """Every node, with the shapes and types that TensorFlow infers from those of the function's arguments."""
    outputs = _outputs(tf, _concrete(graph, given))
    return [
        {
            "name": node.name,
            "type": node.op,
            "device": node.device,
            "inputs": list(node.input),
            "outputs": outputs.get(node.name, []),
            "attributes": {name: _value(tf, node.attr[name]) for name in ATTRIBUTES if name in node.attr},
        }
        for node in graph.node
    ]


def _concrete(graph: Any, given: Given) -> Any:
    """The graph with the sizes that the call had, and without a type whose shape TensorFlow 2.20 infers wrongly."""
    concrete = type(graph)()
    concrete.CopyFrom(graph)
    biases = {node.name: node for node in concrete.node if node.op.endswith("BackpropFilterWithBias")}
    for node in concrete.node:
        shapes = node.attr["output_shapes"].list.shape if node.op == FETCH else ()
        for size in (shape.dim[0] for shape in shapes if given.batch and shape.dim and shape.dim[0].size < 0):
            size.size = given.batch
        if node.op == "_Arg" and (index := node.attr["index"].i) < len(given.shapes):
            for shape in node.attr["_output_shapes"].list.shape:
                if len(shape.dim) == len(given.shapes[index]):
                    for dim, size in zip(shape.dim, given.shapes[index], strict=True):
                        dim.size = size if dim.size < 0 else dim.size
        for place, source in enumerate(node.input):
            if source.endswith(":1") and source[:-2] in biases:  # its shape is not that of the first operand's channels
                node.input[place] = source[:-2] + BIAS
    for name, node in biases.items():
        bias = concrete.node.add(name=name + BIAS, op="BiasAddGrad", input=[node.input[2]], device=node.device)
        for key in ("T", "data_format"):
            bias.attr[key].CopyFrom(node.attr[key])
    return concrete


def _outputs(tf: Any, graph: Any) -> dict[str, list[list[Any]]]:
    """By node: the type and shape of each output; -1 for a dimension, and None for a shape, that is not known.

    A variable's handle has the type and shape of what it stands for, with an asterisk.
    """
    from tensorflow.python.ops import handle_data_util

    inferred = tf.Graph()
    try:
        with inferred.as_default():
            tf.graph_util.import_graph_def(graph, name="")
    except (ValueError, tf.errors.OpError):
        return {}
    found = {}
    for node in inferred.get_operations():
        found[node.name] = [
            _handle(tf, handle_data_util.get_handle_data(each))
            if each.dtype == tf.resource
            else [each.dtype.name, _dimensions(each.shape)]
            for each in node.outputs
        ]
    for name in [name for name in found if name.endswith(BIAS)]:
        found[name.removesuffix(BIAS)][1:] = found.pop(name)
    return found


def _handle(tf: Any, data: Any) -> list[Any]:
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return ["resource", None]
    one = data.shape_and_type[0]
    return [f"{tf.as_dtype(one.dtype).name}*", _dimensions(tf.TensorShape(one.shape))]


def _dimensions(shape: Any) -> list[int] | None:
    return None if shape.rank is None else [-1 if size is None else size for size in shape.as_list()]


def _value(tf: Any, value: Any) -> Any:
    """An attribute as a plain value."""
    kind = value.WhichOneof("value")
    if kind == "type":
        return tf.as_dtype(value.type).name
    if kind == "s":
        return value.s.decode("utf-8", "replace")[:MOST_WORDS]
    if kind in ("i", "f", "b"):
        return getattr(value, kind)
    if kind == "list":
        return [each.decode("utf-8", "replace") for each in value.list.s] or list(value.list.i)
    return None


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
