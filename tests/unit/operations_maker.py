"""What profile launches leave, made for tests: operations that take so long, and so much longer beside others."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.analysis.explanations.layers import UNATTRIBUTED, layer_place
from castmates.analysis.operations.effects import estimate_operation_effects
from castmates.analysis.operations.per_trace import Traces, by_layer, by_type, input_pipeline, per_step, per_trace
from castmates.analysis.operations.primitives import known_work, operation_summary
from castmates.analysis.tables.iterations import iterations
from castmates.analysis.tables.thread_pools import thread_pools
from castmates.report.results import Results, read_results
from tests.unit.results_maker import make

STEPS = 4
ALONE = {  # ms of a step
    "model/dense/MatMul:MatMul": 4.0,
    "model/embed_1/Gather:ResourceGather": 0.2,
    "model/embed_2/Gather:ResourceGather": 0.2,
    "gradient_tape/model/dense/MatMul/MatMul:MatMul": 3.0,
    "model/tiny/Add:AddV2": 0.02,
}
LEFT = 1.0  # that belongs to no operation
THREADS = {"threads_intra": 1, "threads_inter": 1}
COMMON = {"study": "s", "cohort": "c", "partition": "unmanaged", "member": "lead@0", "platform": "measured"}


def launches(*about, **more) -> Traces:
    """The traces of `recorded` launches."""
    return Traces.together([per_trace(*each) for each in recorded(*about, **more)])


def recorded(
    count: int,
    losses: dict[str, float],
    dice: np.random.Generator,
    between: float = 0.02,
    times: int = 2,
    beside: dict[str, float] | None = None,
) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Calls and steps of launches: alone, and beside an antagonist where operations take (1 + loss) times as long.

    `beside` has other operations for the traces of the co-run.
    """
    parts = []
    for launch in range(1, count + 1):
        rows, steps = [], []
        own = {name: dice.normal(0, between) for name in ALONE | (beside or {})}
        for repetition in range(1, times + 1):
            for scene, kind, mix in (("alone", "alone", ""), ("corun:m", "corun", "lead@0+other@1")):
                about = COMMON | {"launch": launch, "scene": scene, "kind": kind, "mix": mix, "round": repetition}
                taken = dict(ALONE if kind == "alone" else beside or ALONE)
                for name, ms in taken.items():
                    noise = dice.normal(0, between / 2) + (own[name] if kind == "corun" else 0.0)
                    taken[name] = ms * np.exp(noise) * (1 + losses.get(name, 0.0) * (kind == "corun"))
                rows += [about | call_of(name, ms, step) for step in range(STEPS) for name, ms in taken.items()]
                steps += [about | each for each in steps_of(sum(taken.values()) + LEFT)]
        parts.append((pd.DataFrame(rows), pd.DataFrame(steps)))
    return parts


def drawn(count: int, losses: dict[str, float], dice: np.random.Generator, studies: int) -> Traces:
    """So many studies, each of so many launches with one trace of a scene, without its calls."""
    rows, steps = [], []
    for study, launch in itertools.product(range(studies), range(1, count + 1)):
        for scene, kind, mix in (("alone", "alone", ""), ("corun:m", "corun", "lead@0+other@1")):
            about = COMMON | {"study": f"s{study}", "launch": launch, "scene": scene, "kind": kind, "mix": mix}
            about["round"] = 1
            spread = 0.02 if kind == "corun" else 0.01
            taken = {
                name: ms * np.exp(dice.normal(0, spread)) * (1 + losses.get(name, 0.0) * (kind == "corun"))
                for name, ms in ALONE.items()
            }
            rows += [about | WORDS[name] | _times(ms) for name, ms in taken.items()]
            rows.append(about | LEFT_WORDS | _times(LEFT))
            steps.append(about | {"steps": STEPS, "step_ms": sum(taken.values()) + LEFT, **THREADS})
    return Traces(pd.DataFrame(rows), pd.DataFrame(steps), pd.DataFrame())


def _times(ms: float) -> dict[str, float]:
    return {"calls": 1.0, "own_ms": ms, "own_min_ms": ms, "own_max_ms": ms, "shared_ms": ms}


def _words(name: str) -> dict[str, str]:
    operation, _, type_ = name.rpartition(":")
    place = layer_place(operation, type_)
    return {
        "operation": operation,
        "type": type_,
        "layer": place.layer,
        "layer_kind": place.kind,
        "direction": place.direction,
    }


def tables(traces: Traces) -> dict[str, pd.DataFrame]:
    """All tables of a study with these traces, but that of single steps."""
    return {
        "operation_effects": estimate_operation_effects(traces, margin=0.02, level=0.05),
        "operation_summary": operation_summary(traces, known_work()),
        "operation_types": by_type(traces),
        "operation_layers": by_layer(traces),
        "input_pipeline": input_pipeline(traces),
        "thread_pools": thread_pools(traces),
    }


def of_steps(every: list[tuple[pd.DataFrame, pd.DataFrame]]) -> pd.DataFrame:
    """The table of single steps of these calls and steps."""
    steps, in_steps = pd.concat([own for _, own in every]), pd.concat([per_step(*each) for each in every])
    return iterations(steps, Traces.together([per_trace(*each) for each in every]), in_steps)


def results(folder: Path, count: int) -> Results:
    """A study whose lead loses in its lookups and in a product of matrices."""
    losses = {name: 0.2 for name in ALONE if "embed" in name or name.startswith("model/dense")}
    every = recorded(count, losses, np.random.default_rng(1), between=0.01)
    made = tables(Traces.together([per_trace(*each) for each in every])) | {"iterations": of_steps(every)}
    return replace(read_results(make(folder, launches=3, rounds=1)), **made)


def call_of(name: str, ms: float, step: int) -> dict[str, object]:
    """A call of an operation that takes so long."""
    times = {"own_ns": round(1e6 * ms), "shared_ns": 1e6 * ms}
    return {"step": step, "thread": "tf_Compute/1", **_words(name), **times}


def steps_of(ms: float) -> list[dict[str, object]]:
    """The steps of a trace, each so long, with usual ones before and after."""
    traced = [
        {"part": "traced", "step": step, "duration_ns": 1e6 * ms, "unattributed_ns": 1e6 * LEFT} | THREADS
        for step in range(STEPS)
    ]
    usual = [
        {"part": part, "step": 0, "duration_ns": 0.9e6 * ms, "unattributed_ns": np.nan} | THREADS
        for part in ("before", "after")
    ]
    return [*traced, *usual]


WORDS = {name: _words(name) for name in ALONE}
LEFT_WORDS = {"operation": "", "type": UNATTRIBUTED, "layer": "", "layer_kind": UNATTRIBUTED, "direction": ""}
