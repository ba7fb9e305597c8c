"""The data contract of profile launches: what they leave, and the study's tables that are made of it."""

from functools import partial

from castmates.results.columns.contract import Table, by_name, col, ends, interval, usual
from castmates.results.columns.scenes import SCENE, TRACE
from castmates.study import capabilities

PROFILE_RECORD = "profile.json"  # what a profile launch records of itself, written last

OPERATIONS = Table(
    "operations",
    "profiles/<cohort>/<n>/operations.parquet: a row per call of an operation in the traced steps.",
    *TRACE,
    col("step", int, "of the trace, from 0; -1 for a call that began before the first or between two"),
    col("heartbeat", int | None, "that ends this step, counted from when the lead was ready; NA outside of steps"),
    col("operation", str, 'with its scopes, without the functions around it; "" inside the framework, between two'),
    col("type", str, "of the operation: MatMul; runtime between two"),
    *usual("layer layer_kind"),
    col("direction", str, 'forward, backward, optimizer, input; "" for none'),
    col("thread", str, "that ran it, as the framework names it"),
    col("begin_ns", int, "CLOCK_MONOTONIC, as heartbeats"),
    *usual("duration_ns"),
    col("own_ns", int, "without the operations that it calls"),
    col("shared_ns", float, "its part of the steps: moments are divided among all that works at the time"),
    col("parent", int, "the row of this trace, from 0, whose part it is; -1 for none"),
    *usual("platform"),
)

PROFILED_STEPS = Table(
    "profiled_steps",
    "profiles/<cohort>/<n>/profiled_steps.parquet: a row per step, traced ones and usual ones right before and after.",
    *TRACE,
    col("part", str, "before, traced, after"),
    col("step", int, "of its part, from 0"),
    col("heartbeat", int | None, "that ends it, counted from when the lead was ready; NA for usual steps"),
    *usual("begin_ns duration_ns"),
    col("unattributed_ns", float, "of a traced step: what no operation accounts for; NaN for usual ones"),
    col("threads_intra", int, "of one operation"),
    col("threads_inter", int, "of operations side by side"),
    *usual("platform"),
)

OPERATION_WORK = Table(
    "operation_work",
    "profiles/<cohort>/<n>/operation_work.parquet: a row per trace and operation whose work it shows: JAX, and "
    "PyTorch of programs that are followed.",
    *TRACE,
    *usual("operation type"),
    col("flops", float, "floating-point operations of a call, in the mean of those in steps; NaN: not known"),
    col("bytes", float, "that a call takes and gives, each operand once, likewise"),
    col("data_types", str, "of the first numbers that it takes: src:f32"),
    *usual("platform"),
)

MEMORY = Table(
    "memory",
    "profiles/<cohort>/<n>/memory.parquet: a row per piece of memory that an allocator gave out or took back.",
    *TRACE,
    col("step", int, "of the trace, from 0; -1 outside of steps"),
    col("at_ns", int, "CLOCK_MONOTONIC"),
    col("change", int, "bytes; negative where memory was given back"),
    col("in_use", int, "bytes of its allocator, right after; PyTorch: since the trace began"),
    col("peak", int, "the same at most, since the job's start; PyTorch: since the trace began"),
    col("allocator", str, "those that are traced: on a CPU oneDNN's (TensorFlow), all (PyTorch), none (JAX)"),
    col("operation", str, 'for which it was; "" where that is not known'),
    *usual("platform"),
)

TRACED_STAGES = Table(
    "traced_stages",
    "profiles/<cohort>/<n>/traced_stages.parquet: a row per trace and stage of its input pipeline, over all its steps.",
    *TRACE,
    col("depth", int, "1 for the stage that the step asks, 2 for the one that this asks …"),
    col("stage", str, "with those that ask it before it: Prefetch/Map"),
    col("calls", int, "that began in a step"),
    col("own_ns", int, "of all of them, without the stages that they ask on the same thread"),
    col("function_ns", int, "of the functions that it runs on other threads"),
    col("waits", bool, "its elements are made on other threads: its own time is a wait for them"),
    col("threads", int, "on which it is asked, and its functions run"),
    *usual("platform"),
)

DEVICE_CALLS = Table(
    "device_calls",
    "profiles/<cohort>/<n>/device_calls.parquet: a row per kernel, copy or piece of memory on a stream of a GPU.",
    *TRACE,
    col("step", int, "in which it began on the GPU, from 0; -1 outside of steps"),
    col("device", str, "GPU:0"),
    col("stream", str, "of the device"),
    col("activity", str, "kernel, copy, set, memory, other"),
    col("kernel", str, "its name; MemcpyH2D of a copy"),
    col("operation", str, 'that it is of, with its scopes; "" where that is not known'),
    col("type", str, "of the operation"),
    *usual("begin_ns duration_ns"),
    col("bytes", int, "that a copy moves, or memory has"),
    col("tensor_cores", bool, "its name is one of kernels that use them"),
    col("correlation", int, "the number that CUDA gives a launch; 0 for none"),
    *usual("platform"),
)

PROFILE_TABLES = by_name(OPERATIONS, PROFILED_STEPS, MEMORY, TRACED_STAGES, DEVICE_CALLS)

_profile_table = partial(Table, rule="estimate_operations", asked=capabilities.PROFILE)

OPERATION_EFFECTS = _profile_table(
    "operation_effects",
    "tables/operation_effects.csv: a row per mix, partition and group of operations, and one for the whole step.",
    *usual("study mix partition member"),
    col("group", str, "an operation and its type, or what smaller ones were put together as; step for the whole step"),
    *interval(
        "ratio",
        "how many times as long it takes of a step as alone; geometric mean over launches",
        "95 % between launches",
    ),
    *interval("loss_pct", "the same as a loss: 100 (1 - 1 / ratio)"),
    *usual("launches"),
    col("traces", int, "rounds of traces, over all launches"),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the study's groups; whole steps are adjusted apart"),
    col("verdict", str, "loss, gain, no loss, unclear, too few launches, no data"),
    col("alone_ms", float, "of a step of the lead alone; over groups they add up to the step"),
    col("ms", float, "of a step beside others"),
    *interval("difference_ms", "", "95 % between launches", stem="difference"),
    col("share", float, "of the step of the lead alone"),
    col("share_of_loss", float, "of the step's difference; NaN where the step is not proven to lose"),
    *usual("platform"),
    *ends("share_of_loss", "95 % between launches, by Fieller; NaN where the difference in ms may be none"),
    estimate="operations.effects:estimate_operation_effects",
)

_TIMES = (
    *usual("calls"),
    col("call_ms", float, "of one call, without what it calls: mean"),
    col("own_min_ms", float, "the shortest call"),
    col("own_max_ms", float, "the longest one"),
    col("own_ms", float, "of all calls in a step"),
    *interval(
        "shared_ms",
        "its part of a step, in which moments are divided among all that works; mean over launches",
        "95 % between launches",
        stem="shared",
    ),
    *usual("share launches"),
    *ends("share", "95 % between launches, by Fieller: both the part and the step vary"),
)

OPERATION_SUMMARY = _profile_table(
    "operation_summary",
    "tables/operation_summary.csv: a row per scene and operation; what belongs to none is a row too.",
    *SCENE,
    *usual("operation type layer layer_kind"),
    col("direction", str, "forward, backward, optimizer, input"),
    *_TIMES,
    col("flops", float, "floating-point operations of all its calls in a step; NaN: not known"),
    col("bytes", float, "of their operands, each once: a lower bound of the traffic; NaN: not known"),
    col("gflops", float, "10^9 operations in a second of its own time; NaN: not known, or none"),
    col("source", str, 'of these three: primitives; estimated, from types and shapes; "" where nothing is known'),
    estimate="operations.primitives:operation_summary",
)

OPERATION_TYPES = _profile_table(
    "operation_types",
    "tables/operation_types.csv: a row per scene, type of operation and direction.",
    *SCENE,
    *usual("type direction"),
    *_TIMES,
    estimate="operations.per_trace:by_type",
)

OPERATION_LAYERS = _profile_table(
    "operation_layers",
    "tables/operation_layers.csv: a row per scene, scope and direction, at every depth of scopes.",
    *SCENE,
    col("depth", int, "of the scope, from 1"),
    col("layer", str, "scope; it has all that deeper ones have"),
    *usual("direction"),
    *_TIMES,
    estimate="operations.per_trace:by_layer",
)

# What input_pipeline and first_epoch have in common.
_WAITS = (
    col("step_ms", float, "milliseconds of a step"),
    col("waiting_ms", float, "in which a batch is fetched and no operation of the model runs"),
    *interval("waiting_share", "of the step", "95 % between launches", stem="waiting"),
    col("input_ms", float, "of the input's own operations, where the step neither works nor waits"),
    col("input_own_ms", float, "of the same: how long they work in a step, beside others or not"),
    *usual("launches"),
    col("verdict", str, "input-bound, compute-bound, unclear, too few launches"),
)

INPUT_PIPELINE = _profile_table(
    "input_pipeline",
    "tables/input_pipeline.csv: a row per scene: whether its steps wait for their input.",
    *SCENE,
    *_WAITS,
    *interval(
        "difference",
        "of waiting_share: beside others less alone; NaN alone, and where nothing can be compared",
        "95 % between launches",
    ),
    estimate="operations.per_trace:input_pipeline",
)

FIRST_EPOCH = Table(
    "first_epoch",
    "tables/first_epoch.csv: a row per scene and epoch: the same, for steps that begin with the first record.",
    *SCENE,
    col("epoch", str, "first: records come from storage; cached: they are in the page cache"),
    *_WAITS,
    *interval(
        "difference",
        "of waiting_share: beside others less alone, in the same epoch; NaN alone",
        "95 % between launches",
    ),
    col("storage_mb", float, "that storage gave in a step; NaN where the kernel does not count it"),
    *interval(
        "longer",
        "milliseconds of a step of the first epoch more than of a cached one; NaN for cached ones",
        "95 % between launches",
    ),
    *interval(
        "more",
        "of waiting_share: in the first epoch less in a cached one; NaN for cached ones",
        "95 % between launches",
    ),
    rule="estimate_operations",
    estimate="operations.per_trace:first_epoch",
    asked=capabilities.FIRST_EPOCH,
)
