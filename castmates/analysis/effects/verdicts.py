"""Numbers -> a word for each row; the rules are decided here, before anything is measured, and nowhere else."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.effects.contrasts import POSITIVE
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, Floats

Flags = npt.NDArray[np.bool_]
Words = tuple[str, str, str]  # for what is proven to be more, to be less, and to be no more than the margin

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
    return _judged(estimates, margin, (LOSS, GAIN, NO_LOSS), _floats(estimates, "launches"), level)


def control_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether each control came out as it must, from the same columns and `control`.

    The p-value of the positive one is that of "it loses no more than the margin".
    """
    launches, significant = _floats(estimates, "launches"), _floats(estimates, "p_holm") < CONTROL_LEVEL
    positive = (estimates["control"] == POSITIVE).to_numpy(dtype=bool)
    return _first_that_holds(
        {
            NO_DATA: launches == 0,
            TOO_FEW: launches < FEWEST_LAUNCHES,
            SENSITIVE: positive & significant,
            INSENSITIVE: positive,
            UNSTABLE: significant,
            PASSES: _inside(_floats(estimates, "low"), _floats(estimates, "high"), margin),
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


def comparison_verdicts(
    estimates: pd.DataFrame, margin: float, words: Words = (MORE, LESS, NO_DIFFERENCE)
) -> list[str]:
    """Whether B loses more or less than A, from `where` and both sides' `platform_` and `launches_`.

    `mean`, `low`, `high` and `p_holm` are those of log slowdown(B) - log slowdown(A).
    """
    one_sided = (estimates["where"] != "both").to_numpy(dtype=bool)
    return _judged(estimates, margin, words, _fewest(estimates), before={ONE_SIDED: one_sided} | _apart(estimates))


def detail_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether what changes of a counter, a phase, an operation or a quantile is larger in B."""
    return comparison_verdicts(estimates, margin, (LARGER, SMALLER, NO_DIFFERENCE))


def replay_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Whether an effect that was measured again agrees, from the columns of a comparison: A is what was published.

    Unlike in a comparison, a difference that is proven but lies inside the margin with its whole interval agrees:
    whoever relies on the published number is not misled by it.
    """
    low, high = (np.log(_floats(estimates, f"ratio_{end}")) for end in ("low", "high"))
    return _first_that_holds(
        {
            NOT_HERE: (estimates["where"] == "only in A").to_numpy(dtype=bool),
            NEW_HERE: (estimates["where"] == "only in B").to_numpy(dtype=bool),
            **_apart(estimates),
            TOO_FEW: _fewest(estimates) < FEWEST_LAUNCHES,
            AGREES: _inside(low, high, margin),
            DIFFERS: _floats(estimates, "p_holm") < EFFECT_LEVEL,
        },
        otherwise=UNCLEAR,
    )


def variant_verdicts(estimates: pd.DataFrame, margin: float, level: float = EFFECT_LEVEL) -> list[str]:
    """Whether a variant loses more or less than its base, from `mean`, its ends, `p_holm` and the launches of both."""
    fewest = np.minimum(_floats(estimates, "launches"), _floats(estimates, "base_launches"))
    return _judged(estimates, margin, (MORE_SENSITIVE, LESS_SENSITIVE, NO_DIFFERENCE), fewest, level)


def _judged(
    estimates: pd.DataFrame,
    margin: float,
    words: Words,
    launches: Floats,
    level: float = EFFECT_LEVEL,
    before: Mapping[str, Flags] | None = None,
) -> list[str]:
    """The words of what is proven to be above and below zero, and of what lies within the margin with its interval.

    `before` are words that are asked for first.
    """
    more, less, none = words
    mean, low, high = (_floats(estimates, name) for name in ("mean", "low", "high"))
    significant = _floats(estimates, "p_holm") < level
    proven = {more: significant & (mean > 0), less: significant & (mean < 0), none: _inside(low, high, margin)}
    few = {NO_DATA: launches == 0, TOO_FEW: launches < FEWEST_LAUNCHES}
    return _first_that_holds({**(before or {}), **few, **proven}, otherwise=UNCLEAR)


def _fewest(estimates: pd.DataFrame) -> Floats:
    """The launches of the side that has fewer."""
    return np.minimum(_floats(estimates, "launches_a"), _floats(estimates, "launches_b"))


def _apart(estimates: pd.DataFrame) -> dict[str, Flags]:
    """Where a side has nothing, or the sides are of different platforms."""
    platforms = estimates["platform_a"] != estimates["platform_b"]
    return {NO_DATA: _fewest(estimates) == 0, PLATFORMS_DIFFER: platforms.to_numpy(dtype=bool)}


def _inside(low: Floats, high: Floats, margin: float) -> Flags:
    """Whether an interval of logarithms lies within the margin."""
    edge = np.log1p(margin)
    return np.asarray((low >= -edge) & (high <= edge))


def _floats(table: pd.DataFrame, column: str) -> Floats:
    return table[column].to_numpy(dtype=float)


def _first_that_holds(rules: Mapping[str, Flags], otherwise: str) -> list[str]:
    return [str(word) for word in np.select(list(rules.values()), list(rules), default=otherwise)]
