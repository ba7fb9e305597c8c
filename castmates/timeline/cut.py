"""A part of a timeline: what happens between two moments."""

from dataclasses import replace

import numpy as np
import pandas as pd

from castmates.errors import CastmatesError
from castmates.timeline.model import Timeline
from castmates.timeline.span import start

SECOND = 10**9


def span_of(text: str) -> tuple[float, float | None]:
    """FROM:TO in seconds from the beginning of a trace; either side may be left out."""
    before, colon, after = text.partition(":")
    try:
        first, last = float(before or 0), float(after) if after else None
    except ValueError:
        first, last = -1.0, None
    if not colon or not 0 <= first < (last if last is not None else np.inf):
        raise CastmatesError(f"--span is '{text}', expected two times in seconds from the beginning, such as 1.5:3.")
    return first, last


def cut(timeline: Timeline, first: float, last: float | None) -> Timeline:
    """What happens in a span; intervals that reach beyond it end there."""
    origin = start(timeline)
    begin = origin + round(first * SECOND)
    end = np.iinfo(np.int64).max if last is None else origin + round(last * SECOND)
    rows = timeline.intervals
    empty = (rows["t0_ns"] == rows["t1_ns"]) & (rows["t1_ns"] == begin)
    inside = rows[((rows["t1_ns"] > begin) | empty) & (rows["t0_ns"] < end)]
    inside = inside.assign(t0_ns=inside["t0_ns"].clip(lower=begin), t1_ns=inside["t1_ns"].clip(upper=end))
    order = np.lexsort((inside["depth"], -inside["t1_ns"], inside["t0_ns"]))
    found = {name: _between(timeline.table(name), begin, end) for name in ("instants", "samples", "stacks")}
    filters = {**timeline.about.get("filters", {}), "span": [first, last]}
    until = "its end" if last is None else f"{last:g} s"
    part = f"this is a part of the trace, from {first:g} s to {until}: the counts of its sources are those of all of it"
    return replace(
        timeline,
        intervals=inside.iloc[order].reset_index(drop=True),
        **found,
        about=timeline.about | {"filters": filters, "missing": {**timeline.about.get("missing", {}), part: []}},
    )


def _between(table: pd.DataFrame, begin: int, end: int) -> pd.DataFrame:
    return table[(table["t_ns"] >= begin) & (table["t_ns"] < end)].reset_index(drop=True)
