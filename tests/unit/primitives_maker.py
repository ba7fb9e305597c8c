"""What launches under oneDNN's log leave, made for tests."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.analysis.operations.per_trace import Traces, per_trace
from castmates.analysis.operations.primitives import Roofs, isa_use, reduced, roofline, summarise_primitives
from castmates.report.results import Results
from tests.unit import operations_maker
from tests.unit.operations_maker import COMMON, LEFT, STEPS, call_of, steps_of

FLOPS, MOVED = 2 * 256 * 512 * 384, 4 * (256 * 384 + 384 * 512 + 256 * 512)  # of the product below
ALONE_MS, LOSS = 2.0, 0.5  # of its primitive, in a step; and beside another
DENSE = "model/dense/MatMul:MatMul"
CALLS = {DENSE: 4.0, "model/norm/Softmax:Softmax": 1.0, "model/act/Relu:Relu": 2.0, "model/take/Gather:GatherV2": 3.0}
PRIMITIVES = {  # operation: primitive, implementation, isa, shapes, data types, ms of a step
    DENSE: ("matmul", "x64:gemm:jit", "", "256x384:384x512", "src:f32 wei:f32 dst:f32", ALONE_MS),
    "model/norm/Softmax:Softmax": ("softmax", "jit:avx512_core", "avx512_core", "64x64", "src:f32 dst:f32", 0.75),
}
FLAGS = ["avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq"]
ROOFS = {"lead@0": Roofs(memory_gbs=20.0, compute_gflops_f64=60.0)}


def launches(count: int, dice: np.random.Generator, between: float = 0.01) -> tuple[Traces, pd.DataFrame]:
    """So many launches, alone and beside one that halves the speed of the product's primitive."""
    parts, rows = [], []
    for launch in range(101, 101 + count):
        calls, steps, executed = [], [], []
        slower = np.exp(dice.normal(0, between))
        for scene, kind, mix in (("alone", "alone", ""), ("corun:m", "corun", "lead@0+other@1")):
            about = COMMON | {"launch": launch, "scene": scene, "kind": kind, "mix": mix, "round": 1}
            whole = sum(CALLS.values()) + LEFT
            calls += [about | call_of(name, ms, step) for step in range(STEPS) for name, ms in CALLS.items()]
            steps += [about | each for each in steps_of(whole)]
            for step in range(STEPS):
                for name, (primitive, implementation, isa, shapes, types, ms) in PRIMITIVES.items():
                    operation, _, type_ = name.rpartition(":")
                    took = ms * slower * ((1 + LOSS) if kind == "corun" and name == DENSE else 1.0)
                    executed.append(
                        about
                        | {"step": step, "duration_ns": round(1e6 * took), "primitive": primitive, "isa": isa}
                        | {"implementation": implementation, "shapes": shapes, "data_types": types, "type": type_}
                        | {"propagation": "undef", "operation": operation, "direction": "forward"}
                    )
        parts.append(per_trace(pd.DataFrame(calls), pd.DataFrame(steps)))
        rows.append(reduced(pd.DataFrame(executed), parts[-1].steps))
    return Traces.together(parts), pd.concat(rows, ignore_index=True)


def tables(traces: Traces, rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of a study with these launches."""
    return {
        "primitive_summary": summarise_primitives(rows, traces),
        "isa_use": isa_use(traces, rows, FLAGS),
        "roofline": roofline(rows, traces.steps, traces.compared, ROOFS),
    }


def results(folder: Path, count: int) -> Results:
    """A study with so many launches under the log."""
    made = tables(*launches(count, np.random.default_rng(1)))
    return replace(operations_maker.results(folder, count), **made)
