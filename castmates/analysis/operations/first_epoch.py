"""The first epoch against later ones: how long steps wait for records that come from storage, and for cached ones.

Both begin with the first record of the input, in the same launch, in pairs: what differs is where records come from.
"""

import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.keys import LAUNCH, SCENE
from castmates.analysis.operations.per_trace import Traces
from castmates.analysis.operations.waiting import input_pipeline, waits
from castmates.analysis.statistics.intervals import columns_of, estimate
from castmates.study.profile_launches import CACHED, FIRST

ABOUT = [*LAUNCH, "scene", "round"]  # of a trace, in the records of launches
MB = 1e6
CHANGES = {"step_ms": "longer", "share": "more"}  # what is compared, and how its columns begin


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
