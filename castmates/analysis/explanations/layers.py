"""What a TensorFlow operation is part of: its layer, the kind of layer, and the direction; pure.

An operation is known by its name, which holds the scopes of the layers that it lies in, and by its type. The optimiser
of TensorFlow's graphs joins operations and gives them the last one's name (`conv_b/Relu:_MklNativeFusedConv2D`), so a
layer is known by its scope, and a type that settles the kind is asked before the scope is.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

UNATTRIBUTED = "unattributed"
NO_THREAD = "XLA, asynchronous"  # lines with calls of JAX that other threads finish
RUNTIME = "runtime"
# In the order of a figure's legend.
KINDS = (
    "convolution",
    "pooling",
    "normalisation",
    "attention",
    "matmul",
    "embedding",
    "activation",
    "dropout",
    "reduction",
    "elementwise",
    "data movement",
    "loss",
    "regularisation",
    "optimizer",
    "input",
    "other",
    RUNTIME,
    UNATTRIBUTED,
)
DIRECTIONS = ("input", "forward", "backward", "optimizer", "")

# What TensorFlow puts before and into names: calls of functions, branches and loops.
WRAPPING = re.compile(r"((Stateful|Stateless)?PartitionedCall|while|cond|body|then|else)(_\d+)?|_\d+")
_BACKWARD = ("gradient_tape", "gradients")
_ON_GRADIENTS = re.compile(r"(clip_by_(global_)?norm|global_norm|gradient_clip\w*)(_\d+)?")  # functions of TensorFlow
_ASSIGNS = re.compile(r"Assign\w*VariableOp|(Resource)?(Sparse)?Apply[A-Z]\w*|ResourceScatter(Add|Sub)")
_FETCH = "IteratorGetNext"  # the step takes its batch from the input pipeline
_MKL = re.compile(r"_?(Mkl)?(Native)?_?")
_SUFFIX = re.compile(r"_\d+$")
# Parts of a name that show how a layer computes and not which it is.
_HOW = re.compile(
    r"([A-Z]\w*|moments|batchnorm|einsum|add|sub|mul|truediv|div|pow|neg|abs|sqrt|rsqrt|square|mean|sum|max|min|concat|split"
    r"|stack|unstack|strided_slice|slice|cast|cond|ones_like|zeros_like|zeros|ones|one_hot|range|tile|pad|depthwise"
    r"|separable_conv2d|kernel|bias|gamma|beta|random_uniform|div_no_nan|floordiv|embedding_lookup"
    r"|ArithmeticOptimizer)(_\d+)?"
)
_NORMALISING = re.compile(r"\w*(layer_?norm|batch_?norm|group_?norm|instance_?norm)\w*", re.IGNORECASE)
_ATTENDING = re.compile(r"\w*(attention|multi_head)\w*", re.IGNORECASE)
_EMBEDDING = re.compile(r"\w*embedding\w*", re.IGNORECASE)
_ACTIVATING = re.compile(
    r"(activation|[rg]?elu\d*|gelu|swish|hard_swish|hswish|silu|sigmoid|softmax|tanh)(_\d+)?", re.IGNORECASE
)
_LOSS = re.compile(r"\w*(loss|losses|cross_?entropy\w*|metrics?)(_\d+)?", re.IGNORECASE)
_POOLING = re.compile(r"\w*pooling\w*", re.IGNORECASE)
_DROPPING = re.compile(r"\w*(dropout|drop_path|stochastic_depth)\w*")

# By the operation's type; the first that fits. These settle the kind wherever the operation stands …
_DECISIVE = (
    ("loss", re.compile(r"\w*CrossEntropy\w*|CTCLoss\w*|InTopK\w*")),
    ("convolution", re.compile(r"\w*Conv[23]D\w*|\w*[Cc]onv2d\w*|Dilation2D\w*")),
    ("pooling", re.compile(r"\w*(MaxPool|AvgPool)\w*")),
    ("normalisation", re.compile(r"\w*(BatchNorm|LayerNorm|InstanceNorm)\w*|LRN(Grad)?")),
)
# … and these where no scope does.
_PLAIN = (
    ("embedding", re.compile(r"ResourceGather\w*|SparseSegment\w*|\w*EmbeddingLookup\w*")),
    ("matmul", re.compile(r"\w*(MatMul|Einsum)\w*")),
    (
        "activation",
        re.compile(
            r"(Leaky)?(Relu6?|Elu|Selu|Gelu)(Grad)?|(Log)?Softmax|(Sigmoid|Tanh|Softplus|Softsign)(Grad)?|\w*Swish\w*"
        ),
    ),
    ("dropout", re.compile(r"(Stateless)?Random\w*")),
    (
        "reduction",
        re.compile(
            r"Sum|Mean|Max|Min|Prod|All|Any|Arg(Max|Min)|L2Loss|EuclideanNorm|Cum(sum|prod)|\w*Segment\w*|BiasAddGrad|TopK\w*"
        ),
    ),
    (
        "data movement",
        re.compile(
            r"(Conjugate)?Transpose|Concat\w*|Split\w*|Slice|StridedSlice\w*|(Mirror)?Pad(V2|Grad)?|Tile|Pack|Unpack|"
            r"Gather\w*|(Resource|Tensor)?Scatter\w*|Reshape|Identity\w*|ReadVariableOp|AssignVariableOp|BroadcastTo|ExpandDims|"
            r"Squeeze|OneHot|Cast|Fill|ZerosLike|OnesLike|Reverse\w*|Roll|Shape\w*|Const|ToTf|Copy\w*|ParallelConcat|Where|"
            r"SpaceToBatch\w*|BatchToSpace\w*|InvertPermutation|Range|DynamicStitch|DynamicPartition|Bitcast|EnsureShape"
        ),
    ),
    (
        "elementwise",
        re.compile(
            r"Add(V2|N)?|Sub|Mul(NoNan)?|RealDiv|Div(NoNan)?|Floor\w*|Square(dDifference)?|R?sqrt(Grad)?|Sqrt(Grad)?|Rsqrt(Grad)?|"
            r"Pow|Exp(m1)?|Log(1p)?|Neg|Abs|Sign|Reciprocal(Grad)?|Inv(Grad)?|Maximum|Minimum|Select(V2)?|Equal|NotEqual|"
            r"Greater(Equal)?|Less(Equal)?|Logical\w+|BiasAdd|Assign(Add|Sub)VariableOp|ClipByValue|Erf|Sin|Cos|Ceil|Round|Rint|"
            r"IsNan|IsFinite|Mod|FusedElementwise\w*|_FusedComposition|Xdivy|Xlogy"
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """What an operation is part of."""

    layer: str
    kind: str
    direction: str  # one of DIRECTIONS


@dataclass(frozen=True, slots=True)
class LayerRow:
    """A layer's share of the profiled steps."""

    place: LayerPlace
    calls: float  # in a step
    ms_per_step: float
    share: float  # of the step


def layer_rows(
    operations: Iterable[tuple[str, str, bool, float, float]], step_seconds: Sequence[float]
) -> list[LayerRow]:
    """Add operations (name, type, of the input pipeline, calls, nanoseconds over all steps) up by layer.

    The last row is what belongs to no operation, so that the rows add up to the step.
    """
    steps, whole_ms = len(step_seconds), 1e3 * sum(step_seconds) / len(step_seconds)
    calls: dict[LayerPlace, float] = defaultdict(float)
    spent: dict[LayerPlace, float] = defaultdict(float)
    operations = list(operations)
    optimizers = optimizer_scopes((name, type_) for name, type_, is_input, *_ in operations if not is_input)
    for name, type_, is_input, count, nanoseconds in operations:
        place = layer_place(name, type_, is_input, optimizers)
        calls[place] += count / steps
        spent[place] += nanoseconds / 1e6 / steps
    longest_first = sorted(spent.items(), key=lambda item: -item[1])
    layers = [LayerRow(place, calls[place], ms, ms / whole_ms) for place, ms in longest_first]
    left = whole_ms - sum(spent.values())
    return [*layers, LayerRow(LayerPlace(UNATTRIBUTED, UNATTRIBUTED, ""), 0.0, left, left / whole_ms)]


def optimizer_scopes(operations: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The outermost scopes of a training step that assign variables and are no part of the model.

    The model has gradients, or an operation that no optimizer needs, as where a part of it is frozen.
    """
    assigning, of_model, trains = set(), set(), False
    for name, type_ in operations:
        parts = _parts(name)
        gradient = next((at for at, part in enumerate(parts) if part in _BACKWARD), None)
        if gradient is not None:
            trains = True
            of_model.update(parts[gradient + 1 : gradient + 2])
        elif len(parts) > 1 and _ASSIGNS.fullmatch(type_):
            assigning.add(parts[0])
        elif _kind_in(_DECISIVE, _MKL.sub("", type_, count=1)) or kind_of_scopes(parts[:-1]):
            of_model.add(parts[0])
    return frozenset(assigning - of_model) if trains else frozenset()


@cache
def layer_place(name: str, type_: str, is_input: bool = False, optimizers: frozenset[str] = frozenset()) -> LayerPlace:
    """The layer, kind and direction of an operation, in a step that has these optimizers' scopes."""
    if type_ == RUNTIME:
        return LayerPlace("between operations", RUNTIME, "")
    parts = _parts(name)
    if type_ == _FETCH:
        return LayerPlace("waiting for the batch", "input", "input")
    if is_input:
        return LayerPlace(parts[0] if len(parts) > 1 else type_, "input", "input")
    type_ = _MKL.sub("", type_, count=1)
    backward = any(part in _BACKWARD for part in parts)
    parts = [part for part in parts if part not in _BACKWARD]
    scope = parts[0] if len(parts) > 1 else ""
    if not backward and (_applies(type_) or scope in optimizers or _ON_GRADIENTS.fullmatch(scope)):
        return LayerPlace(_SUFFIX.sub("", parts[0]), "optimizer", "optimizer")
    kind = _kind(parts, type_)
    # Gradients of a weight that is used twice are added up outside all scopes.
    backward = backward or (len(parts) == 1 and type_ == "AddN")
    return LayerPlace(_layer(parts, kind), kind, "backward" if backward else "forward")


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if not WRAPPING.fullmatch(part)]


def _applies(type_: str) -> bool:
    """Whether an operation applies gradients, wherever it stands."""
    return not type_.startswith("Assign") and _ASSIGNS.fullmatch(type_) is not None


def _kind(parts: Sequence[str], type_: str) -> str:
    scopes = parts[:-1]
    if kind := _kind_in(_DECISIVE, type_):
        return kind
    if "Regularizer" in scopes:
        return "regularisation"
    if kind := kind_of_scopes(scopes):
        return kind
    plain = _kind_in(_PLAIN, type_) or "other"
    if plain in ("data movement", "reduction", "matmul") and any(_EMBEDDING.fullmatch(part) for part in scopes):
        return "embedding"
    if plain == "reduction" and any(_POOLING.fullmatch(part) for part in scopes):
        return "pooling"
    if plain == "elementwise" and any(_ACTIVATING.fullmatch(part) for part in parts):
        return "activation"
    return plain


def _kind_in(kinds: Iterable[tuple[str, re.Pattern[str]]], type_: str) -> str:
    return next((kind for kind, wanted in kinds if wanted.fullmatch(type_)), "")


def kind_of_scopes(scopes: Sequence[str]) -> str:
    """The kind of layer that the names of scopes settle, whatever the operation; "" for none."""
    by_scope = (
        ("normalisation", _NORMALISING),
        ("attention", _ATTENDING),
        ("dropout", _DROPPING),
        ("loss", _LOSS),
    )
    return next((kind for kind, wanted in by_scope if any(map(wanted.fullmatch, scopes))), "")


def _is_repeated(scopes: Sequence[str]) -> bool:
    """Whether the last scope is the function inside the layer of its name: dropout_1/dropout."""
    return len(scopes) > 1 and scopes[-1] == "dropout" and _DROPPING.fullmatch(scopes[-2]) is not None


def _layer(parts: Sequence[str], kind: str) -> str:
    """The scopes of the layer: without the operation, and without what a second trace adds to the model's name."""
    scopes = list(parts[:-1])
    while scopes and (_HOW.fullmatch(scopes[-1]) or _is_repeated(scopes)):
        scopes.pop()
    # A regulariser stands outside the model: its first scope is a layer.
    if len(scopes) > 1 and kind != "regularisation":
        scopes[0] = _SUFFIX.sub("", scopes[0])
    return "/".join(scopes) or "no scope"
