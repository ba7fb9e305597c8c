"""Whether a lead waits for its input: the part of a step in which it fetches a batch and the model does not work.

The first epoch is held against later ones: how long steps wait for records that come from storage, and for cached ones.
Both begin with the first record of the input, in the same launch, in pairs: what differs is where records come from.
"""

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.analysis.keys import LAUNCH, SCENE, SCENE_ROUND
from castmates.analysis.operations.over_traces import differences
from castmates.analysis.operations.per_trace import WAITING, Traces
from castmates.analysis.statistics.intervals import columns_of, estimate
from castmates.study.profile_launches import CACHED, FIRST

BOUND = 0.10  # of the step: more of it spent waiting is input-bound, less is compute-bound
INPUT, COMPUTE = "input-bound", "compute-bound"
ABOUT = [*LAUNCH, "scene", "round"]  # of a trace, in the records of launches
MB = 1e6
CHANGES = {"step_ms": "longer", "share": "more"}  # what is compared, and how its columns begin


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


def first_epoch(epochs: Traces, epochs_about: pd.DataFrame) -> pd.DataFrame:
    """A row per scene and epoch; `epochs_about` has the epoch, the pair and the bytes from storage of each trace."""
    parts = []
    for epoch in (FIRST, CACHED):
        own = _of(epochs, epochs_about[epochs_about["epoch"] == epoch])
        if len(own.steps):
            parts.append(input_pipeline(own).assign(epoch=epoch).merge(_storage(own), "left", SCENE))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    table = table.merge(_changes(epochs, epochs_about).assign(epoch=FIRST), "left", [*SCENE, "epoch"])
    return table.sort_values(SCENE, kind="stable")


def _of(traces: Traces, about: pd.DataFrame) -> Traces:
    """The traces of one epoch, numbered by their pairs, so that those of one pair are compared."""
    numbers = about[[*ABOUT, "pair", "storage_bytes"]]

    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.merge(numbers, on=ABOUT).drop(columns="round").rename(columns={"pair": "round"})

    return traces.changed(chosen)


def _storage(own: Traces) -> pd.DataFrame:
    """By scene: megabytes that storage gave in a step, in the mean of launches."""
    mb = own.steps["storage_bytes"].astype("float64") / own.steps["steps"] / MB
    return launch_means(own.steps.assign(storage_mb=mb), SCENE, ["storage_mb"])[["storage_mb"]].reset_index()


def _changes(traces: Traces, about: pd.DataFrame) -> pd.DataFrame:
    """By scene: how much longer a step is at first, and how much more of it waits, each with its interval."""
    known = waits(traces).merge(about, on=ABOUT)
    which = [*SCENE, *LAUNCH, "pair"]
    first, cached = (known.loc[known["epoch"] == epoch, [*which, *CHANGES]] for epoch in (FIRST, CACHED))
    pairs = first.merge(cached, on=which, suffixes=("", "_cached")).rename(columns={"pair": "round"})
    parts = []
    for column, name in CHANGES.items():
        found = estimate(pairs.assign(difference=pairs[column] - pairs[f"{column}_cached"]), SCENE)
        parts.append(pd.DataFrame(columns_of(found, name)))
    return parts[0].join(parts[1]).reset_index()
