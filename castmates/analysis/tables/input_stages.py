"""What the stages of an input pipeline do for a step: their work, the functions that they run, and their waits."""

from typing import TYPE_CHECKING

from castmates.results.columns import scenes
from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

MS = 1e6  # nanoseconds
TIMES = ["calls", "work_ms", "function_ms", "waiting_ms", "threads"]


INPUT_STAGES = Table(
    "input_stages",
    "tables/input_stages.csv: a row per scene and stage of the input pipeline (tf.data).",
    *scenes.SCENE,
    col("depth", int, "1 for the stage that the step asks, 2 for the one that this asks …"),
    col("stage", str, "with those that ask it before it: Prefetch/Map"),
    *usual("calls"),
    col("work_ms", float, "in a step: of the stage itself and of its functions, on all threads"),
    col("function_ms", float, "in a step: of this, the functions that run on other threads"),
    col("waiting_ms", float, "in a step: for elements that other threads make"),
    col("threads", float, "on which it is asked, and its functions run; mean over traces"),
    *usual("launches"),
    col("share", float, "of the work of all stages"),
    *interval(
        "difference",
        "of work_ms: beside others less alone; NaN alone, and where nothing can be compared",
        "95 % between launches",
    ),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


@INPUT_STAGES.estimated_by
def input_stages(stages: "pd.DataFrame", steps: "pd.DataFrame", compared: "pd.DataFrame") -> "pd.DataFrame":
    """A row per scene and stage, in the order in which a step asks them; traces are averaged over launches."""
    import pandas as pd

    from castmates.analysis.core import launch_means
    from castmates.analysis.keys import SCENE, SCENE_ROUND
    from castmates.analysis.operations.per_trace import differences, in_every_trace, traced_steps

    if stages.empty:
        return pd.DataFrame()
    traced = traced_steps(steps)
    rows = stages.join(traced, on=SCENE_ROUND)
    own, functions = rows["own_ns"] / MS / rows["steps"], rows["function_ns"] / MS / rows["steps"]
    rows = rows.assign(
        calls=rows["calls"] / rows["steps"],
        work_ms=functions + own.where(~rows["waits"], 0.0),
        function_ms=functions,
        waiting_ms=own.where(rows["waits"], 0.0),
    )
    which = [*SCENE, "depth", "stage"]
    # A stage that a trace does not have did nothing there, as one whose elements were all made before.
    times = rows[[*SCENE_ROUND, "depth", "stage", *TIMES]]
    every = in_every_trace(times, traced.reset_index(), ["depth", "stage"], TIMES)
    means = launch_means(every, which, TIMES)
    means = means.join(differences(every, compared, ["depth", "stage"], "work_ms")).reset_index()
    whole = means.groupby(SCENE)["work_ms"].transform("sum")
    return means.assign(share=(means["work_ms"] / whole).where(whole > 0)).sort_values([*SCENE, "stage"])
