"""What cache partitions give back: loss against ways of a program beside its antagonists, and a sentence on it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from castmates.analysis.partitions import recommendation as verdicts
from castmates.report.answer.pairs import Pair
from castmates.report.answer.percent import percent
from castmates.report.results import Results, records
from castmates.report.text import recommendation as words
from castmates.report.text.recommendation import there
from castmates.report.text.words import counted, plain
from castmates.study.class_caches import cache_of
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]
Place = tuple[str, str, str]  # lead, mix, platform


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
    """Losses of one program beside its antagonists under one kind of partition."""

    program: str
    antagonists: str
    kind: str  # of partition
    points: tuple[Point, ...]  # fewest ways first
    shared: float  # the loss without a partition
    shared_low: float
    shared_high: float
    all_ways: int  # of the cache; 0 where that is not known
    limit: float  # the loss that the study accepts, per cent; NaN where it names none
    aim: str  # under 10 %, or 95 % of its speed; "" without advice
    enough: int  # ways that are advised; 0 where none are
    chosen: str  # the partition that gives so many; "" where none is advised
    confirmed: bool  # by fresh launches
    needed: bool  # a partition: not where the loss without one keeps the limit
    knee: tuple[int, int | None, int | None] | None  # ways from which on its speed is kept, and their interval
    place: Place
    sentence: str

    @property
    def with_most(self) -> str:
        """With 11 of the 12 cache ways, 8 %: what the largest share that was tried leaves of the loss."""
        most = self.points[-1]  # one with fewer that looks better may do so by luck
        return f"with {self._share(most.ways)}, {percent(most.loss)}"

    def keeps(self, what: str) -> str:
        """7 of the 12 cache ways keep it under 10 %; 10 of the 12 cache ways keep 95 % of its speed."""
        one = self.enough == 1
        seem = "" if self.confirmed else "seems to " if one else "seem to "
        kept = self.aim if math.isnan(self.limit) else f"{what} {self.aim}"
        return f"{self._share(self.enough)} {seem}keep{'s' if one and not seem else ''} {kept}"

    def _share(self, ways: int) -> str:
        """7 of the 12 cache ways."""
        return f"{ways} of the {self.all_ways} cache ways" if self.all_ways else counted(ways, "cache way")


def curves(results: Results, found: Sequence[Pair]) -> list[Curve]:
    """One for each pair that partitions were tried on: the recommended kind of partition, or that with most points."""
    by_mix: dict[Place, dict[str, list[Row]]] = {}
    kinds = {row["partition"]: row["curve"] for row in records(results.sensitivity)}
    for lead in results.against_alone:
        for row in results.against_alone[lead]:
            if row["partition"] != UNMANAGED and there(row["lead_ways"]) and not math.isnan(row["loss_pct"]):
                kind = kinds.get(row["partition"], "")
                by_mix.setdefault((row["lead"], row["mix"], row["platform"]), {}).setdefault(kind, []).append(row)
    pairs = {pair.place: pair for pair in found}
    return [
        _curve(results, place, pairs.get(place), by_kind, kinds)
        for place, by_kind in by_mix.items()
        if any(row["antagonists"] for rows in by_kind.values() for row in rows)
    ]


def _curve(
    results: Results,
    place: Place,
    pair: Pair | None,
    by_kind: Mapping[str, Sequence[Row]],
    kinds: Mapping[str, str],
) -> Curve:
    advice = _of_place(results.recommendations, place)
    chosen = str(advice["partition"]) if advice and words.is_advised(advice) else ""
    kind = kinds.get(chosen, "")
    if not chosen or kind not in by_kind:
        kind = max(by_kind, key=lambda name: len(by_kind[name]))
    rows = by_kind[kind]
    first = rows[0]
    points = tuple(
        Point(
            int(row["lead_ways"]),
            row["loss_pct"],
            row["loss_low"],
            row["loss_high"],
            row["partition"],
        )
        for row in sorted(rows, key=lambda row: int(row["lead_ways"]))
    )
    at_knee = advice is not None and advice["aim"] == verdicts.KNEE
    knee = _of_place(results.knees, place, curve=kind, antagonists=first["antagonists"]) if at_knee and chosen else None
    cache, limit = cache_of(results.plan, first["machine"]), float(advice["limit_pct"]) if advice else math.nan
    curve = Curve(
        plain(first["lead"]), plain(first["antagonists"]).replace("+", " + "), kind, points,
        *((pair.loss, pair.low, pair.high) if pair else (math.nan, math.nan, math.nan)),
        all_ways=cache.ways if cache else 0,
        limit=math.nan if at_knee else limit,
        aim="" if advice is None else f"{100 - limit:g} % of its speed" if at_knee else f"under {limit:g} %",
        enough=int(advice["lead_ways"]) if advice and chosen else 0,
        chosen=chosen,
        confirmed=advice is not None and advice["confirmation"] == verdicts.YES,
        needed=advice is None or advice["verdict"] != verdicts.NOT_NEEDED,
        knee=_knee(knee) if knee else None,
        place=place,
        sentence="",
    )  # fmt: skip
    return replace(curve, sentence=_sentence(curve, advice, results.effects))


def _knee(row: Row) -> tuple[int, int | None, int | None] | None:
    if not there(row["knee"]):
        return None
    low, high = (int(row[end]) if there(row[end]) else None for end in ("knee_low", "knee_high"))
    return int(row["knee"]), low, high


def _sentence(curve: Curve, advice: Row | None, effects: pd.DataFrame) -> str:
    """What is advised, or why nothing is, in the words of the recommendation; or what is lost."""
    if advice and advice["verdict"] in verdicts.ADVISED:
        bargain = f"{words.bargain(advice, words.paid(advice, effects))} ({words.fresh_words(advice)})"
        return f"{curve.program} beside {curve.antagonists}: {bargain}."
    if advice and advice["verdict"] in (verdicts.NOT_NEEDED, verdicts.OPEN):
        return words.sentence(advice, "")
    lost = "" if math.isnan(curve.shared) else f" loses {percent(curve.shared)} of its speed"
    none = advice is not None and advice["verdict"] == verdicts.NOT_MET
    limit = f"; no share is shown to keep it under {advice['limit_pct']:g} %" if advice and none else ""
    return f"{curve.program}{lost} beside {curve.antagonists}; {curve.with_most}{limit}."


def _of_place(rows: pd.DataFrame, place: Place, **more: str) -> Row | None:
    for column, value in {**dict(zip(("lead", "mix", "platform"), place, strict=True)), **more}.items():
        rows = rows[rows[column] == value]
    return records(rows)[0] if len(rows) else None
