"""What the stages of an input pipeline do for a step: their work, the functions that they run, and their waits."""

import pandas as pd

from castmates.analysis.keys import LAUNCH, ROUND, SCENE
from castmates.analysis.operations.beside import differences

MS = 1e6  # nanoseconds
TIMES = ["calls", "work_ms", "function_ms", "waiting_ms", "threads"]


def input_stages(stages: pd.DataFrame, steps: pd.DataFrame, both: pd.DataFrame) -> pd.DataFrame:
    """A row per scene and stage, in the order in which a step asks them; traces are averaged over launches."""
    if stages.empty:
        return pd.DataFrame()
    trace = [*SCENE, *ROUND]
    traced = steps[steps["part"] == "traced"].groupby(trace).size().rename("steps")
    rows = stages.join(traced, on=trace)
    own, functions = rows["own_ns"] / MS / rows["steps"], rows["function_ns"] / MS / rows["steps"]
    rows = rows.assign(
        calls=rows["calls"] / rows["steps"],
        work_ms=functions + own.where(~rows["waits"], 0.0),
        function_ms=functions,
        waiting_ms=own.where(rows["waits"], 0.0),
    )
    which = [*SCENE, "depth", "stage"]
    # A stage that a trace does not have did nothing there, as one whose elements were all made before.
    traces = traced.reset_index().merge(rows[which].drop_duplicates(), on=SCENE)
    every = traces.merge(rows[[*trace, "depth", "stage", *TIMES]], "left", [*trace, "depth", "stage"]).fillna(0.0)
    launches = every.groupby([*which, *LAUNCH])[TIMES].mean()
    means = launches.groupby(which)[TIMES].mean()
    means = means.assign(launches=launches.groupby(which).size())
    means = means.join(differences(every, both, ["depth", "stage"], "work_ms")).reset_index()
    whole = means.groupby(SCENE)["work_ms"].transform("sum")
    return means.assign(share=(means["work_ms"] / whole).where(whole > 0)).sort_values([*SCENE, "stage"])
