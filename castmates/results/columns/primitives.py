"""The data contract of launches under oneDNN's log: what they leave, and the study's tables that are made of it."""

from collections.abc import Mapping

from castmates.results.columns.block import Columns
from castmates.results.columns.scenes import SCENE, TRACE

# profiles/<company>/<n>/primitives.parquet: a row per primitive that oneDNN executed in the traced steps, in launches
# under its log.
PRIMITIVES: Columns = {
    **TRACE,
    "platform": "str",
    "step": "int64",  # of the trace, from 0
    "begin_ns": "int64",  # CLOCK_MONOTONIC
    "duration_ns": "int64",
    "primitive": "str",  # matmul, convolution, gemm_api …, as oneDNN names it
    "propagation": "str",  # forward_training, backward_data …; undef where there is only one
    "implementation": "str",  # brg_matmul:avx512_core; "" where oneDNN does not log it
    "isa": "str",  # the instruction set that the implementation names; "" where it names none
    "shapes": "str",  # of its problem: 256x384:384x512
    "data_types": "str",  # of its operands: src:f32 wei:f32 dst:f32
    "operands": "str",  # with their formats in memory, as logged
    "attributes": "str",  # of the primitive, as logged: operations that are fused into it
    "algorithm": "str",  # as logged
    "operation": "str",  # for which it was executed; "" where that is not known
    "type": "str",
    "direction": "str",
    "joined_by": "str",  # time, time and type; several where several operations ran then; "" where none did
}

LOGGED_TABLES: Mapping[str, Columns] = {"primitives": PRIMITIVES}  # what a launch under the log leaves beside others

_PROBLEM: Columns = {
    "primitive": "str",  # matmul, convolution …
    "propagation": "str",  # forward_training, backward_data …
    "implementation": "str",  # "" where oneDNN does not log it
    "isa": "str",  # the instruction set that the implementation names; "" where it names none
    "shapes": "str",  # of its problem
    "data_types": "str",  # of its operands
}

# tables/primitive_summary.csv: a row per scene, operation and primitive with its implementation and shapes.
PRIMITIVE_SUMMARY: Columns = {
    **SCENE,
    "operation": "str",  # with its scopes; "" where it is not known
    "type": "str",
    "direction": "str",
    **_PROBLEM,
    "calls": "float64",  # in a step
    "call_ms": "float64",  # mean
    "ms": "float64",  # in a step, under oneDNN's log; mean over launches
    "ms_low": "float64",  # 95 % between launches
    "ms_high": "float64",
    "share": "float64",  # of the step, under oneDNN's log
    "flops": "float64",  # of one call, by its shapes; NaN where they are not known
    "bytes": "float64",  # of one call: its operands, each once: a lower bound of its traffic
    "gflops": "float64",  # 10^9 operations in a second
    "launches": "int64",
}

# tables/isa_use.csv: a row per scene, extension of the instruction set and type of operation, and one for the model.
ISA_USE: Columns = {
    **SCENE,
    "type": "str",  # of operations; all operations for the whole model
    "extension": "str",  # AVX2, AVX-512, VNNI, AVX-512 BF16, AMX
    "processor": "str",  # has it, lacks it, not known
    "answer": "str",  # used, partly used, not used, wider ones in its place, unknown, nothing eligible, lacks it
    "step_ms": "float64",  # under oneDNN's log
    "eligible_ms": "float64",  # of a step: in what could use it
    "eligible_share": "float64",  # of the step
    "used_share": "float64",  # of the eligible time: primitives whose implementation names it
    "wider_share": "float64",  # … whose implementation names wider instructions, which take its place
    "unused_share": "float64",  # … whose implementation names neither
    "unknown_share": "float64",  # … where nothing shows the instructions: Eigen, implementations that name none
    "launches": "int64",
    "difference": "float64",  # of used_share: beside others less alone; NaN alone, and where nothing can be compared
    "difference_low": "float64",  # 95 % between launches
    "difference_high": "float64",
}

# tables/roofline.csv: a row per scene and operation whose work is known: of its primitives, else estimated.
ROOFLINE: Columns = {
    **SCENE,
    "operation": "str",  # with its scopes
    "type": "str",
    "data_types": "str",  # of the operands of the primitive that takes most operations; estimated: of the first one
    "ms": "float64",  # of its primitives with known work, in a step, under oneDNN's log; estimated: own time without it
    "share": "float64",  # of the step
    "flops": "float64",  # in a step, nominal
    "bytes": "float64",  # in a step: operands, each once: a lower bound of the traffic
    "intensity": "float64",  # operations per byte: an upper bound
    "gflops": "float64",  # 10^9 operations in a second; geometric mean over launches
    "gflops_low": "float64",  # 95 % between launches
    "gflops_high": "float64",
    "memory_gbs": "float64",  # of the lead's CPUs, the best launch: 10^9 bytes in a second; NaN if not measured
    "compute_gflops": "float64",  # measured with doubles, doubled for 32 bits; NaN where it was not
    "attainable_gflops": "float64",  # under both roofs, at this intensity: an upper bound
    "roof": "str",  # memory; compute or memory, where more bytes than the bound would decide
    "roof_share": "float64",  # of what is attainable
    "launches": "int64",
    "ratio": "float64",  # gflops beside others over those alone; NaN alone, and where nothing can be compared
    "ratio_low": "float64",  # 95 % between launches
    "ratio_high": "float64",
    "source": "str",  # of operations and bytes: primitives; estimated, from the graph of the step
}

PRIMITIVE_TABLES: dict[str, Columns] = {
    "primitive_summary": PRIMITIVE_SUMMARY,
    "isa_use": ISA_USE,
    "roofline": ROOFLINE,
}
