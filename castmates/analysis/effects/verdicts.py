"""Numbers -> a word for each row; the rules are decided here, before anything is measured, and nowhere else."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from castmates.analysis.effects.contrasts import POSITIVE
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, Floats

EFFECT_LEVEL = 0.05  # of a Holm-adjusted p-value
# Where launches were added after a look at the results: so small that all later looks together add about half a per
# cent to the chance of a false loss at the first one (docs/methodology.md, "A second look").
EXTENDED_LEVEL = 0.0025
# The controls are judged together and stamp the whole study, hence the stricter level.
CONTROL_LEVEL = 0.01

LOSS, GAIN, NO_LOSS, UNCLEAR, TOO_FEW, NO_DATA = "loss", "gain", "no loss", "unclear", "too few launches", "no data"
UNSTABLE, INCONCLUSIVE, PASSES = "unstable", "inconclusive", "passes"
SENSITIVE, INSENSITIVE = "sensitive", "no sensitivity shown here"
MORE, LESS, NO_DIFFERENCE = "loses more in B", "loses less in B", "no difference"
PLATFORMS_DIFFER, ONE_SIDED = "platforms differ", "only in one"
AGREES, DIFFERS, NOT_HERE, NEW_HERE = "agrees", "differs", "not measured here", "not published"
NODES_DIFFER, NODES_ALIKE, NOT_COMPARED = "nodes differ", "no difference seen", "not compared"
LARGER, SMALLER = "larger in B", "smaller in B"
MORE_SENSITIVE, LESS_SENSITIVE = "more sensitive", "less sensitive"
SEEN, NONE_SEEN, TOO_FEW_WINDOWS, NEVER_FROZEN = "seen", "none seen", "too few windows", "never frozen"


def effect_level(extended: bool | Sequence[int]) -> float:
    """Below which Holm-adjusted p-value a loss is proven, in a study that was extended after a look or was not."""
    return EXTENDED_LEVEL if extended else EFFECT_LEVEL


def effect_verdicts(estimates: pd.DataFrame, margin: float, level: float = EFFECT_LEVEL) -> list[str]:
    """Loss, gain, no loss or unclear, row by row, from `mean`, `low`, `high`, `p_holm` and `launches`."""
    edge = np.log1p(margin)
    mean, low, high = (_floats(estimates, name) for name in ("mean", "low", "high"))
    significant = _floats(estimates, "p_holm") < level
    return _first_that_holds(
        {
            NO_DATA: _floats(estimates, "launches") == 0,
            TOO_FEW: _floats(estimates, "launches") < FEWEST_LAUNCHES,
            LOSS: significant & (mean > 0),
            GAIN: significant & (mean < 0),
            NO_LOSS: (low >= -edge) & (high <= edge),
        },
        otherwise=UNCLEAR,
    )


def control_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether each control came out as it must, from the same columns and `control`.

    The p-value of the positive one is that of "it loses no more than the margin".
    """
    edge = np.log1p(margin)
    low, high = _floats(estimates, "low"), _floats(estimates, "high")
    significant = _floats(estimates, "p_holm") < CONTROL_LEVEL
    positive = (estimates["control"] == POSITIVE).to_numpy(dtype=bool)
    return _first_that_holds(
        {
            NO_DATA: _floats(estimates, "launches") == 0,
            TOO_FEW: _floats(estimates, "launches") < FEWEST_LAUNCHES,
            SENSITIVE: positive & significant,
            INSENSITIVE: positive,
            UNSTABLE: significant,
            PASSES: (low >= -edge) & (high <= edge),
        },
        otherwise=INCONCLUSIVE,
    )


def carryover_verdicts(estimates: pd.DataFrame) -> list[str]:
    """Whether the scene before was seen to leave a trace, from `launches` and `p_holm`."""
    return _first_that_holds(
        {
            TOO_FEW_WINDOWS: _floats(estimates, "launches") < FEWEST_LAUNCHES,
            SEEN: _floats(estimates, "p_holm") < EFFECT_LEVEL,
        },
        otherwise=NONE_SEEN,
    )


def comparison_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether B loses more or less than A, from `where` and both sides' `platform_` and `launches_`.

    `mean`, `low`, `high` and `p_holm` are those of log slowdown(B) - log slowdown(A).
    """
    edge = np.log1p(margin)
    mean, low, high = (_floats(estimates, name) for name in ("mean", "low", "high"))
    fewest = np.minimum(_floats(estimates, "launches_a"), _floats(estimates, "launches_b"))
    significant = _floats(estimates, "p_holm") < EFFECT_LEVEL
    platforms = estimates["platform_a"] != estimates["platform_b"]
    return _first_that_holds(
        {
            ONE_SIDED: (estimates["where"] != "both").to_numpy(dtype=bool),
            NO_DATA: fewest == 0,
            PLATFORMS_DIFFER: platforms.to_numpy(dtype=bool),
            TOO_FEW: fewest < FEWEST_LAUNCHES,
            MORE: significant & (mean > 0),
            LESS: significant & (mean < 0),
            NO_DIFFERENCE: (low >= -edge) & (high <= edge),
        },
        otherwise=UNCLEAR,
    )


def detail_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether what changes of a counter, a phase, an operation or a quantile is larger in B."""
    sides = {f"launches_{side}": estimates[f"launches_{side}"] for side in "ab"}
    words = {MORE: LARGER, LESS: SMALLER}
    return [words.get(word, word) for word in comparison_verdicts(estimates.assign(**sides), margin)]


def replay_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether an effect that was measured again agrees, from the columns of a comparison: A is what was published.

    Unlike in a comparison, a difference that is proven but lies inside the margin with its whole interval agrees:
    whoever relies on the published number is not misled by it.
    """
    edge = np.log1p(margin)
    low, high = (np.log(_floats(estimates, f"ratio_{end}")) for end in ("low", "high"))
    fewest = np.minimum(_floats(estimates, "launches_a"), _floats(estimates, "launches_b"))
    platforms = estimates["platform_a"] != estimates["platform_b"]
    return _first_that_holds(
        {
            NOT_HERE: (estimates["where"] == "only in A").to_numpy(dtype=bool),
            NEW_HERE: (estimates["where"] == "only in B").to_numpy(dtype=bool),
            NO_DATA: fewest == 0,
            PLATFORMS_DIFFER: platforms.to_numpy(dtype=bool),
            TOO_FEW: fewest < FEWEST_LAUNCHES,
            AGREES: (low >= -edge) & (high <= edge),
            DIFFERS: _floats(estimates, "p_holm") < EFFECT_LEVEL,
        },
        otherwise=UNCLEAR,
    )


def variant_verdicts(estimates: pd.DataFrame, margin: float, level: float = EFFECT_LEVEL) -> list[str]:
    """Whether a variant loses more or less than its base, from `mean`, its ends, `p_holm` and the launches of both."""
    edge = np.log1p(margin)
    mean, low, high = (_floats(estimates, name) for name in ("mean", "low", "high"))
    fewest = np.minimum(_floats(estimates, "launches"), _floats(estimates, "base_launches"))
    significant = _floats(estimates, "p_holm") < level
    return _first_that_holds(
        {
            NO_DATA: fewest == 0,
            TOO_FEW: fewest < FEWEST_LAUNCHES,
            MORE_SENSITIVE: significant & (mean > 0),
            LESS_SENSITIVE: significant & (mean < 0),
            NO_DIFFERENCE: (low >= -edge) & (high <= edge),
        },
        otherwise=UNCLEAR,
    )


def _floats(table: pd.DataFrame, column: str) -> Floats:
    return table[column].to_numpy(dtype=float)


def _first_that_holds(rules: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]], otherwise: str) -> list[str]:
    return [str(word) for word in np.select(list(rules.values()), list(rules), default=otherwise)]
