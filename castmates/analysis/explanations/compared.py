"""Values of windows, each compared with its scene's baseline in its round; from some launches at a time."""

from collections.abc import Container, Sequence

import numpy as np
import pandas as pd

from castmates.analysis.keys import LAUNCH, ROW
from castmates.analysis.statistics.intervals import Floats, columns_of, ratio
from castmates.analysis.statistics.name_codes import Integers
from castmates.analysis.statistics.window_values import (
    Groups,
    Pairs,
    Values,
    by_row,
    estimated,
    held_against,
    per_launch,
)

SIDES = ("change", "value", "baseline")
Measured = tuple[Integers, Integers, Floats]  # rows of windows, numbers of metrics, values


class Compared:
    """Sides and changes of any number of metrics; the change is a ratio, of `additive` metrics a difference."""

    def __init__(self, windows: pd.DataFrame, contrasts: pd.DataFrame, additive: Container[str]) -> None:
        """Find once what is compared with what."""
        scene, base, row = held_against(windows, contrasts)
        self._groups = Groups.of(windows[[*LAUNCH, "platform"]].iloc[scene].assign(row=row), ROW)
        self._pairs = Pairs(scene, base, self._groups.number)
        self._additive = additive
        self._metrics: dict[str, int] = {}  # and their numbers
        self._launches: list[pd.DataFrame] = []

    def number(self, metric: str) -> int:
        """Return what a metric is called in what is added."""
        return self._metrics.setdefault(metric, len(self._metrics))

    def add(self, parts: Sequence[Measured]) -> None:
        """Take in some launches."""
        # Only what is known of each launch is kept: the values of all windows would not fit into memory.
        at, metric = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        value = np.concatenate([part[2] for part in parts])
        scene, base, group = self._pairs.inside(Values.of(at, metric, value, len(self._metrics)))
        additive = np.array([self._is_additive(name) for name in self._metrics], dtype=bool)
        scene, base = (np.where(additive, values, _logs(values)) for values in (scene, base))
        sides = {"change": scene - base, "value": scene, "baseline": base}
        self._launches.append(per_launch(sides, group, np.arange(len(self._metrics)), self._groups.size))

    def _is_additive(self, metric: str) -> bool:
        return metric in self._additive

    def table(self) -> pd.DataFrame:
        """Each side and its interval, on the scale of its change, by row, platform and metric."""
        if not sum(map(len, self._launches)):
            return pd.DataFrame()
        whole = by_row(self._launches, self._groups.launches)
        sides = {name: estimated(whole, name) for name in SIDES}
        metric, row = np.divmod(sides["change"].index.to_numpy(), len(self._groups.rows))
        table = self._groups.rows.iloc[row].set_index(sides["change"].index)
        table["metric"] = np.array(list(self._metrics), dtype=object)[metric]
        table[["launches", "rounds"]] = sides["change"][["launches", "rounds"]]
        additive = table["metric"].map(self._is_additive).astype(bool)
        table["scale"] = np.where(additive, "points", "ratio")
        for name, estimates in sides.items():
            middle = "baseline_value" if name == "baseline" else name
            own = columns_of(estimates, middle, lambda values: values.where(additive, ratio(values)), ends=name)
            table = table.assign(**own)
        return table.reset_index(drop=True)


def _logs(values: Floats) -> Floats:
    """NaN where there is none."""
    return np.log(np.where(values > 0, values, np.nan))
