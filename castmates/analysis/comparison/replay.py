"""A published study and its replay -> which effects agree: a row per effect, from the comparison of the two.

Where both agree they share one mean, whose interval is exact. Weights by estimated variances, the usual choice, hold
the truth far too seldom with a few launches: 88 % of the time with three against eight. Here each group has its own
Student's t (Fairweather 1972): the weighted sum of the two does not depend on the unknown variances, so that its
quantile is exact, whatever they are.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import optimize, special

from castmates.analysis.core import declared
from castmates.analysis.effects.verdicts import DIFFERS, replay_verdicts
from castmates.analysis.statistics.intervals import CONFIDENCE, FEWEST_LAUNCHES, columns_of, holm, quantile, ratio
from castmates.results.columns.comparison import REPLAY

STEPS = 4000  # of the probability of one t, over which that of the sum is added up
EXACT = 1e-12  # errors of launches that agree to the last bit; a side that is so exact decides alone
SIDES = {"a": "published", "b": "here"}  # of the comparison, and what they are called in a replay
_SAME = ("mix", "lead", "antagonists", "member", "role", "baseline", "masks", "ratio", "ratio_low", "ratio_high")
_ENDS = ("", "_low", "_high")


def joint(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """The common mean of both, row by row, from `mean`, the `error` of each mean and `launches`.

    There is none below three launches on either side, and where both sides are exact and differ.
    """
    means, errors, launches = (
        [side[name].to_numpy(dtype=float) for side in (first, second)] for name in ("mean", "error", "launches")
    )
    enough = np.minimum(*launches) >= FEWEST_LAUNCHES
    exact = (np.maximum(*errors) <= EXACT) & (np.abs(means[0] - means[1]) > EXACT)
    possible = enough & ~exact & ~np.isnan(errors[0] + errors[1])
    freedom = [np.where(possible, count - 1, np.nan) for count in launches]
    weights = [
        own / (freedom[0] + freedom[1]) / np.maximum(error, EXACT) for own, error in zip(freedom, errors, strict=True)
    ]
    total = weights[0] + weights[1]
    mean = (weights[0] * means[0] + weights[1] * means[1]) / total
    half = np.array([factor(*pair) for pair in zip(*freedom, strict=True)], dtype=float) / total
    return pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half}, index=first.index)


def factor(first: float, second: float) -> float:
    """The two-sided quantile of two independent t's, weighted by their degrees of freedom; NaN without any."""
    return _factor(first, second) if first > 0 and second > 0 else float("nan")


@lru_cache(maxsize=4096)
def _factor(first: float, second: float) -> float:
    share = first / (first + second)
    values = np.asarray(special.stdtrit(first, (np.arange(STEPS) + 0.5) / STEPS), dtype=float)

    def outside(size: float) -> float:
        inside = special.stdtr(second, (size - share * values) / (1 - share)) - special.stdtr(
            second, (-size - share * values) / (1 - share)
        )
        return float(np.mean(inside)) - CONFIDENCE

    return float(optimize.brentq(outside, 0.1, 20.0, xtol=1e-9))


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
    """Mean, its error and units of one side; the error is what its t interval was made of."""
    mean, high = (np.log(table[f"slowdown_{letter}{end}"].to_numpy(dtype=float)) for end in ("", "_high"))
    sessions, launches = (table[f"{name}_{letter}"].to_numpy(dtype=float) for name in ("sessions", "launches"))
    units = np.where(sessions > 0, sessions, launches)
    error = (high - mean) / quantile(np.where(units > 1, units - 1, np.nan))
    return pd.DataFrame({"mean": mean, "error": error, "launches": units}, index=table.index)
