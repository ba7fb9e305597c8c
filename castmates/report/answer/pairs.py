"""What each program loses beside each of its antagonists: one line a pair, with one or two words of verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from castmates.analysis.effects.verdicts import (
    EFFECT_LEVEL,
    GAIN,
    LOSS,
    NO_DATA,
    NO_LOSS,
    TOO_FEW,
    UNCLEAR,
    effect_level,
)
from castmates.report.results import Results
from castmates.report.text.services import noted
from castmates.report.text.words import nearly, plain, within
from castmates.study.class_names import without_class
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]

SUSPECTED, SUSPECTED_GAIN = "suspected loss", "suspected gain"  # unclear, though the interval excludes zero
# Which pairs stand in the first table where there are too many for it.
IMPORTANCE = (LOSS, SUSPECTED, GAIN, SUSPECTED_GAIN, TOO_FEW, UNCLEAR, NO_LOSS, NO_DATA)


@dataclass(frozen=True)
class Pair:
    """A program beside its antagonists; losses in per cent of its rate alone."""

    lead: str
    mix: str
    program: str
    antagonists: str
    state: str  # the verdict, or what is suspected
    loss: float
    low: float
    high: float
    launches: int
    log: float  # the slowdown's logarithm, and the ends of its interval between launches
    log_low: float
    log_high: float
    verdict: str
    note: str = ""
    platform: str = ""
    is_service: bool = False  # it is judged by the latency of its requests

    @property
    def place(self) -> tuple[str, str, str]:
        """What finds its curve under partitions."""
        return self.lead, self.mix, self.platform

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.loss)

    @property
    def settled(self) -> bool:
        """Whether more launches would not change the verdict."""
        return self.state in (LOSS, GAIN, NO_LOSS)


def pairs(results: Results) -> list[Pair]:
    """All pairs without a partition: programs in the study's order, and of each the heaviest loss first."""
    rows = [
        row for lead in results.against_alone for row in results.against_alone[lead] if row["partition"] == UNMANAGED
    ]
    tried = sum(not math.isnan(row["p_value"]) for row in rows)
    several = len({row["platform"] for row in rows}) > 1
    found = [_pair(results, row, tried, several) for row in rows]
    order = {pair.lead: place for place, pair in reversed([*enumerate(found)])}
    return sorted(found, key=lambda pair: (order[pair.lead], -pair.loss if pair.known else math.inf))


def most_important(found: list[Pair], count: int) -> list[Pair]:
    """So many of them, in their order: what is proven first, then what is suspected, and the heaviest of each."""
    first = sorted(found, key=lambda pair: (IMPORTANCE.index(pair.state), -abs(pair.loss) if pair.known else 0.0))
    chosen = {id(pair) for pair in first[:count]}
    return [pair for pair in found if id(pair) in chosen]


def _pair(results: Results, row: Row, tried: int, several: bool) -> Pair:
    state = row["verdict"]
    if nearly(row):
        state = SUSPECTED if row["loss_pct"] > 0 else SUSPECTED_GAIN
    low, high = within(row) if state == TOO_FEW else (row["loss_low"], row["loss_high"])
    beside = plain(row["antagonists"]).replace("+", " + ")
    return Pair(
        lead=row["lead"],
        mix=row["mix"],
        program=plain(row["lead"]),
        antagonists=f"{beside} ({row['platform']})" if several else beside,
        state=state,
        loss=row["loss_pct"] if row["launches"] else math.nan,
        low=low,
        high=high,
        launches=int(row["launches"]),
        log=_log(row["slowdown"]),
        log_low=_log(row["slowdown_low"]),
        log_high=_log(row["slowdown_high"]),
        verdict=row["verdict"],
        note="; ".join(filter(None, [noted(results, row), _note(results, row, state, tried), *_doubts(row)])),
        platform=row["platform"],
        is_service=without_class(row["lead"]) in results.service_workloads,
    )


def _note(results: Results, row: Row, state: str, tried: int) -> str:
    margin = f"the change is below {100 * results.margin:.3g} %" if results.margin is not None else ""
    not_proven = f"not proven: {_reason(results, row, tried)}"
    one = "this launch" if row["launches"] == 1 else "these launches"
    return {
        NO_LOSS: margin,
        SUSPECTED: f"{SUSPECTED}, {not_proven}",
        SUSPECTED_GAIN: f"{SUSPECTED_GAIN}, {not_proven}",
        TOO_FEW: f"the interval covers {one} only",
        NO_DATA: _why_missing(results, row["lead"]),
    }.get(state, "")


def _reason(results: Results, row: Row, tried: int) -> str:
    """Why an interval without zero is no proof: of so many pairs one may look like this, or the study was extended."""
    if tried > 1 and not (results.extended and row["p_holm"] < EFFECT_LEVEL):
        return f"{tried} mixes were tried"
    return f"the study was extended, so p must be below {effect_level(results.extended):g}"


def _why_missing(results: Results, lead: str) -> str:
    """Why the last of its launches failed, in so many words as fit into a line."""
    failed = results.launches[(results.launches["lead"] == lead) & (results.launches["status"] == "failed")]
    reason = str(failed["reason"].iloc[-1]).rstrip(".") if len(failed) else ""
    return reason if len(reason) <= 80 else f"{reason[:79]}…"


def _doubts(row: Row) -> list[str]:
    biased = "perhaps biased by what was thrown away" if row["possibly_biased"] else ""
    growing = "still growing when slices end: the true loss is larger" if row["still_growing"] else ""
    return [biased, growing]


def _log(slowdown: float) -> float:
    return math.log(slowdown) if slowdown > 0 else math.nan
