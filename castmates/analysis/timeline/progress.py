"""How many steps a member made while events were recorded, and which of them took longest."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castmates.analysis.timeline.seen import NAN, SeenScene, Spans, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Longest:
    """The longest step that was recorded as a whole."""

    at_s: float = NAN  # from the first event of the trace
    ms: float = NAN


def steps(trace: Trace, spans: Spans, member: str) -> float:
    """Units of progress in these spans, parts of units included; NaN where nothing shows them.

    Between two heartbeats progress is even; what lies before the first or after the last one is as fast as the rest.
    The view `progress` of queries counts alike.
    """
    at, count = _marks(trace, member)
    if len(at) < 2:
        return NAN
    begin, end = (np.clip(np.asarray(edge, dtype=float), at[0], at[-1]) for edge in spans)
    known = float((end - begin).sum())
    done = float((np.interp(end, at, count) - np.interp(begin, at, count)).sum())
    return done * float((spans[1] - spans[0]).sum()) / known if known > 0 else NAN


def longest(seen: SeenScene, member: str) -> Longest:
    """The longest step that begins and ends in a recording: between two heartbeats, or as the member reports steps.

    Heartbeats show every step, and steps that a profiler reports are few, and slower.
    """
    beats = _beats(seen.trace, member)["t_ns"].to_numpy()
    own = _steps(seen.trace, member)
    begin, end = (beats[:-1], beats[1:]) if len(beats) > 1 else (own["t0_ns"].to_numpy(), own["t1_ns"].to_numpy())
    inside = np.zeros(len(begin), bool)
    for first, last in zip(*seen.recordings, strict=True):
        inside |= (begin >= first) & (end <= last)
    if not inside.any():
        return Longest()
    took = np.where(inside, end - begin, -1)
    at = int(took.argmax())
    return Longest(float(begin[at] - seen.trace.first_ns) / 1e9, float(took[at]) / 1e6)


def _marks(trace: Trace, member: str) -> tuple[Floats, Floats]:
    """Moments, and how many units were done by then: heartbeats, or else where steps begin, and the last one ends."""
    beats = _beats(trace, member)
    if len(beats) > 1:
        return beats["t_ns"].to_numpy(dtype=float), _counted(beats)
    own = _steps(trace, member)
    at = np.append(own["t0_ns"].to_numpy(dtype=float), own["t1_ns"].max() if len(own) else [])
    return at, np.arange(len(at), dtype=float)


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
