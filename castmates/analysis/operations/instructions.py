"""Extensions of the instruction set: who has them, which operations could use them, and what shows that one did.

Only evidence counts as use: the name of a primitive's implementation, which names the instructions that its code was
generated for. Kernels of Eigen, and primitives whose implementation names none, are unknown.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

PRODUCTS = frozenset({"matmul", "inner_product", "convolution", "deconvolution", "gemm_api", "rnn"})
BYTES = {  # of a number of each of oneDNN's data types
    "f64": 8.0, "f32": 4.0, "s32": 4.0, "s64": 8.0, "bf16": 2.0, "f16": 2.0, "s8": 1.0, "u8": 1.0, "f8_e5m2": 1.0,
    "f8_e4m3": 1.0, "s4": 0.5, "u4": 0.5,
}  # fmt: skip
LETTERS = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}  # of numbers, as oneDNN has them
INTEGERS = frozenset({"s8", "u8"})


@dataclass(frozen=True)
class Extension:
    """Some instructions."""

    name: str
    flags: tuple[str, ...]  # in /proc/cpuinfo: a processor with all of one of these (joined by a space) has it
    named_by: str  # pattern: what in an instruction set that oneDNN names shows that the code was generated for it
    types: frozenset[str]  # data types of a product's operands for which it is there; empty: it serves every primitive
    reason: str  # why operations are eligible
    wider: str = ""  # pattern: instruction sets that take its place


EXTENSIONS = (
    Extension(
        "AVX2",
        ("avx2",),
        r"avx2",
        frozenset(),
        "vectors of 256 bits serve every operation on arrays",
        wider=r"avx512|avx10",
    ),
    Extension(
        "AVX-512",
        ("avx512f avx512bw avx512vl avx512dq",),
        r"avx512|avx10",
        frozenset(),
        "vectors of 512 bits serve every operation on arrays",
    ),
    Extension(
        "VNNI",
        ("avx512_vnni", "avx_vnni"),
        r"avx2_vnni|avx512_core_(vnni|bf16|fp16)|avx10",
        INTEGERS,
        "sums of products of 8-bit integers: matrix products and convolutions of such numbers",
        wider=r"amx",
    ),
    Extension(
        "AVX-512 BF16",
        ("avx512_bf16",),
        r"avx512_core_(bf16|fp16)|avx10",
        frozenset({"bf16"}),
        "sums of products of bfloat16: matrix products and convolutions of such numbers",
        wider=r"amx",
    ),
    Extension(
        "AMX",
        ("amx_tile amx_bf16", "amx_tile amx_int8"),
        r"amx",
        frozenset({"bf16"}) | INTEGERS,
        "tiles of products of bfloat16 or of 8-bit integers: matrix products and convolutions of such numbers",
    ),
)
# Flags of /proc/cpuinfo that decide; a launch under oneDNN's log records those that the processor has.
FLAGS = frozenset(flag for each in EXTENSIONS for flags in each.flags for flag in flags.split())
_INSTRUCTIONS = re.compile(r"(?:sse41|avx\d|avx(?=$)|sve|asimd|neon)\w*")

USED, WIDER, UNUSED, UNKNOWN = "used", "wider", "unused", "unknown"
HAS, LACKS, NOT_KNOWN = "has it", "lacks it", "not known"


def extension_state(extension: Extension, flags: Collection[str] | None) -> str:
    """Whether the processor with these flags has it; None where its flags are not known."""
    if flags is None:
        return NOT_KNOWN
    return HAS if any(set(words.split()) <= set(flags) for words in extension.flags) else LACKS


def instructions_of(implementation: str) -> str:
    """The instruction set that an implementation names: avx512_core of brg_matmul:avx512_core; "" where it names none.

    One that is made of several names the set of each; they are joined where they differ.
    """
    found = (part.rpartition(":")[2] for part in implementation.split("+"))
    return "+".join(dict.fromkeys(name for name in found if _INSTRUCTIONS.fullmatch(name)))


def use_of(extension: Extension, primitive: str, isa: str, types: Mapping[str, str]) -> str:
    """What an implementation that names these instructions shows of its use; "" where the extension does not serve."""
    if not could(extension, primitive, types):
        return ""
    if not isa:
        return UNKNOWN
    if extension.wider and re.search(extension.wider, isa):
        return WIDER
    return USED if re.search(extension.named_by, isa) else UNUSED


def could(extension: Extension, primitive: str, types: Mapping[str, str]) -> bool:
    """Whether the extension serves a primitive on these data types."""
    if not extension.types:
        return True
    operands = {types.get("src"), types.get("wei")}
    return primitive in PRODUCTS and None not in operands and operands <= extension.types


# How many floating-point operations a primitive takes, and how many bytes it moves at least; pure.
#
# Both come from the shapes that oneDNN logs. Operations are the nominal ones: 2 M N K of a product of matrices, and of
# a convolution those of every tap, padding included, by the direct method. Bytes are those of its operands, each once,
# at their data types: a lower bound of the traffic, because what does not fit into a cache is read again.

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
