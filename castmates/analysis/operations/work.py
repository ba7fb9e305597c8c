"""How many floating-point operations a primitive takes, and how many bytes it moves at least; pure.

Both come from the shapes that oneDNN logs. Operations are the nominal ones: 2 M N K of a product of matrices, and of a
convolution those of every tap, padding included, by the direct method. Bytes are those of its operands, each once, at
their data types: a lower bound of the traffic, because what does not fit into a cache is read again.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from castmates.analysis.operations.instructions import BYTES

_SIZE = re.compile(r"(mb|[a-z]+?)(\d+)(?=[a-z_]|$)")


class Work(NamedTuple):
    """NaN where it is not known."""

    flops: float
    bytes: float  # a lower bound


NOTHING_KNOWN = Work(math.nan, math.nan)


def work_of(primitive: str, shapes: str, types: Mapping[str, str]) -> Work:
    """The work of one execution, by oneDNN's description of its problem and the data type of each operand."""
    try:
        if primitive in ("matmul", "gemm_api"):
            return _matmul(shapes, types)
        if primitive == "inner_product":
            return _inner_product(_sizes(shapes), types)
        if primitive in ("convolution", "deconvolution"):
            return _convolution(_sizes(shapes), types, turned=primitive == "deconvolution")
    except (ValueError, KeyError, IndexError):
        return NOTHING_KNOWN
    return NOTHING_KNOWN


def _matmul(shapes: str, types: Mapping[str, str]) -> Work:
    """`4x64x384:4x384x64`: each matrix by its dimensions, batches first; a batch of 1 serves all of the other's."""
    left, right = ([int(size) for size in part.split("x")] for part in shapes.split(":")[:2])
    (rows, inner), (inner_right, columns) = left[-2:], right[-2:]
    if inner != inner_right or len(left) != len(right):
        return NOTHING_KNOWN
    batch = math.prod(max(pair) for pair in zip(left[:-2], right[:-2], strict=True))
    result = batch * rows * columns
    return Work(2.0 * result * inner, _moved(types, {"src": math.prod(left), "wei": math.prod(right), "dst": result}))


def _inner_product(size: Mapping[str, int], types: Mapping[str, str]) -> Work:
    """`mb256ic745oc256`, with the image's sizes between where it has any."""
    inner = size["ic"] * math.prod(size.get(name, 1) for name in ("id", "ih", "iw"))
    result = size["mb"] * size["oc"]
    elements = {"src": size["mb"] * inner, "wei": size["oc"] * inner, "dst": result, "bia": size["oc"]}
    return Work(2.0 * result * inner, _moved(types, elements))


def _convolution(size: Mapping[str, int], types: Mapping[str, str], *, turned: bool) -> Work:
    """`mb4_g8ic16oc32_ih28oh28kh3sh1dh0ph1_iw28…`; one that is turned round spreads each input over its taps."""
    groups = size.get("g", 1)
    image = {side: math.prod(size.get(side + axis, 1) for axis in "dhw") for side in "iok"}
    weights = size["oc"] * (size["ic"] // groups) * image["k"]
    # Each of these positions takes, or gives to, all taps of its window.
    positions = image["i"] if turned else image["o"]
    elements = {
        "src": size["mb"] * size["ic"] * image["i"],
        "wei": weights,
        "dst": size["mb"] * size["oc"] * image["o"],
        "bia": size["oc"],
    }
    return Work(2.0 * size["mb"] * weights * positions, _moved(types, elements))


def _sizes(shapes: str) -> dict[str, int]:
    """`mb4_ic16oc32` by name."""
    found = {name: int(number) for name, number in _SIZE.findall(shapes)}
    if not found:
        raise ValueError(shapes)
    return found


def _moved(types: Mapping[str, str], elements: Mapping[str, int]) -> float:
    """Bytes of the operands that are there; NaN where a data type is not known."""
    if not {"src", "wei", "dst"} <= set(types):
        return math.nan
    return math.fsum(count * BYTES.get(types[role], math.nan) for role, count in elements.items() if role in types)
