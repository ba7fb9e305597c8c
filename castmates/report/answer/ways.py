"""What cache partitions give back: loss against ways of a program beside its neighbours, and a sentence on it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from castmates.analysis.partitions import recommendation as verdicts
from castmates.report.answer.pairs import Pair
from castmates.report.answer.percent import percent
from castmates.report.results import Results, records
from castmates.report.text.words import counted, plain
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """The loss with so many ways."""

    ways: int
    loss: float
    low: float  # NaN below three launches
    high: float
    partition: str


@dataclass(frozen=True)
class Curve:
    """Losses of one program beside its neighbours under one kind of partition."""

    lead: str
    mix: str
    program: str
    neighbours: str
    kind: str  # of partition
    points: tuple[Point, ...]  # fewest ways first
    shared: float  # the loss without a partition
    shared_low: float
    shared_high: float
    all_ways: int  # of the cache; 0 where that is not known
    limit: float  # the loss that the study accepts, per cent; NaN where it names none
    enough: int  # ways that keep it; 0 where none is shown to
    sentence: str

    @property
    def with_most(self) -> str:
        """With 11 of the 12 cache ways, 8 %: what the largest share that was tried leaves of the loss."""
        most = self.points[-1]  # one with fewer that looks better may do so by luck
        of = f" of the {self.all_ways}" if self.all_ways else ""
        return f"with {most.ways}{of} cache ways, {percent(most.loss)}"


def curves(results: Results, found: Sequence[Pair]) -> list[Curve]:
    """One for each pair that partitions were tried on: the kind of partition that has most points."""
    by_mix: dict[tuple[str, str], dict[str, list[Row]]] = {}
    kinds = {row["partition"]: row["curve"] for row in records(results.sensitivity_curves)}
    for lead in results.against_solo:
        for row in results.against_solo[lead]:
            if row["partition"] != UNMANAGED and _there(row["lead_ways"]) and not math.isnan(row["degradation_pct"]):
                kind = kinds.get(row["partition"], "")
                by_mix.setdefault((row["lead"], row["mix"]), {}).setdefault(kind, []).append(row)
    pairs = {(pair.lead, pair.mix): pair for pair in found}
    return [
        _curve(results, pairs.get(place), max(by_kind.items(), key=lambda item: len(item[1])))
        for place, by_kind in by_mix.items()
        if any(row["antagonists"] for rows in by_kind.values() for row in rows)
    ]


def _curve(results: Results, pair: Pair | None, found: tuple[str, Sequence[Row]]) -> Curve:
    kind, rows = found
    first = rows[0]
    points = tuple(
        sorted(
            (
                Point(int(row["lead_ways"]), row["degradation_pct"], row["degradation_low"], row["degradation_high"],
                      row["partition"])
                for row in rows
            ),
            key=lambda point: point.ways,
        )
    )  # fmt: skip
    advice = _advice(results, first)
    limit = float(advice["limit_pct"]) if advice else math.nan
    enough = int(advice["lead_ways"]) if advice and advice["verdict"] == verdicts.MET else 0
    all_ways = results.plan.cache.ways if results.plan.cache else 0
    program, beside = plain(first["lead"]), plain(first["antagonists"]).replace("+", " + ")
    shared = (pair.loss, pair.low, pair.high) if pair else (math.nan, math.nan, math.nan)
    curve = Curve(
        first["lead"], first["mix"], program, beside, kind, points, *shared, all_ways, limit, enough, sentence=""
    )
    return replace(curve, sentence=_sentence(curve, advice))


def _sentence(curve: Curve, advice: Row | None) -> str:
    """ranking loses 46 % of its speed beside stream; with 11 of the 12 cache ways, 8 %; 4 ways keep it under 3 %."""
    lost = "" if math.isnan(curve.shared) else f" loses {percent(curve.shared)} of its speed"
    parts = [f"{curve.program}{lost} beside {curve.neighbours}", curve.with_most, *_enough(advice)]
    return "; ".join(parts) + "."


def _enough(advice: Row | None) -> list[str]:
    """How many ways keep the limit of the study."""
    if advice is None:
        return []
    limit = f"{advice['limit_pct']:g} %"
    if advice["verdict"] == verdicts.MET:
        confirmed = "" if advice["confirmation"] == verdicts.YES else " (not confirmed by fresh launches yet)"
        if advice["confirmation"] == verdicts.EXCEEDED:
            confirmed = " in the search, but fresh launches lost more"
        return [f"{counted(int(advice['lead_ways']), 'way')} keep it under {limit}{confirmed}"]
    if advice["verdict"] == verdicts.NOT_MET:
        return [f"no share is shown to keep it under {limit}"]
    return []


def _advice(results: Results, row: Row) -> Row | None:
    rows = results.recommendations
    ours = rows[(rows["lead"] == row["lead"]) & (rows["mix"] == row["mix"]) & (rows["platform"] == row["platform"])]
    return records(ours)[0] if len(ours) else None


def _there(value: object) -> bool:
    return str(value) not in ("<NA>", "nan", "None")
