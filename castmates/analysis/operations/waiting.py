"""Whether a lead waits for its input: the part of a step in which it fetches a batch and the model does not work."""

import numpy as np
import pandas as pd

from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.analysis.keys import SCENE, SCENE_ROUND
from castmates.analysis.operations.over_traces import differences
from castmates.analysis.operations.per_trace import WAITING, Traces
from castmates.analysis.statistics.intervals import columns_of, estimate

BOUND = 0.10  # of the step: more of it spent waiting is input-bound, less is compute-bound
INPUT, COMPUTE = "input-bound", "compute-bound"


def input_pipeline(traces: Traces) -> pd.DataFrame:
    """A row per scene: the share of the step that is waited for the input, and that the input's own work has."""
    whole = waits(traces)
    found = estimate(whole.rename(columns={"share": "difference"}), SCENE)
    table = pd.DataFrame(columns_of(found, "waiting_share", ends="waiting")).assign(launches=found["launches"])
    means = whole.groupby(SCENE)[["step_ms", "waiting", "working", "work_own"]].mean()
    means = means.rename(columns={"waiting": "waiting_ms", "working": "input_ms", "work_own": "input_own_ms"})
    more = differences(whole, traces.compared, [], "share")
    table = table.join(means).join(more).reset_index()
    table[["waiting_low", "waiting_high"]] = table[["waiting_low", "waiting_high"]].clip(0.0, 1.0)
    low, high = table["waiting_low"].to_numpy(dtype=float), table["waiting_high"].to_numpy(dtype=float)
    verdict = np.select([np.isnan(low), low > BOUND, high < BOUND], [TOO_FEW, INPUT, COMPUTE], UNCLEAR)
    return table.assign(verdict=verdict)


def waits(traces: Traces) -> pd.DataFrame:
    """A row per trace: milliseconds of a step that wait for the input, their share, and the input's own work."""
    operations = traces.operations
    waiting = operations[operations["layer"] == WAITING].groupby(SCENE_ROUND)["shared_ms"].sum().rename("waiting")
    of_input = (operations["direction"] == "input") & (operations["layer"] != WAITING)
    works = operations[of_input].groupby(SCENE_ROUND)[["shared_ms", "own_ms"]].sum()
    works.columns = pd.Index(["working", "work_own"])
    whole = traces.steps[[*SCENE_ROUND, "step_ms"]].join(waiting, on=SCENE_ROUND)
    whole = whole.join(works, on=SCENE_ROUND).fillna(0.0)
    return whole.assign(share=whole["waiting"] / whole["step_ms"])
