"""A published study and its replay -> which effects agree: a row per effect, from the comparison of the two."""

import numpy as np
import pandas as pd

from castmates.analysis.core import declared
from castmates.analysis.effects.verdicts import DIFFERS, replay_verdicts
from castmates.analysis.statistics.intervals import columns_of, holm, quantile, ratio
from castmates.analysis.statistics.joint import joint
from castmates.results.columns.comparison import REPLAY

SIDES = {"a": "published", "b": "here"}  # of the comparison, and what they are called in a replay
_SAME = ("mix", "lead", "antagonists", "member", "role", "baseline", "masks", "ratio", "ratio_low", "ratio_high")
_ENDS = ("", "_low", "_high")


def replayed(comparison: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Judge each row of a comparison in which A is what was published; p is adjusted over all of them.

    The value of both together is left out where they differ: they have no common truth there.
    """
    table = comparison.assign(p_holm=holm(comparison["p_value"]))
    verdicts = replay_verdicts(table, margin)
    together = joint(_side(table, "a"), _side(table, "b")).where(
        table["ratio"].notna() & (pd.Series(verdicts, index=table.index) != DIFFERS)
    )
    columns = {name: table[name] for name in (*_SAME, "p_value", "p_holm")} | {"verdict": verdicts}
    for letter, name in SIDES.items():
        columns[f"platform_{name}"] = table[f"platform_{letter}"]
        columns[f"{name}_launches"] = table[f"launches_{letter}"]
        columns |= {f"{name}_slowdown{end}": table[f"slowdown_{letter}{end}"] for end in _ENDS}
    columns["partition"] = table["partition_a"].where(table["partition_a"] != "", table["partition_b"])
    columns["partition_here"] = table["partition_b"]
    columns |= columns_of(together, "joint_slowdown", ratio)
    return declared(pd.DataFrame(columns, index=table.index), REPLAY)


def _side(table: pd.DataFrame, letter: str) -> pd.DataFrame:
    """Mean, its error and launches of one side; the error is what its t interval was made of."""
    mean, high = (np.log(table[f"slowdown_{letter}{end}"].to_numpy(dtype=float)) for end in ("", "_high"))
    launches = table[f"launches_{letter}"].to_numpy(dtype=float)
    error = (high - mean) / quantile(np.where(launches > 1, launches - 1, np.nan))
    return pd.DataFrame({"mean": mean, "error": error, "launches": launches}, index=table.index)
