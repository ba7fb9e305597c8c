"""How much an instruction of a program that XLA compiled computes and moves, by the shapes in the program; pure.

Counted as XLA's own cost analysis does, and with it the functions (exp, tanh …) that it counts apart: one for each
element of the result, 2 for each pair of a product, without pairs in the padding of a convolution. A fusion has what is
fused in it; its bytes are those that it takes and gives, each once.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from castmates.analysis.operations.instructions import NOTHING_KNOWN, Work

TYPES = {  # of XLA's numbers: name, and bytes of one
    1: ("pred", 1), 2: ("s8", 1), 3: ("s16", 2), 4: ("s32", 4), 5: ("s64", 8), 6: ("u8", 1), 7: ("u16", 2),
    8: ("u32", 4), 9: ("u64", 8), 10: ("float16", 2), 11: ("float32", 4), 12: ("float64", 8), 15: ("c64", 8),
    16: ("bfloat16", 2), 18: ("c128", 16),
}  # fmt: skip
TUPLE = 13
NOTHING = re.compile(
    r"parameter|constant|tuple|get-tuple-element|bitcast(-convert)?|copy|reshape|transpose|broadcast|pad|concatenate|"
    r"reverse|iota"
)
PARTS = frozenset({"gather", "slice", "dynamic-slice", "dynamic-update-slice"})  # of an operand, not all of it
EACH = re.compile(
    r"abs|add|and|atan2|cbrt|ceil|clamp|compare|convert|cosine|divide|erf|exponential(-minus-one)?|floor|is-finite|"
    r"log(-plus-one)?|logistic|maximum|minimum|multiply|negate|not|or|power|remainder|round-nearest-(afz|even)|rsqrt|"
    r"select|shift-(left|right-arithmetic|right-logical)|sign|sine|sqrt|subtract|tan|tanh|xor"
)
Instructions = Mapping[int, Any]  # by number


class Program:
    """The computations of a program."""

    def __init__(self, module: Any) -> None:  # noqa: ANN401 (a message)
        self._inside: dict[int, Instructions] = {
            one.id: {each.id: each for each in one.instructions} for one in module.computations
        }

    def known_of(self, instruction: Any, computation: int) -> tuple[Work, str]:  # noqa: ANN401
        """The work of an instruction, and the type of the first numbers that it takes."""
        taken = [self._inside[computation][number].shape for number in instruction.operands]
        names = (TYPES.get(shape.element_type, ("", 0))[0] for shape in (*taken, instruction.shape))
        first = next((name for name in names if "float" in name), "")
        flops = self._flops(instruction, computation)
        if math.isnan(flops):
            return NOTHING_KNOWN, first
        moved = math.nan if self._opcodes(instruction) & PARTS else math.fsum(map(_bytes, (*taken, instruction.shape)))
        return Work(flops, moved), first

    def _opcodes(self, instruction: Any) -> set[str]:  # noqa: ANN401
        fused = (self._inside.get(called, {}).values() for called in instruction.called)
        return {instruction.opcode.decode(), *(each.opcode.decode() for inner in fused for each in inner)}

    def _flops(self, instruction: Any, computation: int) -> float:  # noqa: ANN401
        opcode, shape = instruction.opcode.decode(), instruction.shape
        taken = [self._inside[computation][number].shape for number in instruction.operands]
        if NOTHING.fullmatch(opcode) or opcode in PARTS:
            return 0.0
        if EACH.fullmatch(opcode):
            return float(_size(shape))
        if opcode == "dot":
            return (
                2.0 * _size(shape) * float(math.prod(taken[0].dimensions[at] for at in instruction.dot.lhs_contracting))
            )
        if opcode == "convolution":
            return _convolution(instruction, taken)
        if opcode in ("fusion", "reduce"):
            inner = math.fsum(
                self._flops(each, called) for called in instruction.called for each in self._inside[called].values()
            )
            return inner if opcode == "fusion" else inner * (_size(taken[0]) - _size(_first(shape)))
        return math.nan


def _first(shape: Any) -> Any:  # noqa: ANN401
    return shape.tuple_shapes[0] if shape.element_type == TUPLE else shape


def _size(shape: Any) -> int:  # noqa: ANN401
    return math.prod(shape.dimensions)


def _bytes(shape: Any) -> float:  # noqa: ANN401
    if shape.element_type == TUPLE:
        return math.fsum(map(_bytes, shape.tuple_shapes))
    return _size(shape) * TYPES.get(shape.element_type, ("", math.nan))[1]


def _convolution(instruction: Any, taken: list[Any]) -> float:  # noqa: ANN401
    """Pairs of a place of the image and one of the window, for each pair of channels."""
    about, images = instruction.convolution, taken[0].dimensions
    pairs = 1
    for window, at, to in zip(instruction.window.dimensions, about.input_spatial, about.output_spatial, strict=True):
        dilated = (images[at] - 1) * window.base_dilation + 1
        places = (
            window.stride * result + window.window_dilation * tap - window.padding_low
            for result in range(instruction.shape.dimensions[to])
            for tap in range(window.size)
        )
        pairs *= sum(0 <= place < dilated and place % window.base_dilation == 0 for place in places)
    channels = images[about.input_feature] // max(instruction.feature_group_count, 1)
    batch = images[about.input_batch] // max(instruction.batch_group_count, 1)
    return 2.0 * float(batch * channels * instruction.shape.dimensions[about.output_feature] * pairs)
