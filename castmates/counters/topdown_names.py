"""What perf calls its Top-Down metrics -> shares in TMA's words; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from castmates.counters.perf_output.model import WHOLE, Metric
from castmates.protocols import Status
from castmates.study.topdown_tree import category

PER_CENT = ("%", "percent")


@dataclass(frozen=True, slots=True)
class Share:
    """One category's share, as perf gave it."""

    name: str  # in TMA's words
    level: int
    value: float | None  # of one
    status: Status
    running: float | None
    perf_name: str
    note: str = ""


def shares(metrics: Iterable[Metric]) -> list[Share]:
    """Each category once, in perf's order; what is no Top-Down metric is left out.

    A hybrid processor gives them for each kind of core, and they add up only where they are of the same kind: the one
    that counted more of them speaks.
    """
    kinds: dict[str, list[Share]] = {}
    for metric in metrics:
        if (one := _share(metric)) is not None:
            kinds.setdefault(metric.pmu, []).append(one)
    best = max(kinds.values(), key=lambda kind: sum(_weight(one) for one in kind if one.value), default=[])
    found: dict[str, Share] = {}
    for one in best:
        if _weight(one) > _weight(found.get(one.name)):
            found[one.name] = one
    return list(found.values())


def _share(metric: Metric) -> Share | None:
    known = category(metric.name)
    if known is None:
        return None
    if metric.value is None:
        note = "perf could not compute it from what was counted"
        return Share(known.name, known.level, None, "not counted", metric.running, metric.name, note)
    value = metric.value / 100 if metric.unit.startswith(PER_CENT) else metric.value
    whole = metric.running is None or metric.running >= WHOLE
    note = "" if whole else f"scaled: counted for {metric.running:.0%} of the time"
    status: Status = "counted" if whole else "scaled"
    return Share(known.name, known.level, value, status, metric.running, metric.name, note)


def _weight(share: Share | None) -> float:
    """How much a share tells: nothing at all, no value, or a value that was counted for so much of the time."""
    if share is None:
        return -1.0
    return -0.5 if share.value is None else 1.0 if share.running is None else share.running
