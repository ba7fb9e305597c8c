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
AMISS = 0.05  # of all slots: a level 1 that misses one by more is noted


@dataclass(frozen=True)
class Asked:
    """What was asked of perf for one member."""

    member: str
    categories: Sequence[str]  # that it should give
    group: str = ""  # in perf's words
    scope: str = ""
    note: str = ""


def counts_of(asked: Asked, answer: Answer) -> list[Count]:
    """Return a count for each category that perf gave for the whole window."""
    try:
        if answer.why:
            raise CastmatesError(answer.why)
        category_shares = whole_shares(parse(answer.text))
    except CastmatesError as problem:
        return without_value(asked, "not counted", f"perf stat: {problem}")
    if not category_shares:
        return without_value(asked, "not counted", last_words(answer.errors) or "perf printed no such metric")
    whole = remainders({share.name: share.value for share in category_shares if share.value is not None}).get("", 0.0)
    amiss = f"level 1 adds up to {1 - whole:.2f}" if abs(whole) > AMISS else ""
    return [_count(asked, share, amiss if share.level == 1 else "") for share in category_shares]


def without_value(asked: Asked, status: Status, why: str) -> list[Count]:
    """Report that this window has nothing of what was asked for, and why."""
    return [
        Count(asked.member, name, None, status, SOURCE, "metric", asked.group, BY_NAME[name].level,
              scope=asked.scope, note=why)
        for name in asked.categories
    ]  # fmt: skip


def series_of(asked: Asked, answer: Answer, began_ns: int, open_ns: int, close_ns: int) -> list[Sample]:
    """Return a sample of each category at the end of each interval that overlaps the window; an empty one has no value.

    An interval begins where the one before it ended. Perf prints the time since it began.
    """
    try:
        metrics = (
            [] if answer.why else [metric for metric in parse(answer.text).metrics if metric.place.t_s is not None]
        )
    except CastmatesError:
        return []
    by_end: dict[int, list[Metric]] = {}
    for metric in metrics:
        by_end.setdefault(began_ns + int((metric.place.t_s or 0.0) * 1e9), []).append(metric)
    samples: list[Sample] = []
    before_ns = began_ns
    for end_ns, of_interval in sorted(by_end.items()):
        if end_ns > open_ns and before_ns < close_ns:
            known = {share.name: share.value for share in shares(of_interval)}
            samples += [Sample(end_ns, NAME, asked.member, name, known.get(name)) for name in asked.categories]
        before_ns = end_ns
    return samples


def _count(asked: Asked, share: Share, amiss: str) -> Count:
    return Count(
        asked.member,
        share.name,
        share.value,
        share.status,
        SOURCE,
        "metric",
        asked.group,
        share.level,
        share.running,
        asked.scope,
        note="; ".join(filter(None, (share.note, asked.note, amiss))),
    )
