"""How many steps a member made while events were recorded, and which of them took longest."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.timeline.seen import NAN, Seen, Trace


@dataclass(frozen=True)
class Longest:
    """The longest step that was recorded as a whole."""

    at_s: float = NAN  # from the first event of the trace
    ms: float = NAN


def steps(seen: Seen, member: str) -> float:
    """Units of progress in the recordings, parts of units included; NaN where nothing shows them."""
    beats = _beats(seen.trace, member)
    if len(beats) > 1:
        at, count = beats["t_ns"].to_numpy(dtype=float), _counted(beats)
        begin, end = (np.interp(edge, at, count, left=NAN, right=NAN) for edge in seen.spans)
        inside = ~np.isnan(begin) & ~np.isnan(end)
        length = (seen.spans[1] - seen.spans[0]).astype(float)
        known = length[inside].sum()
        # A recording that ends after the last heartbeat is as fast as those that do not.
        return float((end - begin)[inside].sum() * length.sum() / known) if known else _parts(seen, member)
    return _parts(seen, member)


def longest(seen: Seen, member: str) -> Longest:
    """The longest step that begins and ends in a recording: between two heartbeats, or as the member reports steps."""
    beats = _beats(seen.trace, member)["t_ns"].to_numpy()
    own = _steps(seen.trace, member)
    begin, end = (own["t0_ns"].to_numpy(), own["t1_ns"].to_numpy()) if len(own) else (beats[:-1], beats[1:])
    inside = np.zeros(len(begin), bool)
    for first, last in zip(*seen.spans, strict=True):
        inside |= (begin >= first) & (end <= last)
    if not inside.any():
        return Longest()
    took = np.where(inside, end - begin, -1)
    at = int(took.argmax())
    return Longest(float(begin[at] - seen.trace.first_ns) / 1e9, float(took[at]) / 1e6)


def _beats(trace: Trace, member: str) -> pd.DataFrame:
    beats = trace.instants[trace.instants["kind"] == "heartbeat"]
    return beats[trace.member_of(beats["track"]) == member]


def _counted(beats: pd.DataFrame) -> np.ndarray:
    """The count at each heartbeat; where they carry none, each is one."""
    value = beats["value"].to_numpy(dtype=float)
    return np.arange(len(beats), dtype=float) if np.isnan(value).any() else value


def _steps(trace: Trace, member: str) -> pd.DataFrame:
    own = trace.intervals[(trace.intervals["kind"] == "step") & (trace.intervals["depth"] == 0)]
    return own[trace.member_of(own["track"]) == member]


def _parts(seen: Seen, member: str) -> float:
    """From steps with a begin and an end: how much of each lies in the recordings."""
    own = _steps(seen.trace, member)
    if own.empty:
        return NAN
    begin, end = own["t0_ns"].to_numpy(dtype=float), own["t1_ns"].to_numpy(dtype=float)
    parts = 0.0
    for first, last in zip(*seen.spans, strict=True):
        parts += float(
            (np.clip(np.minimum(end, last) - np.maximum(begin, first), 0, None) / np.maximum(end - begin, 1)).sum()
        )
    return parts
