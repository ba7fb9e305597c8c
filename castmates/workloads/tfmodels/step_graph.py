"""Takes the graph of a job's step as TensorFlow executes it: optimised, placed on devices, cut by none of our marks.

TensorFlow hands graphs out where it makes them, which is when a function is called for the first time. They are
collected around that call and no longer: all later steps, warm-up, traced and usual ones, run as if nobody had asked.
What cannot be taken is a reason, and the job goes on.
"""

import json
import zlib
from contextlib import suppress
from typing import Any

MOST_NODES = 50_000  # of a graph that is left
MOST_WORDS = 200  # characters of an attribute
# What decides how much work a node does (analysis/dataflow/work.py reads them).
ATTRIBUTES = (
    "T", "dtype", "transpose_a", "transpose_b", "adj_x", "adj_y", "strides", "ksize", "padding", "data_format",
    "dilations", "explicit_paddings", "equation", "fused_ops", "batch_dims", "use_nesterov",
)  # fmt: skip
Content = dict[str, Any]


class StepGraph:
    """The graphs that TensorFlow makes from now on, until they are taken."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._context: Any = None
        self._reason = ""
        try:
            from tensorflow.python.eager import context

            self._context = context.context()
            self._context.enable_graph_collection()
        except Exception as error:  # no public interface: another version may have none
            self._reason = f"this TensorFlow hands out no graphs ({_line(error)})"

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
            return {"nodes": nodes_of(self._tf, largest), "other_graphs": len(graphs) - 1, "other_nodes": others}
        except Exception as error:
            return {"reason": f"its graph cannot be taken ({_line(error)})"}


def packed(content: Content) -> bytes:
    """As it is left beside the page."""
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode())


def nodes_of(tf: Any, graph: Any) -> list[Content]:
    """Every node, with the shapes and types that TensorFlow infers from those of the function's arguments."""
    outputs = _outputs(tf, graph)
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
