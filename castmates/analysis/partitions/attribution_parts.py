"""Complete rounds of a chain -> its parts, which add up: in log terms, and in points of the rate alone."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from castmates.analysis.core import launch_means
from castmates.analysis.keys import ROUND
from castmates.analysis.partitions.attribution_rounds import (
    ALONE,
    AT_MASK,
    CHAINS,
    GROUP,
    ISOLATED,
    LINKS,
    PLACEBO,
    TOGETHER,
)
from castmates.analysis.statistics.intervals import estimate, lost

TOTAL = "total"
BUSY, ANTAGONIST, NOT_GIVEN_BACK = "busy antagonist", "antagonist, not given back", "not given back"
OWN, DESPITE, CAPACITY, SHARING = "own smaller share", "despite own ways", "cache capacity", "sharing"
PARTS = {  # in the order of the tables and figures: from which link to which
    TOTAL: (ALONE, TOGETHER),
    BUSY: (ALONE, PLACEBO),
    ANTAGONIST: (ALONE, ISOLATED),
    NOT_GIVEN_BACK: (PLACEBO, ISOLATED),
    OWN: (PLACEBO, AT_MASK),
    DESPITE: (AT_MASK, ISOLATED),
    CAPACITY: (ISOLATED, TOGETHER),
    SHARING: (PLACEBO, TOGETHER),
}
DETAILS = {OWN: NOT_GIVEN_BACK, DESPITE: NOT_GIVEN_BACK}  # parts of a part
_PART = [*GROUP, "part"]


def parts_of(links: Sequence[str]) -> list[str]:
    """What a chain of these links can show: the total, its parts, and what one of them consists of."""
    steps = {*pairwise(links), (ALONE, TOGETHER)} | ({(PLACEBO, ISOLATED)} if tuple(links) == LINKS else set())
    return [part for part, step in PARTS.items() if step in steps]


def estimated(whole: pd.DataFrame) -> pd.DataFrame:
    """Every part of every mix, from its complete rounds: estimates, intervals, counts."""
    by_chain = [_differences(whole[whole["chain"] == number], links) for number, links in enumerate(CHAINS)]
    differences = pd.concat(by_chain, ignore_index=True)
    table = estimate(differences, by=_PART).join(_points(differences)).reset_index()
    steps = table["part"].map(PARTS)
    return table.assign(start=steps.str[0], end=steps.str[1])


def _differences(rounds: pd.DataFrame, links: Sequence[str]) -> pd.DataFrame:
    """A row per round and part: what was lost before the part, after it, and by it."""
    names = parts_of(links)
    logs = rounds[list(LINKS)].to_numpy(dtype=float)
    start, end = ([LINKS.index(PARTS[name][side]) for name in names] for side in (0, 1))
    alone = logs[:, [LINKS.index(ALONE)]]
    table = rounds[[*GROUP, *ROUND]].take(np.repeat(np.arange(len(rounds)), len(names)))
    return table.assign(
        part=np.tile(np.array(names, dtype=object), len(rounds)),
        before=(alone - logs[:, start]).ravel(),
        after=(alone - logs[:, end]).ravel(),
        difference=(logs[:, start] - logs[:, end]).ravel(),
    )


def _points(differences: pd.DataFrame) -> pd.DataFrame:
    """By part the points of the rate alone between its two ends, 100 (exp -before - exp -after), with intervals.

    Both ends vary between launches, and together: the intervals are those of the points' linear part (delta method). A
    part that begins at alone has one end alone, so that its interval is that of the log, as it is for the loss itself.
    """
    centre = launch_means(differences, _PART, ["before", "after"])[["before", "after"]]
    points = lost(centre["after"]) - lost(centre["before"])
    slopes = 100 * np.exp(-differences[_PART].join(centre, on=_PART)[["before", "after"]])
    linear = slopes["after"] * differences["after"] - slopes["before"] * differences["before"]
    own = estimate(differences.assign(difference=linear), by=_PART)
    exact = estimate(differences, by=_PART)
    from_alone = [PARTS[part][0] == ALONE for part in own.index.get_level_values("part")]
    ends = {
        name: np.where(from_alone, lost(exact[name]), points + own[name] - own["mean"])
        for name in ("low", "high", "within_low", "within_high")
    }
    return pd.DataFrame({"points": points} | {f"points_{name}": end for name, end in ends.items()})
