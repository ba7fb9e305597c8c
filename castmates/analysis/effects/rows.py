"""Contrasts and windows -> what is known of every row of a table, on every platform."""

import pandas as pd

from castmates.analysis.keys import ROW
from castmates.analysis.statistics.intervals import over_launches, per_launch
from castmates.analysis.statistics.pairs import pair, tally


def contrast_rows(windows: pd.DataFrame, contrasts: pd.DataFrame) -> pd.DataFrame:
    """The contrasts with their counts, estimates and intervals from a plan's windows, in the contrasts' order."""
    return launch_rows(windows, contrasts, per_launch(pair(windows, contrasts), ROW))


def launch_rows(windows: pd.DataFrame, contrasts: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """The same from what each launch came to."""
    counted = _with_silent_ones(tally(windows, contrasts), contrasts, windows)
    table = counted.join(over_launches(values, ROW)).fillna(dict.fromkeys([*counted, "launches", "rounds"], 0))
    return table.reset_index().merge(contrasts.drop_duplicates("row"), on="row")


def _with_silent_ones(table: pd.DataFrame, contrasts: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
    """A line also for what has no window: on the platform of all others if they have but one, else on none ('')."""
    platforms = windows["platform"].unique().tolist()
    silent = sorted(set(contrasts["row"]) - set(table.index.get_level_values("row")))
    platform = platforms[0] if len(platforms) == 1 else ""
    lines = [*table.index, *((row, platform) for row in silent)]
    return table.reindex(pd.MultiIndex.from_tuples(lines, names=ROW)).sort_index()
