"""What profile launches leave, made for tests: operations that take so long, and so much longer beside others."""

import numpy as np
import pandas as pd

from castmates.analysis.explanations.layers import place_of
from castmates.analysis.operations.per_trace import Traces, per_trace

STEPS = 4
ALONE = {  # ms of a step
    "model/dense/MatMul:MatMul": 4.0,
    "model/embed_1/Gather:ResourceGather": 0.2,
    "model/embed_2/Gather:ResourceGather": 0.2,
    "gradient_tape/model/dense/MatMul/MatMul:MatMul": 3.0,
    "model/tiny/Add:AddV2": 0.02,
}
LEFT = 1.0  # that belongs to no operation
COMMON = {"study": "s", "company": "c", "partition": "unmanaged", "member": "lead@0", "platform": "measured"}


def launches(
    count: int,
    losses: dict[str, float],
    dice: np.random.Generator,
    between: float = 0.02,
    times: int = 2,
    beside: dict[str, float] | None = None,
) -> Traces:
    """So many launches: alone, and beside one neighbour where operations take (1 + loss) times as long.

    `beside` has other operations for the traces of the co-run.
    """
    parts = []
    for launch in range(1, count + 1):
        rows, steps = [], []
        own = {name: dice.normal(0, between) for name in ALONE | (beside or {})}
        for repetition in range(1, times + 1):
            for scene, kind, mix in (("solo", "solo", ""), ("corun:m", "corun", "lead@0+other@1")):
                about = COMMON | {"launch": launch, "scene": scene, "kind": kind, "mix": mix, "repetition": repetition}
                taken = dict(ALONE if kind == "solo" else beside or ALONE)
                for name, ms in taken.items():
                    noise = dice.normal(0, between / 2) + (own[name] if kind == "corun" else 0.0)
                    taken[name] = ms * np.exp(noise) * (1 + losses.get(name, 0.0) * (kind == "corun"))
                rows += [about | _call(name, ms, step) for step in range(STEPS) for name, ms in taken.items()]
                steps += [about | each for each in _steps(sum(taken.values()) + LEFT)]
        parts.append(per_trace(pd.DataFrame(rows), pd.DataFrame(steps)))
    return Traces.together(parts)


def _call(name: str, ms: float, step: int) -> dict[str, object]:
    operation, _, type_ = name.rpartition(":")
    place = place_of(operation, type_)
    return {
        "step": step,
        "operation": operation,
        "type": type_,
        "layer": place.layer,
        "layer_kind": place.kind,
        "direction": place.direction,
        "thread": "tf_Compute/1",
        "own_ns": round(1e6 * ms),
        "shared_ns": 1e6 * ms,
    }


def _steps(ms: float) -> list[dict[str, object]]:
    threads = {"threads_intra": 1, "threads_inter": 1}
    traced = [
        {"part": "traced", "step": step, "duration_ns": 1e6 * ms, "unattributed_ns": 1e6 * LEFT, "graph": "g"} | threads
        for step in range(STEPS)
    ]
    usual = [
        {"part": part, "step": 0, "duration_ns": 0.9e6 * ms, "unattributed_ns": np.nan, "graph": ""} | threads
        for part in ("before", "after")
    ]
    return [*traced, *usual]
