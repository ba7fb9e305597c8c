"""Values of windows, each compared with its scene's baseline in its round; from some launches at a time."""

from collections.abc import Container, Mapping, Sequence

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import Floats, columns_of, ratio
from castmates.analysis.statistics.name_codes import Integers
from castmates.analysis.statistics.window_values import Differences, Values, estimated

SIDES = ("change", "value", "baseline")
Measured = tuple[Integers, Integers, Floats]  # rows of windows, numbers of metrics, values


class Compared:
    """Sides and changes of any number of metrics; the change is a ratio, of `additive` metrics a difference."""

    def __init__(
        self, windows: pd.DataFrame, contrasts: pd.DataFrame, additive: Container[object], metrics: Sequence[str] = ()
    ) -> None:
        """Find once what is compared with what."""
        self._differences, self._additive = Differences.of_contrasts(windows, contrasts, metrics), additive
        self.number, self.numbers = self._differences.number, self._differences.numbers

    def add(self, parts: Sequence[Measured]) -> None:
        """Take in some launches."""
        at, metric, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        metrics = self._differences.metrics
        values = Values.of(at, metric, value, len(metrics))
        self._differences.add(values, np.arange(len(metrics)), self._sides)

    def _sides(self, scene: Floats, base: Floats) -> Mapping[str, Floats]:
        additive = np.array([name in self._additive for name in self._differences.metrics], dtype=bool)
        scene, base = (np.where(additive, values, _logs(values)) for values in (scene, base))
        return {"change": scene - base, "value": scene, "baseline": base}

    def table(self) -> pd.DataFrame:
        """Each side and its interval, on the scale of its change, by row, platform and metric."""
        whole = self._differences.launches
        if whole.empty:
            return whole
        sides = {name: estimated(whole, name) for name in SIDES}
        table = self._differences.named(sides["change"][["launches", "rounds"]], ["metric"])
        additive = table["metric"].map(lambda name: name in self._additive).astype(bool)
        table["scale"] = np.where(additive, "points", "ratio")
        for name, estimates in sides.items():
            middle, own = "baseline_value" if name == "baseline" else name, estimates.reset_index(drop=True)
            table = table.assign(
                **columns_of(own, middle, lambda values: values.where(additive, ratio(values)), ends=name)
            )
        return table


def _logs(values: Floats) -> Floats:
    """NaN where there is none."""
    return np.log(np.where(values > 0, values, np.nan))
