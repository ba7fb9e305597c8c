"""What an operation of PyTorch or JAX is part of: its layer, the kind of layer, and the direction; pure.

Both frameworks know an operation by its type and the scopes that it lies in: PyTorch by the modules and the functions
that call it, JAX by the scopes in a compiled program's metadata.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache

from castmates.analysis.explanations.layers import LayerPlace, kind_of_scopes

NO_SCOPE = "no scope"
# Of PyTorch's types, without their underscores; the first that fits. All that such an operation calls is of its kind …
_DECISIVE = (
    ("attention", re.compile(r".*(scaleddotproduct|attention).*")),
    ("convolution", re.compile(r".*conv(olution|\dd|transpose).*")),
    ("pooling", re.compile(r".*pool.*")),
    ("normalisation", re.compile(r".*(batch|layer|group|instance|rms)norm.*")),
    ("embedding", re.compile(r".*embedding.*")),
    ("loss", re.compile(r".*(loss|crossentropy|kldiv).*")),
    ("dropout", re.compile(r".*(dropout|bernoulli).*")),
    ("activation", re.compile(r".*([rgs]?elu6?|silu|mish|hardswish|hardtanh|softplus|softmax|sigmoid|tanh|glu)")),
)
# … and these settle only their own.
_PLAIN = (
    ("matmul", re.compile(r"(addmm|mm|bmm|baddbmm|addbmm|matmul|linear|mkldnnlinear|dot|mv|addmv|addr|outer|einsum)")),
    ("activation", re.compile(r"threshold")),
    (
        "reduction",
        re.compile(
            r"(sum|mean|a?max|a?min|prod|norm|linalgvectornorm|var|std|any|all|arg(max|min)|cum(sum|prod)|topk)"
        ),
    ),
    (
        "elementwise",
        re.compile(
            r"(foreach)?(add|sub|rsub|mul|div|pow|sqrt|rsqrt|exp|expm1|log|log1p|neg|abs|sign|square|reciprocal|maximum"
            r"|minimum|clamp(min|max)?|lerp|addc(mul|div)|where|eq|ne|lt|le|gt|ge|logical(and|or|not)|bitwise\w+|erf|sin"
            r"|cos|floor|ceil|round|isnan|isfinite|maskedfill|sgdstep|fused(sgd|adamw?))(scalar|tensor|list)?"
            r"|torch\.autograd\.accumulategrad"
        ),
    ),
    (
        "data movement",
        re.compile(
            r"copy|clone|contiguous|to|tocopy|t|transpose|permute|view\w*|reshape\w*|unsafeview|expand\w*|select|slice"
            r"|narrow|cat|stack|index\w*|gather|scatter\w*|asstrided|squeeze|unsqueeze|unbind|split\w*|chunk|flatten"
            r"|unflatten|empty\w*|zeros\w*|ones\w*|full\w*|fill|zero|resize\w*|detach|item|localscalardense|lift\w*|new\w+"
            r"|pad|constantpad\w*|tril\w*|triu\w*|arange|resolve\w+|indices|values|nnz|sparse\w*|iscoalesced|coalesce|alias"
            r"|roll|flip|repeat\w*|tile|movedim|unfold|diagonal|pinmemory|set"
        ),
    ),
)
_BACKWARD = re.compile(r"backward(data)?\d*$")
# Of JAX's primitives.
_JAX = (
    ("matmul", re.compile(r"dot_general|dot|ragged_dot\w*")),
    ("convolution", re.compile(r"conv_general_dilated|convolution")),
    ("pooling", re.compile(r"(reduce_window|select_and\w*_(scatter|gather)\w*)\w*")),
    ("reduction", re.compile(r"reduce\w*|arg(max|min)|cum\w+|top_k|sort")),
    (
        "data movement",
        re.compile(
            r"gather|scatter\S*|broadcast\w*|reshape|transpose|slice|dynamic_\w*slice|concatenate|copy\w*|pad|iota|squeeze|rev"
            r"|convert_element_type|convert|bitcast\w*|expand_dims|split"
        ),
    ),
    (
        "elementwise",
        re.compile(
            r"add|add_any|sub|mul|div|rem|neg|max|min|exp2?|expm1|log|log1p|tanh|logistic|sqrt|rsqrt|cbrt|pow|integer_pow|sign"
            r"|abs|select_n|and|or|not|xor|eq|ne|lt|le|gt|ge|erf\w*|sin|cos|floor|ceil|round|clamp|square|is_finite|stop_gradient"
        ),
    ),
    ("dropout", re.compile(r"random_\w+|threefry2x32|rng_bit_generator")),
)
OPTIMIZER = "optimizer"  # what a program names the scope
_ACTIVATING = re.compile(r"_?(\w*relu\d*|\w*elu|silu|swish|sigmoid|log_sigmoid|softmax|log_softmax|softplus|tanh|glu)")
_EMBEDDING = re.compile(r"\w*embed\w*")


@cache
def decisive_kind(type_: str) -> str:
    """The kind of a PyTorch operation that settles what it calls too; "" where it settles nothing."""
    plain = _bare(type_)
    return next((kind for kind, wanted in _DECISIVE if wanted.fullmatch(plain)), "")


@cache
def torch_place(scopes: tuple[str, ...], type_: str, direction: str, settled: str = "") -> LayerPlace:
    """The place of a PyTorch operation; `settled` is the kind that a caller of it settles."""
    layer = "/".join(scopes) or NO_SCOPE
    if direction in ("input", "optimizer"):
        return LayerPlace(layer, direction, direction)
    plain = _bare(type_)
    kind = settled or next((kind for kind, wanted in _PLAIN if wanted.fullmatch(plain)), "other")
    return LayerPlace(layer, kind, direction)


def jax_place(
    scopes: Sequence[str], functions: Sequence[str], primitive: str, inside: Collection[str], backward: bool
) -> LayerPlace:
    """The place of a JAX operation: what is fused with a product or a convolution is of that kind."""
    layer = "/".join(scopes) or NO_SCOPE
    if OPTIMIZER in scopes:
        return LayerPlace(layer, OPTIMIZER, OPTIMIZER)
    kind = _jax_kind(scopes, functions, primitive, inside)
    if not scopes and not functions and kind == "data movement":
        return LayerPlace(layer, kind, "backward" if backward else "")  # XLA's own, such as copies between layouts
    return LayerPlace(layer, kind, "backward" if backward else "forward")


def _jax_kind(scopes: Sequence[str], functions: Sequence[str], primitive: str, inside: Collection[str]) -> str:
    if "convolution" in inside:
        return "convolution"
    kind = kind_of_scopes([*scopes, *functions])
    if "dot" in inside:
        return kind if kind == "attention" else "matmul"
    if kind:
        return kind
    plain = next((kind for kind, wanted in _JAX if wanted.fullmatch(primitive)), "other")
    if plain in ("data movement", "reduction") and any(map(_EMBEDDING.fullmatch, scopes)):
        return "embedding"
    if plain in ("elementwise", "reduction") and any(map(_ACTIVATING.fullmatch, functions)):
        return "activation"
    return plain


def _bare(type_: str) -> str:
    """A type as it is without its underscores, and without that it is a gradient."""
    return _BACKWARD.sub("", type_.replace("_", "").lower())
