"""Layers of profiled steps -> milliseconds of a step by kind and direction: the mean over launches, and its range."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.window_values import changes_in, combinations
from castmates.results.columns.launch import LAYERS

_SCENE = ["study", "member", "platform", "scene", "mix", "partition"]
KIND = ["kind", "direction"]
NEEDED = [*_SCENE, *KIND, *LAUNCH, "ms_per_step", "share", "steps"]  # of layers.parquet
NAMES = [name for name in NEEDED if LAYERS[name] == "str"]
_COUNTED = ["member", "platform", "scene", "partition"]  # whose launches are counted
# How the sums of parts are put together.
_WHOLE = {"total": "sum", "shares": "sum", "there": "sum", "steps": "sum", "lowest": "min", "highest": "max"}


@dataclass(frozen=True)
class LayerTimes:
    """The layers of all profiles, put together."""

    table: pd.DataFrame  # a row per scene, kind and direction
    steps: list[int]  # that a scene of a launch was profiled for: each number that there is


def layer_times(parts: Iterable[pd.DataFrame]) -> LayerTimes:
    """Add them up; `parts` are the layers of some whole launches at a time."""
    sums, profiled_launches, steps = [], [], set()
    for part in parts:
        first = np.flatnonzero(changes_in(part, [*_SCENE, *LAUNCH]))  # the layers of a scene follow each other
        heads, sizes = part.iloc[first], np.diff(np.append(first, len(part)))
        scene, scenes = combinations(heads, _SCENE)
        launch, launches = combinations(heads, LAUNCH)
        kind, kinds = combinations(part, KIND)
        row = np.repeat(scene, sizes) * len(kinds) + kind
        own = _by_kind(part, row, np.repeat(launch, sizes), len(launches))
        number = own.index.to_numpy()
        about = [scenes.iloc[number // max(len(kinds), 1)], kinds.iloc[number % max(len(kinds), 1)]]
        sums.append(pd.concat([*(names.set_index(own.index) for names in about), own], axis=1))
        profiled, scenes = combinations(heads, _COUNTED)
        once = pd.unique(profiled * max(len(launches), 1) + launch) // max(len(launches), 1)
        profiled_launches.append(scenes.assign(launches=np.bincount(once, minlength=len(scenes))))
        steps |= set(part["steps"].unique().tolist())
    if not sum(map(len, sums)):
        return LayerTimes(
            pd.DataFrame(columns=[*_SCENE, *KIND, "ms_per_step", "lowest", "highest", "share", "launches"]), []
        )
    table = pd.concat(sums).groupby([*_SCENE, *KIND], as_index=False, dropna=False).agg(_WHOLE)
    counted = pd.concat(profiled_launches).groupby(_COUNTED, as_index=False, dropna=False).sum()
    return LayerTimes(_means(table.merge(counted, on=_COUNTED)), sorted(steps))


def _by_kind(layers: pd.DataFrame, row: np.ndarray, launch: np.ndarray, launches: int) -> pd.DataFrame:
    """The sums of some launches: a row per row of the table, first summed over the layers of each launch."""
    within = layers[["ms_per_step", "share", "steps"]].groupby(row * launches + launch)
    own = within.agg({"ms_per_step": "sum", "share": "sum", "steps": "max"})
    return own.groupby(own.index.to_numpy() // max(launches, 1)).agg(
        total=("ms_per_step", "sum"), lowest=("ms_per_step", "min"), highest=("ms_per_step", "max"),
        shares=("share", "sum"), there=("share", "size"), steps=("steps", "sum"),
    )  # fmt: skip


def _means(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(
        ms_per_step=table["total"] / table["launches"],  # what a launch did not have took no time there
        share=table["shares"] / table["launches"],
        lowest=table["lowest"].where(table["there"] == table["launches"], 0.0),
    )
