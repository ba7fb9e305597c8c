"""The data contract of launches under oneDNN's log: what they leave, and the study's tables that are made of it."""

from castmates.results.columns.contract import Table, col, interval, usual
from castmates.results.columns.scenes import SCENE, TRACE
from castmates.study import capabilities

PRIMITIVES = Table(
    "primitives",
    "profiles/<cohort>/<n>/primitives.parquet: a row per primitive that oneDNN executed in the traced steps, in "
    "launches under its log.",
    *TRACE,
    *usual("platform"),
    col("step", int, "of the trace, from 0"),
    *usual("begin_ns duration_ns"),
    col("primitive", str, "matmul, convolution, gemm_api …, as oneDNN names it"),
    col("propagation", str, "forward_training, backward_data …; undef where there is only one"),
    col("implementation", str, 'brg_matmul:avx512_core; "" where oneDNN does not log it'),
    col("isa", str, 'the instruction set that the implementation names; "" where it names none'),
    col("shapes", str, "of its problem: 256x384:384x512"),
    col("data_types", str, "of its operands: src:f32 wei:f32 dst:f32"),
    col("operands", str, "with their formats in memory, as logged"),
    col("attributes", str, "of the primitive, as logged: operations that are fused into it"),
    col("algorithm", str, "as logged"),
    col("operation", str, 'for which it was executed; "" where that is not known'),
    *usual("type direction"),
    col("joined_by", str, 'time, time and type; several where several operations ran then; "" where none did'),
)

_PROBLEM = (
    col("primitive", str, "matmul, convolution …"),
    col("propagation", str, "forward_training, backward_data …"),
    col("implementation", str, '"" where oneDNN does not log it'),
    col("isa", str, 'the instruction set that the implementation names; "" where it names none'),
    col("shapes", str, "of its problem"),
    col("data_types", str, "of its operands"),
)

PRIMITIVE_SUMMARY = Table(
    "primitive_summary",
    "tables/primitive_summary.csv: a row per scene, operation and primitive with its implementation and shapes.",
    *SCENE,
    col("operation", str, 'with its scopes; "" where it is not known'),
    *usual("type direction"),
    *_PROBLEM,
    *usual("calls"),
    col("call_ms", float, "mean"),
    *interval("ms", "in a step, under oneDNN's log; mean over launches", "95 % between launches"),
    col("share", float, "of the step, under oneDNN's log"),
    col("flops", float, "of one call, by its shapes; NaN where they are not known"),
    col("bytes", float, "of one call: its operands, each once: a lower bound of its traffic"),
    col("gflops", float, "10^9 operations in a second"),
    *usual("launches"),
    rule="estimate_operations",
    estimate="operations.primitives:summarise_primitives",
    asked=capabilities.PRIMITIVES,
)

ISA_USE = Table(
    "isa_use",
    "tables/isa_use.csv: a row per scene, extension of the instruction set and type of operation, and one for the"
    " model.",
    *SCENE,
    col("type", str, "of operations; all operations for the whole model"),
    col("extension", str, "AVX2, AVX-512, VNNI, AVX-512 BF16, AMX"),
    col("processor", str, "has it, lacks it, not known"),
    col("answer", str, "used, partly used, not used, wider ones in its place, unknown, nothing eligible, lacks it"),
    col("step_ms", float, "under oneDNN's log"),
    col("eligible_ms", float, "of a step: in what could use it"),
    col("eligible_share", float, "of the step"),
    col("used_share", float, "of the eligible time: primitives whose implementation names it"),
    col("wider_share", float, "… whose implementation names wider instructions, which take its place"),
    col("unused_share", float, "… whose implementation names neither"),
    col("unknown_share", float, "… where nothing shows the instructions: Eigen, implementations that name none"),
    *usual("launches"),
    *interval(
        "difference",
        "of used_share: beside others less alone; NaN alone, and where nothing can be compared",
        "95 % between launches",
    ),
    rule="estimate_operations",
    estimate="operations.primitives:isa_use",
    asked=capabilities.PRIMITIVES,
)

ROOFLINE = Table(
    "roofline",
    "tables/roofline.csv: a row per scene and operation whose work is known: of its primitives, else estimated.",
    *SCENE,
    *usual("operation type"),
    col("data_types", str, "of the operands of the primitive that takes most operations; estimated: of the first one"),
    col(
        "ms", float, "of its primitives with known work, in a step, under oneDNN's log; estimated: own time without it"
    ),
    *usual("share"),
    col("flops", float, "in a step, nominal"),
    col("bytes", float, "in a step: operands, each once: a lower bound of the traffic"),
    col("intensity", float, "operations per byte: an upper bound"),
    *interval("gflops", "10^9 operations in a second; geometric mean over launches", "95 % between launches"),
    col("memory_gbs", float, "of the lead's CPUs, the best launch: 10^9 bytes in a second; NaN if not measured"),
    col("compute_gflops", float, "measured with doubles, doubled for 32 bits; NaN where it was not"),
    col("attainable_gflops", float, "under both roofs, at this intensity: an upper bound"),
    col("roof", str, "memory; compute or memory, where more bytes than the bound would decide"),
    col("roof_share", float, "of what is attainable"),
    *usual("launches"),
    *interval(
        "ratio",
        "gflops beside others over those alone; NaN alone, and where nothing can be compared",
        "95 % between launches",
    ),
    col("source", str, "of operations and bytes: primitives; estimated, from types and shapes"),
    rule="estimate_operations",
    estimate="operations.primitives:rooflines",
    asked=capabilities.PROFILE,
)
