"""What one perf printed of one member in one window -> counts, and samples of its intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from castmates.counters.topdown.names import Share, shares, whole_shares
from castmates.counters.topdown.perf_output.model import Metric
from castmates.counters.topdown.perf_output.reading import parse
from castmates.counters.topdown.process import Answer, last_words
from castmates.errors import CastmatesError
from castmates.protocols import Count, Sample, Status
from castmates.study.topdown_tree import BY_NAME, remainders

NAME, SOURCE = "topdown", "perf stat"
AMISS = 0.05  # of all slots: a level 1 that misses one by more is told


@dataclass(frozen=True)
class Asked:
    """What was asked of perf for one member."""

    member: str
    categories: Sequence[str]  # that it should give
    group: str = ""  # in perf's words
    scope: str = ""
    note: str = ""


def counts_of(asked: Asked, answer: Answer) -> list[Count]:
    """A count for each category that perf gave for the whole window."""
    try:
        if answer.why:
            raise CastmatesError(answer.why)
        found = whole_shares(parse(answer.text))
    except CastmatesError as problem:
        return without_value(asked, "not counted", f"perf stat: {problem}")
    if not found:
        return without_value(asked, "not counted", last_words(answer.errors) or "perf printed no such metric")
    whole = remainders({one.name: one.value for one in found if one.value is not None}).get("", 0.0)
    amiss = f"level 1 adds up to {1 - whole:.2f}" if abs(whole) > AMISS else ""
    return [_count(asked, one, amiss if one.level == 1 else "") for one in found]


def without_value(asked: Asked, status: Status, why: str) -> list[Count]:
    """Report that this window has nothing of what was asked for, and why."""
    return [
        Count(asked.member, name, None, status, SOURCE, "metric", asked.group, BY_NAME[name].level,
              scope=asked.scope, note=why)
        for name in asked.categories
    ]  # fmt: skip


def series_of(asked: Asked, answer: Answer, began_ns: int, open_ns: int, close_ns: int) -> list[Sample]:
    """A sample at the end of each interval that overlaps the window, for each category; an empty one has no value.

    An interval begins where the one before it ended. Perf tells the time since it began.
    """
    try:
        metrics = [] if answer.why else [one for one in parse(answer.text).metrics if one.place.t_s is not None]
    except CastmatesError:
        return []
    by_end: dict[int, list[Metric]] = {}
    for metric in metrics:
        by_end.setdefault(began_ns + int((metric.place.t_s or 0.0) * 1e9), []).append(metric)
    found: list[Sample] = []
    before_ns = began_ns
    for end_ns, told in sorted(by_end.items()):
        if end_ns > open_ns and before_ns < close_ns:
            known = {one.name: one.value for one in shares(told)}
            found += [Sample(end_ns, NAME, asked.member, name, known.get(name)) for name in asked.categories]
        before_ns = end_ns
    return found


def _count(asked: Asked, one: Share, amiss: str) -> Count:
    return Count(
        asked.member,
        one.name,
        one.value,
        one.status,
        SOURCE,
        "metric",
        asked.group,
        one.level,
        one.running,
        asked.scope,
        note="; ".join(filter(None, (one.note, asked.note, amiss))),
    )
