"""What oneDNN's log shows, in words: which primitives run, with which instructions, and what the log costs."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

import pandas as pd

from castmates.analysis.operations.instructions import HAS, LACKS
from castmates.analysis.operations.primitives import ALL, ESTIMATED
from castmates.english import counted, listed, number
from castmates.report.results import Results, records
from castmates.report.text.operations import LISTED, change_words, scene_words
from castmates.report.text.words import Quantity, percent_of, plain
from castmates.results.profiles import logged_profiles, read_record, usual_profiles
from castmates.study.profile_launches import is_logged
from castmates.study.spec import UNMANAGED

ABOVE = 1.05  # times a roof: what reaches more shows that the roof was measured too low
Row = Mapping[str, Any]


def context(results: Results) -> dict[str, Any]:
    """What this part of the section is made of; nothing where no launch is under oneDNN's log, nor work estimated."""
    logged = any(map(is_logged, results.plan.profiles))
    if not logged and (not results.plan.profiles or results.roofline.empty):
        return {}
    return {
        "sentences": [*use_words(results), *quality_words(results)] if logged else [],
        "summary": _primitives(results.primitive_summary),
        "use": [_use(row) for row in records(_whole_first(results.isa_use))] if logged else [],
        "roofline": _roofline(results.roofline),
    }


def use_words(results: Results) -> Iterator[str]:
    """How much of each lead's step alone runs with which instructions, as far as implementations show it."""
    table = results.isa_use
    alone = table[(table["kind"] == "alone") & (table["partition"] == UNMANAGED) & (table["type"] == ALL)]
    for member, rows in alone.groupby("member", sort=False):
        known = [row for row in records(rows) if row["processor"] == HAS and row["eligible_ms"] > 0]
        known = [row for row in known if not row["wider_share"] > row["used_share"]]
        parts = [
            f"{row['extension']} in {percent_of(row['used_share'])} of the time that could "
            f"(in {percent_of(row['unknown_share'])} nothing shows it)"
            for row in known
        ]
        if parts:
            yield f"A step of {plain(str(member))} alone is shown to use {listed(parts)}."
    lacking = list(dict.fromkeys(alone.loc[alone["processor"] == LACKS, "extension"]))
    if lacking:
        yield f"The processor lacks {listed(lacking)}."


def quality_words(results: Results) -> Iterator[str]:
    """What to know of the log: what it costs, and what it leaves open."""
    logged = [read_record(results.folder, path) for path in logged_profiles(results.plan, results.folder)]
    usual = [read_record(results.folder, path) for path in usual_profiles(results.plan, results.folder)]
    yield from _cost_words(logged, usual)
    joined: Counter[str] = Counter()
    other = 0
    for record in logged:
        for trace in record.get("traces", ()):
            log = trace.get("log", {})
            joined.update(log.get("joined", {}))
            other += sum(log.get("other_lines", {}).values())
    if whole := joined.total():
        open_ = joined["none"] + joined["several"]
        rest = f"; {counted(open_, 'execution')} could not be" if open_ else ""
        yield (
            f"Of {counted(whole, 'execution')} of primitives in traced steps, {percent_of(1 - open_ / whole)} were "
            f"joined to an operation by time{rest}."
        )
    if other:
        yield f"{counted(other, 'line')} of oneDNN's log were no executions, and are not used."
    table = results.roofline[results.roofline["source"] != ESTIMATED]
    if above := table.loc[table["gflops"] > ABOVE * table["compute_gflops"], "operation"].nunique():
        yield (
            f"{counted(above, 'operation')} reached more than the roof of arithmetic: something else ran while that "
            "was measured, and it is no roof here."
        )
    for why in dict.fromkeys((record.get("roofs") or {}).get("why_not") for record in logged):
        if why:
            yield f"Not every roof was measured: {why}."


def _cost_words(logged: Sequence[Row], usual: Sequence[Row]) -> Iterator[str]:
    """How much longer the lead's untraced steps alone take under the log, by lead."""
    for lead in dict.fromkeys(record.get("lead") for record in logged):
        under, without = _usual_ms(logged, lead), _usual_ms(usual, lead)
        if under and without:
            yield (
                f"Under oneDNN's log, untraced steps of {lead} alone take {number(mean(under) / mean(without), 2)} "
                "times as long as in the other profile launches: times under it are compared with each other alone."
            )


def _usual_ms(profiles: Sequence[Row], lead: object) -> list[float]:
    traces = [
        trace for one in profiles if one.get("lead") == lead for trace in one["traces"] if trace["scene"] == "alone"
    ]
    return [ms for trace in traces for ms in trace.get("usual_ms", ()) if ms]


def _primitives(table: pd.DataFrame) -> dict[str, Any]:
    """The primitives that take most of a step of each lead alone."""
    alone = table[(table["kind"] == "alone") & (table["partition"] == UNMANAGED)]
    rows = alone.groupby(["member", "platform"], sort=False).head(LISTED)
    return {"rows": [_primitive(row) for row in records(rows)], "more": len(alone) - len(rows)}


def _primitive(row: Row) -> Row:
    return {**row, "who": plain(row["member"]), "took": Quantity.of(row, "ms", digits=3)}


def _whole_first(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of whole models in all scenes, and those of types of operations of each lead alone."""
    whole = table[table["type"] == ALL]
    alone = (table["kind"] == "alone") & (table["partition"] == UNMANAGED)
    types = table[alone & (table["type"] != ALL) & (table["eligible_ms"] > 0) & (table["processor"] == HAS)]
    types = types.sort_values("eligible_ms", ascending=False).groupby(["member", "extension"], sort=False).head(8)
    return pd.concat([whole, types], ignore_index=True)


def _use(row: Row) -> Row:
    return {**row, "who": scene_words(row), "change": change_words(row, 1, 100)}


def _roofline(table: pd.DataFrame) -> dict[str, Any]:
    """The operations of each scene that take longest, of all whose work is known."""
    rows = table.sort_values("ms", ascending=False).groupby(["scene", "member", "platform"], sort=False).head(LISTED)
    rows = rows.sort_index()
    return {
        "rows": [_reached(row) for row in records(rows)],
        "more": len(table) - len(rows),
        "estimated": bool((rows["source"] == ESTIMATED).any()),
    }


def _reached(row: Row) -> Row:
    ratio = "" if math.isnan(row["ratio"]) else str(Quantity.of(row, "ratio", digits=2))
    return {**row, "who": scene_words(row), "reached": Quantity.of(row, "gflops"), "change": ratio}
