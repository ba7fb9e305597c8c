"""Numbers -> a word for each row; the rules are decided here, before anything is measured, and nowhere else."""

import numpy as np
import pandas as pd

from castmates.analysis.intervals import FEWEST_BLOCKS, Floats

EFFECT_LEVEL = 0.05  # of a Holm-adjusted p-value
# The control is judged over all leads at once and stamps the whole study, hence the stricter level.
CONTROL_LEVEL = 0.01

NO_DATA = "no data"
TOO_FEW = "too few blocks"


def effect_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Say slower, faster, equivalent or unclear, from `log`, `log_low`, `log_high`, `p_holm` and `blocks`."""
    edge = np.log1p(margin)
    log, low, high = (_floats(estimates, name) for name in ("log", "log_low", "log_high"))
    significant = _floats(estimates, "p_holm") < EFFECT_LEVEL
    return _first_that_holds(
        {
            NO_DATA: _floats(estimates, "blocks") == 0,
            TOO_FEW: _floats(estimates, "blocks") < FEWEST_BLOCKS,
            "slower": significant & (log > 0),
            "faster": significant & (log < 0),
            "equivalent": (low >= -edge) & (high <= edge),
        },
        otherwise="unclear",
    )


def control_verdicts(estimates: pd.DataFrame, margin: float) -> list[str]:
    """Say whether the A/A control passes, from the same columns."""
    edge = np.log1p(margin)
    log, low, high = (_floats(estimates, name) for name in ("log", "log_low", "log_high"))
    return _first_that_holds(
        {
            NO_DATA: _floats(estimates, "blocks") == 0,
            TOO_FEW: _floats(estimates, "blocks") < FEWEST_BLOCKS,
            "unstable": _floats(estimates, "p_holm") < CONTROL_LEVEL,
            "inconclusive": (high - low > 2 * edge) | (np.abs(log) > edge),
        },
        otherwise="passes",
    )


def study_verdict(controls: pd.DataFrame) -> tuple[str, str]:
    """One word and one sentence for the whole study, from its table of controls."""
    leads = {word: _named(controls, word) for word in (NO_DATA, TOO_FEW, "unstable", "inconclusive", "passes")}
    if leads["unstable"]:
        return "unstable", (
            f"The same scene measured twice gave different rates for {leads['unstable']}: the machine or the way of "
            "measuring is not steady enough to trust the effects."
        )
    if not any(leads[word] for word in (TOO_FEW, "inconclusive", "passes")):
        return NO_DATA, "There is no lead whose two solo scenes can be compared, so nothing vouches for the effects."
    missing = f" There is no control for {leads[NO_DATA]}." if leads[NO_DATA] else ""
    if leads[TOO_FEW]:
        return TOO_FEW, (
            f"The control needs at least {FEWEST_BLOCKS} measured blocks, which {leads[TOO_FEW]} does not have yet; "
            f"raise 'budget.blocks'.{missing}"
        )
    if leads["inconclusive"]:
        return "inconclusive", (
            f"The control found no fault, but for {leads['inconclusive']} it is too coarse to exclude one of the "
            f"size of the margin; more blocks or rounds would tell.{missing}"
        )
    return "trustworthy", f"The same scene measured twice gave the same rate for {leads['passes']}.{missing}"


def _named(controls: pd.DataFrame, verdict: str) -> str:
    return ", ".join(dict.fromkeys(controls.loc[controls["verdict"] == verdict, "lead"]))


def _floats(table: pd.DataFrame, column: str) -> Floats:
    return table[column].to_numpy(dtype=float)


def _first_that_holds(rules: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]], otherwise: str) -> list[str]:
    return [str(word) for word in np.select(list(rules.values()), list(rules), default=otherwise)]
