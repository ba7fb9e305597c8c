"""Extensions of the instruction set: who has them, which operations could use them, and what shows that one did.

Only evidence counts as use: the name of a primitive's implementation, which names the instructions that its code was
generated for. Kernels of Eigen, and primitives whose implementation names none, are unknown.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

PRODUCTS = frozenset({"matmul", "inner_product", "convolution", "deconvolution", "gemm_api", "rnn"})
BYTES = {  # of a number of each of oneDNN's data types
    "f64": 8.0, "f32": 4.0, "s32": 4.0, "s64": 8.0, "bf16": 2.0, "f16": 2.0, "s8": 1.0, "u8": 1.0, "f8_e5m2": 1.0,
    "f8_e4m3": 1.0, "s4": 0.5, "u4": 0.5,
}  # fmt: skip
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


# Types of TensorFlow's operations that oneDNN or Eigen computes with vectors, and why; what is not here (reading,
# shapes, copies of references, lookups) is not eligible. The first row that fits decides.
ELIGIBLE: tuple[tuple[str, str], ...] = (
    (r"(Batch)?MatMul(V\d)?|Einsum|FusedMatMul|SparseMatMul|Dense", "matrix products, by oneDNN or Eigen"),
    (r"(Depthwise)?Conv\dD\w*|FusedConv\w*|DepthwiseConv2dNative\w*", "convolutions, by oneDNN or Eigen"),
    (r"(Fused)?BatchNorm\w*|LayerNorm\w*|LRN\w*|InstanceNorm\w*", "normalisation, by oneDNN or Eigen"),
    (r"(Log)?Softmax|SparseSoftmaxCross\w*|SoftmaxCross\w*", "exponentials over rows, by oneDNN or Eigen"),
    (r"(Max|Avg|Quantized)\w*Pool\w*", "pooling, by oneDNN or Eigen"),
    (
        r"(Relu6?|Elu|Selu|LeakyRelu|Gelu|Tanh|Sigmoid|Softplus|Swish|Erf|Mish)(Grad)?",
        "activations, element by element",
    ),
    (
        r"Add(V2|N)?|Sub|Mul(NoNan)?|RealDiv|Div(NoNan)?|Neg|Square|Sqrt|Rsqrt|Exp|Log|Log1p|Pow|Maximum|Minimum|Abs"
        r"|SquaredDifference|Reciprocal|Inv|Sign|Greater(Equal)?|Less(Equal)?|Select(V2)?|Cast|BiasAdd(Grad)?|RsqrtGrad"
        r"|SqrtGrad|InvGrad",
        "arithmetic, element by element, by Eigen",
    ),
    (r"Sum|Mean|Prod|Max|Min|L2Loss|ArgMax|ArgMin|Cumsum", "sums and extremes, by Eigen"),
    (r"Resource(Sparse)?Apply\w*|Assign(Add|Sub)VariableOp", "updates of weights, element by element, by Eigen"),
    (r"Reorder|ToTf|InputConversion", "changes of layout, by oneDNN"),
)
_HOW = re.compile(r"^_?(Mkl)?(Native)?_?(Fused(?=(Batch)?MatMul|Conv))?")


def eligible(type_: str) -> str:
    """Why operations of a type could use vectors; "" where they could not."""
    plain = _HOW.sub("", type_)
    return next((reason for pattern, reason in ELIGIBLE if re.fullmatch(pattern, plain)), "")
