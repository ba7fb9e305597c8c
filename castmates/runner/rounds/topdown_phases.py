"""Joins the Top-Down shares of intervals inside a watched slice to the phases of a member, by CLOCK_MONOTONIC."""

from collections.abc import Iterator, Mapping, Sequence

from castmates.analysis.explanations.topdown_phases import Interval, of_phases
from castmates.protocols import Count
from castmates.runner.rounds.slices import Slice
from castmates.study.topdown_tree import BY_NAME

SERIES = "topdown"  # whose samples they are
GROUP = "phases"


def topdown_counts(member: str, spans: Mapping[str, Sequence[tuple[int, int]]], watched: Slice) -> Iterator[Count]:
    """Yield the shares of each phase (name -> its times), as far as the intervals of the slice show them."""
    for share in of_phases(_intervals(member, watched), spans):
        yield Count(
            member, share.metric, share.value, "scaled", "by time", "metric", GROUP, BY_NAME[share.metric].level,
            phase=share.phase, note=share.note,
        )  # fmt: skip


def _intervals(member: str, watched: Slice) -> list[Interval]:
    """Return the intervals between the slice's edges; each begins where the one before it ended."""
    by_end: dict[int, dict[str, float]] = {}
    for sample in watched.samples:
        if sample.source == SERIES and sample.subject == member and sample.metric in BY_NAME:
            shares = by_end.setdefault(sample.t_ns, {})
            if sample.value is not None:
                shares[sample.metric] = sample.value
    intervals, begin_ns = [], watched.open_ns
    for end_ns, shares in sorted(by_end.items()):
        end = min(end_ns, watched.close_ns)
        if shares and end > begin_ns:
            intervals.append(Interval(begin_ns, end, shares))
        begin_ns = max(begin_ns, end_ns)
    return intervals
