"""How much a call of PyTorch computes and moves, by the shapes that its trace has of what it was given; pure.

Counted as in a graph (analysis/dataflow/work.py). What only calls others (`linear`, `conv2d`) has no work of its own:
the product that it calls is counted there, and nowhere twice.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from castmates.analysis.dataflow.work import BYTES, EACH
from castmates.analysis.operations.instructions import NOTHING_KNOWN, Work

TYPES = {  # of PyTorch's JSON, and the names that they have elsewhere
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "int": "int32",
    "long int": "int64", "long": "int64", "bool": "bool", "unsigned char": "uint8", "signed char": "int8",
}  # fmt: skip
NO_TENSOR = ("", "Scalar", "ScalarList")
Shape = tuple[int, ...]


class Call(NamedTuple):
    """What a call was given, operand by operand; of what is no tensor the shape is empty."""

    shapes: Sequence[Shape]
    strides: Sequence[Shape]  # 0: of a dimension that only repeats what is there; none where they are not known
    bytes: Sequence[float]  # of an element; 0 of what is no tensor
    number: float  # bytes of one of the first numbers that it takes
    words: Sequence[str]  # plain values, as PyTorch writes them

    def moved(self, result: float) -> float:
        """Bytes of all tensors, each element once, and of a result of so many numbers."""
        strides = self.strides or self.shapes
        each = (
            math.prod(length for length, stride in zip(shape, steps, strict=True) if stride) * size
            for shape, steps, size in zip(self.shapes, strides, self.bytes, strict=True)
        )
        return math.fsum(each) + result * self.number


def counted(type_: str) -> Callable[[Call], Work] | None:
    """What counts calls of this type; None where their work is not known."""
    return COUNTED.get(type_) or COUNTED.get(type_.removesuffix("_"))


def known_of(type_: str, given: Mapping[str, Any]) -> tuple[Work, str]:
    """The work of a call, as far as it is known, and the data type of the first numbers that it takes."""
    named = given.get("Input type", ())
    types = [TYPES.get(name, "") for name in named]
    first = next((name for name in types if name in FLOATS), "")
    count = counted(type_)
    if count is None or not first or not all(name in TYPES or name in NO_TENSOR for name in named):
        return NOTHING_KNOWN, first
    sizes = [float(BYTES.get(name, 0)) for name in types]
    words = list(map(str, given.get("Concrete Inputs", ())))
    try:
        shapes, strides = (
            [tuple(map(int, each)) for each in given.get(key, ())] for key in ("Input Dims", "Input Strides")
        )
        return count(Call(shapes, strides, sizes, float(BYTES[first]), words)), first
    except (IndexError, TypeError, ValueError):
        return NOTHING_KNOWN, first


FLOATS = ("float32", "float64", "float16", "bfloat16")


def _product(left: int, right: int) -> Callable[[Call], Work]:
    """A product of matrices, the last two dimensions of these operands."""

    def count(call: Call) -> Work:
        *batch, rows, inner = call.shapes[left]
        result = math.prod(batch) * rows * call.shapes[right][-1]
        return Work(2.0 * result * inner, call.moved(result))

    return count


def _convolution(padding: int, stride: int, dilation: int | None) -> Callable[[Call], Work]:
    """Of images and a filter, the first two operands; which words have its padding, stride and dilation."""

    def count(call: Call) -> Work:
        (images, _, *sides), (channels, *taps) = call.shapes[:2]
        pads, steps = _numbers(call.words[padding], sides), _numbers(call.words[stride], sides)
        wide = _numbers(call.words[dilation], sides) if dilation is not None else [1] * len(sides)
        each = zip(sides, taps[1:], pads, steps, wide, strict=True)
        places = math.prod((side + 2 * pad - far * (tap - 1) - 1) // step + 1 for side, tap, pad, step, far in each)
        result = images * channels * places
        return Work(2.0 * result * math.prod(taps), call.moved(result))

    return count


def _numbers(word: str, sides: Sequence[int]) -> list[int]:
    """`[1, 1]`, or `[1]` for all sides."""
    found = [int(each) for each in json.loads(word)]
    return found * len(sides) if len(found) == 1 else found


def _convolution_backward(call: Call) -> Work:
    """Gradients of the images and of the filter, as far as they are asked for; the bias' is left out, as its sum is."""
    gradient, images, taps = call.shapes[:3]
    wanted = [word.strip(" []") == "True" for word in call.words[10].split(",")][:2]
    spread = images if call.words[7] == "True" else gradient  # a transposed one spreads each place over its taps
    result = sum(math.prod(shape) for shape, asked in zip((images, taps), wanted, strict=True) if asked)
    return Work(sum(wanted) * 2.0 * math.prod(spread) * math.prod(taps[1:]), call.moved(result))


def _attention(first: int, products: int, results: int) -> Callable[[Call], Work]:
    """So many products of queries by keys, operands from `first` on; its results are as large as so many of them."""

    def count(call: Call) -> Work:
        *batch, queries, length = call.shapes[first]
        flops = products * 2.0 * math.prod(batch) * queries * call.shapes[first + 1][-2] * length
        return Work(flops, call.moved(sum(map(math.prod, call.shapes[first : first + results]))))

    return count


def _each(flops: float) -> Callable[[Call], Work]:
    """So many for each element of the result, whose shape is that of all operands together."""

    def count(call: Call) -> Work:
        tensors = [shape for shape, size in zip(call.shapes, call.bytes, strict=True) if size]
        result = math.prod(np.broadcast_shapes(*tensors))
        return Work(flops * result, call.moved(result))

    return count


def _reduced(call: Call) -> Work:
    """One for each element; the result's size is that of the dimensions that are left."""
    shape = call.shapes[0]
    gone = {size % len(shape) for size in json.loads(call.words[1] or "[]")} if len(call.words) > 1 and shape else set()
    kept = math.prod(size for place, size in enumerate(shape) if place not in gone) if gone else 1
    return Work(float(math.prod(shape)), call.moved(kept))


COUNTED: Mapping[str, Callable[[Call], Work]] = {
    "mm": _product(0, 1),
    "bmm": _product(0, 1),
    "addmm": _product(1, 2),
    "baddbmm": _product(1, 2),
    "mkldnn_convolution": _convolution(3, 4, 5),
    "cudnn_convolution": _convolution(2, 3, 4),
    "_slow_conv2d_forward": _convolution(5, 4, None),
    "slow_conv3d_forward": _convolution(5, 4, None),
    "slow_conv_dilated2d": _convolution(5, 4, 6),
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _attention(0, 2, 1),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(1, 5, 3),
    "copy_": lambda call: Work(0.0, call.moved(0)),
    "sum": _reduced,
    "mean": _reduced,
    "threshold_backward": _each(EACH["ReluGrad"]),
    "sigmoid_backward": _each(EACH["SigmoidGrad"]),
    "tanh_backward": _each(EACH["TanhGrad"]),
    "_softmax": _each(EACH["Softmax"]),
    "_log_softmax": _each(EACH["LogSoftmax"]),
    **dict.fromkeys(("addcmul", "addcdiv", "lerp"), _each(3.0)),
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "neg", "abs", "pow",
         "maximum", "minimum", "clamp", "clamp_min", "reciprocal", "where"),
        _each(1.0),
    ),
}  # fmt: skip
