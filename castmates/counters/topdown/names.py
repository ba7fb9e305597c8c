"""What perf calls its Top-Down metrics -> shares in TMA's words; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from castmates.counters.topdown.perf_output.model import WHOLE, Line, Metric, Report, pmu_of
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
    pmu: str = ""  # the kind of core


def whole_shares(report: Report) -> list[Share]:
    """Return the shares of all that perf counted, without those of its intervals."""
    metrics = shares(metric for metric in report.metrics if metric.place.t_s is None)
    return _as_one_turn(metrics, [line for line in report.lines if line.place.t_s is None])


def shares(metrics: Iterable[Metric]) -> list[Share]:
    """Return each category once, in perf's order; what is no Top-Down metric is left out.

    A hybrid processor gives them for each kind of core, and they add up only where they are of the same kind: the one
    that counted more of them counts.
    """
    kinds: dict[str, list[Share]] = {}
    for metric in metrics:
        if (share := _share(metric)) is not None:
            kinds.setdefault(metric.pmu, []).append(share)
    best = max(kinds.values(), key=lambda kind: sum(_weight(share) for share in kind if share.value), default=[])
    by_name: dict[str, Share] = {}
    for share in best:
        if _weight(share) > _weight(by_name.get(share.name)):
            by_name[share.name] = share
    return list(by_name.values())


def _share(metric: Metric) -> Share | None:
    known = category(metric.name)
    if known is None:
        return None
    if metric.value is None:
        note = "perf could not compute it from what was counted"
        return Share(known.name, known.level, None, "not counted", metric.running, metric.name, note, metric.pmu)
    value = metric.value / 100 if metric.unit.startswith(PER_CENT) else metric.value
    status, note = _of(metric.running)
    return Share(known.name, known.level, value, status, metric.running, metric.name, note, metric.pmu)


def _as_one_turn(category_shares: Sequence[Share], lines: Sequence[Line]) -> list[Share]:
    """Return the shares, each as little counted as the least of all events of its kind of core.

    A metric is made of several events and stands beside one of them; perf does not print of which.
    """
    kinds = {share.pmu for share in category_shares}
    runnings = [share.running for share in category_shares if share.value is not None]
    runnings += [line.running for line in lines if pmu_of(line.event) in kinds]
    least = min((running for running in runnings if running is not None), default=None)
    status, note = _of(least)
    return [
        share if share.value is None else replace(share, running=least, status=status, note=note)
        for share in category_shares
    ]


def _of(running: float | None) -> tuple[Status, str]:
    """Return what a value is worth that was counted for so much of the time."""
    whole = running is None or running >= WHOLE
    return ("counted", "") if whole else ("scaled", f"scaled: counted for {running:.0%} of the time")


def _weight(share: Share | None) -> float:
    """Return how much a share is worth: nothing, no value, or a value that was counted for so much of the time."""
    if share is None:
        return -1.0
    return -0.5 if share.value is None else 1.0 if share.running is None else share.running
