"""What a TensorFlow operation is part of: its layer, the kind of layer, and the direction; pure.

An operation is known by its name, which holds the scopes of the layers that it lies in, and by its type. The optimiser
of TensorFlow's graphs joins operations and gives them the last one's name (`conv_b/Relu:_MklNativeFusedConv2D`), so a
layer is known by its scope, and a type that settles the kind is asked before the scope is.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
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


# What an operation of PyTorch or JAX is part of: its layer, the kind of layer, and the direction; pure.
#
# Both frameworks know an operation by its type and the scopes that it lies in: PyTorch by the modules and the functions
# that call it, JAX by the scopes in a compiled program's metadata.

NO_SCOPE = "no scope"
# Of PyTorch's types, without their underscores; the first that fits. All that such an operation calls is of its kind …
_FRAMEWORK_DECISIVE = (
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
_FRAMEWORK_PLAIN = (
    ("matmul", re.compile(r"(addmm|mm|bmm|baddbmm|addbmm|matmul|linear|mkldnnlinear|dot|mv|addmv|addr|outer|einsum)")),
    ("activation", re.compile(r"threshold")),
    (
        "reduction",
        re.compile(
            r"(foreach)?(sum|mean|a?max|a?min|prod|norm|linalgvectornorm|var|std|any|all|arg(max|min)|cum(sum|prod)|topk)"
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
_FRAMEWORK_BACKWARD = re.compile(r"backward(data)?\d*$")
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
FORWARD, BACKWARD = "forward", "backward"
_FRAMEWORK_ACTIVATING = re.compile(
    r"_?(\w*relu\d*|\w*elu|silu|swish|sigmoid|log_sigmoid|softmax|log_softmax|softplus|tanh|glu)"
)
_FRAMEWORK_EMBEDDING = re.compile(r"\w*embed\w*")


@cache
def decisive_kind(type_: str) -> str:
    """The kind of a PyTorch operation that settles what it calls too; "" where it settles nothing."""
    plain = _bare(type_)
    return next((kind for kind, wanted in _FRAMEWORK_DECISIVE if wanted.fullmatch(plain)), "")


@cache
def torch_place(scopes: tuple[str, ...], type_: str, direction: str, settled: str = "") -> LayerPlace:
    """The place of a PyTorch operation; `settled` is the kind that a caller of it settles."""
    layer = "/".join(scopes) or NO_SCOPE
    if direction in ("input", "optimizer"):
        return LayerPlace(layer, direction, direction)
    plain = _bare(type_)
    kind = settled or next((kind for kind, wanted in _FRAMEWORK_PLAIN if wanted.fullmatch(plain)), "other")
    return LayerPlace(layer, kind, direction)


def jax_place(
    scopes: Sequence[str], functions: Sequence[str], primitive: str, inside: Collection[str], direction: str
) -> LayerPlace:
    """The place of a JAX operation: what is fused with a product or a convolution is of that kind."""
    layer = "/".join(scopes) or NO_SCOPE
    if OPTIMIZER in scopes:
        return LayerPlace(layer, OPTIMIZER, OPTIMIZER)
    kind = _jax_kind(scopes, functions, primitive, inside)
    if not scopes and not functions and kind == "data movement" and direction != BACKWARD:
        return LayerPlace(layer, kind, "")  # XLA's own, such as copies between layouts
    return LayerPlace(layer, OPTIMIZER if direction == OPTIMIZER else kind, direction)


def _jax_kind(scopes: Sequence[str], functions: Sequence[str], primitive: str, inside: Collection[str]) -> str:
    if "convolution" in inside:
        return "convolution"
    kind = kind_of_scopes([*scopes, *functions])
    if "dot" in inside:
        return kind if kind == "attention" else "matmul"
    if kind:
        return kind
    plain = next((kind for kind, wanted in _JAX if wanted.fullmatch(primitive)), "other")
    if plain in ("data movement", "reduction") and any(map(_FRAMEWORK_EMBEDDING.fullmatch, scopes)):
        return "embedding"
    if plain in ("elementwise", "reduction") and any(map(_FRAMEWORK_ACTIVATING.fullmatch, functions)):
        return "activation"
    return plain


def _bare(type_: str) -> str:
    """A type as it is without its underscores, and without that it is a gradient."""
    return _FRAMEWORK_BACKWARD.sub("", type_.replace("_", "").lower())


_COMPUTING = frozenset(
    {"convolution", "pooling", "normalisation", "attention", "matmul", "activation", "reduction", "elementwise", "loss"}
)
_AUTOGRAD_NODE = re.compile(r"\w+Backward\d+")
_CONVERTING = re.compile(r"Cast|Reorder|ToTf|InputConversion|convert(_element_type)?")  # types, or oneDNN's layouts


@cache
def computes(type_: str) -> bool:
    """Whether operations of a type, of any framework, compute with arrays: reads, lookups, shapes and copies do not."""
    if _AUTOGRAD_NODE.fullmatch(type_):
        return False  # it calls those that do
    own = _MKL.sub("", type_, count=1)
    known = (
        _kind_in((*_DECISIVE, *_PLAIN), own),
        _kind_in((*_FRAMEWORK_DECISIVE, *_FRAMEWORK_PLAIN), _bare(type_)),
        _kind_in(_JAX, type_),
    )
    kind = next(filter(None, known), "")
    return kind in _COMPUTING or _CONVERTING.fullmatch(own) is not None or (not kind and _applies(own))
