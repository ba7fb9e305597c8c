"""Two independent groups of launches -> the difference of their means with Welch's interval and p-value."""

import numpy as np
import pandas as pd

from castmates.analysis.statistics.intervals import FEWEST_BLOCKS, Floats, quantile, two_sided


def welch(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """`second` minus `first`, row by row, from the launches' `mean`, `variance` and `blocks` of both.

    The variances need not be the same, nor the numbers of launches; below three launches on either side there is
    neither an interval nor a p-value.
    """
    difference = _floats(second, "mean") - _floats(first, "mean")
    blocks = [_floats(side, "blocks") for side in (first, second)]
    enough = (blocks[0] >= FEWEST_BLOCKS) & (blocks[1] >= FEWEST_BLOCKS)
    squares = [_floats(side, "variance") / count for side, count in zip((first, second), blocks, strict=True)]
    error = np.where(enough, np.sqrt(squares[0] + squares[1]), np.nan)
    freedom = _freedom(squares, blocks)
    half = quantile(freedom) * error
    return pd.DataFrame(
        {
            "log": difference,
            "log_low": difference - half,
            "log_high": difference + half,
            "p_value": two_sided(difference, error, freedom),
        },
        index=first.index,
    )


def alone(side: pd.DataFrame) -> pd.DataFrame:
    """The t interval of one group by itself, from the same columns."""
    mean, blocks = _floats(side, "mean"), _floats(side, "blocks")
    enough = blocks >= FEWEST_BLOCKS
    error = np.where(enough, np.sqrt(_floats(side, "variance") / np.where(enough, blocks, np.nan)), np.nan)
    half = quantile(np.where(enough, blocks - 1, np.nan)) * error
    return pd.DataFrame({"log": mean, "log_low": mean - half, "log_high": mean + half}, index=side.index)


def _freedom(squares: list[Floats], blocks: list[Floats]) -> Floats:
    """Welch and Satterthwaite's; all degrees where no launch differs from another, where the formula has no value."""
    total = squares[0] + squares[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [square / total for square in squares]
        freedom = 1 / sum(share**2 / (count - 1) for share, count in zip(shares, blocks, strict=True))
    return np.asarray(np.where(total == 0, blocks[0] + blocks[1] - 2, freedom), dtype=float)


def _floats(table: pd.DataFrame, column: str) -> Floats:
    return table[column].to_numpy(dtype=float)
