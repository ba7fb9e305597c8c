"""What each program loses beside each of its antagonists: one line a pair, with one or two words of verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from castmates.analysis.core import LAUNCHES
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
from castmates.analysis.partitions import recommendation as verdicts
from castmates.report.answer.parts import SUSPECTED, SUSPECTED_GAIN, Curve, Pair, Place, Point, percent
from castmates.report.results import Results, records
from castmates.report.text import recommendation as words
from castmates.report.text.recommendation import there
from castmates.report.text.services import noted
from castmates.report.text.words import loss_seen, nearly, plain
from castmates.study.class_names import without_class
from castmates.study.node_classes import cache_of
from castmates.study.rehearsing import PLATFORM as REHEARSED
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]
# Which pairs stand in the first table where there are too many for it.
IMPORTANCE = (LOSS, SUSPECTED, GAIN, SUSPECTED_GAIN, TOO_FEW, UNCLEAR, NO_LOSS, NO_DATA)


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
    loss = loss_seen(row)
    beside = plain(row["antagonists"]).replace("+", " + ")
    return Pair(
        lead=row["lead"],
        mix=row["mix"],
        program=plain(row["lead"]),
        antagonists=f"{beside} ({row['platform']})" if several else beside,
        state=state,
        loss=row["loss_pct"] if row["launches"] else math.nan,
        low=loss.low,
        high=loss.high,
        launches=int(row["launches"]),
        log=_log(row["slowdown"]),
        log_low=_log(row["slowdown_low"]),
        log_high=_log(row["slowdown_high"]),
        verdict=row["verdict"],
        note="; ".join(filter(None, [noted(results, row), _note(results, row, state, tried), *_doubts(row)])),
        platform=row["platform"],
        is_service=without_class(row["lead"]) in results.service_workloads,
        over_launches=row["over"] == LAUNCHES,
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


# What cache partitions give back: loss against ways of a program beside its antagonists, and a sentence on it.


def curves(results: Results, found: Sequence[Pair]) -> list[Curve]:
    """One for each pair that partitions were tried on: the recommended kind of partition, or that with most points.

    None of a rehearsal: its masks did nothing.
    """
    by_mix: dict[Place, dict[str, list[Row]]] = {}
    kinds = {row["partition"]: row["curve"] for row in records(results.sensitivity)}
    for lead in results.against_alone:
        for row in results.against_alone[lead]:
            if row["platform"] == REHEARSED:
                continue
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
