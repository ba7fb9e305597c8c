"""Estimated operations and bytes of nodes: the numbers that oneDNN's log gives for the same shapes; what is unknown."""

import json
import math
import zlib

import networkx as nx
import pandas as pd
import pytest

from castmates.analysis.dataflow.effects import boxes, columns
from castmates.analysis.dataflow.work import Graph, Node, Tensor, work_of
from castmates.analysis.operations.instructions import work_of as logged_work
from castmates.errors import CastmatesError
from castmates.traces.graphs import read_graph, words_of

F32 = {"src": "f32", "wei": "f32", "dst": "f32"}


def floats(*shape: int) -> Tensor:
    return Tensor("float32", shape)


@pytest.mark.parametrize("left", [(256, 761), (761, 256)])
def test_a_product_is_the_one_of_onednns_log(left: tuple[int, int]) -> None:
    turned = left == (761, 256)
    node = Node("_MklMatMul", [floats(*left), floats(761, 64)], [floats(256, 64)], {"transpose_a": turned})
    assert work_of(node) == logged_work("matmul", "256x761:761x64", F32)
    fused = Node("_MklNativeFusedMatMul", [floats(256, 761), floats(761, 64), floats(64)], [floats(256, 64)])
    assert work_of(fused).flops == work_of(node).flops
    batch = Node("BatchMatMulV2", [floats(4, 8, 16), floats(4, 8, 16)], [floats(4, 8, 8)], {"adj_y": True})
    assert work_of(batch) == logged_work("matmul", "4x8x16:4x16x8", F32)
    einsum = Node(
        "_MklEinsum", [floats(8, 64, 256), floats(256, 4, 64)], [floats(8, 64, 4, 64)], {"equation": "abc,cde->abde"}
    )
    assert work_of(einsum).flops == 2.0 * 8 * 64 * 256 * 4 * 64


def test_convolutions_and_their_gradients_are_those_of_onednns_log() -> None:
    image, taps, result = floats(4, 28, 28, 16), floats(3, 3, 16, 32), floats(4, 28, 28, 32)
    sizes = Tensor("int32", (4,))
    logged = logged_work("convolution", "mb4_ic16oc32_ih28oh28kh3sh1dh0ph1_iw28ow28kw3sw1dw0pw1", F32)
    assert work_of(Node("_MklNativeConv2D", [image, taps], [result])) == logged
    assert work_of(Node("Conv2DBackpropInput", [sizes, taps, result], [image])).flops == logged.flops
    assert work_of(Node("_MklNativeConv2DBackpropFilter", [image, sizes, result], [taps])).flops == logged.flops
    depthwise = Node("DepthwiseConv2dNative", [image, floats(3, 3, 16, 1)], [image])
    assert work_of(depthwise).flops == 2.0 * 4 * 28 * 28 * 16 * 9


def test_what_is_not_known_is_no_zero() -> None:
    unknown = work_of(Node("SomethingNew", [floats(2)], [floats(2)]))
    assert math.isnan(unknown.flops)
    assert math.isnan(unknown.bytes)
    half_known = work_of(Node("MatMul", [Tensor("float32", (-1, 8)), floats(8, 4)], [Tensor("float32", (-1, 4))]))
    assert math.isnan(half_known.flops)
    assert work_of(Node("Reshape", [floats(6), Tensor("int32", (2,))], [floats(2, 3)])) == (0.0, 0.0)
    rows = work_of(
        Node("ResourceGather", [Tensor("float32*", (200_000, 32)), Tensor("int32", (256,))], [floats(256, 32)])
    )
    assert rows == (0.0, 2 * 256 * 32 * 4 + 256 * 4)
    assert work_of(Node("StridedSlice", [floats(200_000, 32)], [floats(2, 32)])) == (0.0, 2 * 2 * 32 * 4)
    adam = work_of(Node("ResourceApplyAdam", [Tensor("float32*", (10,))] * 3 + [floats()] * 6 + [floats(10)], []))
    assert adam == (120.0, 7 * 40.0)


def packed(nodes: object, **more: object) -> bytes:
    return zlib.compress(json.dumps({"nodes": nodes} | more).encode())


def node(name: str, type_: str, *inputs: str) -> dict[str, object]:
    about = {"name": name, "type": type_, "device": "/job:a/device:CPU:0", "inputs": inputs}
    return about | {"outputs": [["float32", [2, -1]]]}


def test_a_graph_is_read_in_order_without_the_way_back_of_its_loops() -> None:
    nodes = [
        node("while/body/Add", "AddV2", "while/Merge", "^start"),
        node("while/Merge", "Merge", "start", "while/Next"),
        node("while/Next", "NextIteration", "while/body/Add"),
        node("start", "Const"),
    ]
    found = read_graph(packed(nodes))
    assert [each.name for each in found.nodes] == ["start", "while/Merge", "while/body/Add", "while/Next"]
    assert found.edges == [(0, 1, 0), (0, 2, -1), (1, 2, 0), (2, 3, 0)]
    assert found.nodes[2].operation == "Add"
    assert found.nodes[2].device == "CPU:0"
    assert words_of(found.nodes[2].does.inputs) == "float32[2,?]"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (b"rubbish", "cut or damaged"),
        (packed([node("a", "Const")])[:-9], "is cut"),
        (zlib.compress(b"[1]"), "no graph of its step"),
        (packed([{"name": "a"}]), "no graph of its step"),
        (packed([node("a", "AddV2", "missing")]), "no graph of its step"),
        (packed([node("a", "AddV2", "b"), node("b", "AddV2", "a")]), "runs in a circle"),
        (packed([], reason="its graph has 60000 nodes, more than 50000"), "60000 nodes"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(left: bytes, said: str) -> None:
    with pytest.raises(CastmatesError, match=said):
        read_graph(left)


def test_boxes_keep_who_needs_whom() -> None:
    """Many layers of two nodes each: put together by scope they are a chain, whose rows follow each other."""
    names = [f"model/layer_{layer}/{what}" for layer in range(50) for what in ("a", "b")]
    table = pd.DataFrame({"name": names, "direction": "forward", "type": "MatMul"})
    places = pd.Series(range(99)).to_numpy()
    graph = Graph(100, places, places + 1)
    single = boxes(table, graph, [True] * 100, 100)
    assert [len(box.nodes) for box in single] == [1] * 100
    few = boxes(table, graph, [True] * 100, 60)
    assert len(few) == 50
    assert nx.is_directed_acyclic_graph(
        nx.DiGraph([(each, place) for place, box in enumerate(few) for each in box.needs])
    )
    assert [box.level for box in few] == list(range(50))
    assert columns(few) == [0.0] * 50
    untraced = boxes(table, graph, [place % 2 == 0 for place in range(100)], 100)
    assert [box.needs for box in untraced] == [set(), *({place} for place in range(49))]
