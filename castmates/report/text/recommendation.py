"""Sensitivity and recommendations -> plain sentences, and the rows of the page's tables."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from castmates.analysis.partitions import recommendation as verdicts
from castmates.analysis.partitions import sensitivity
from castmates.analysis.partitions.held import OTHERWISE, SHARED, UNCERTAIN
from castmates.report.results import Results, records
from castmates.report.text.words import counted, interval, number, plain
from castmates.study.class_caches import cache_of

Row = Mapping[str, Any]


def context(results: Results) -> dict[str, Any]:
    """What the section of the page is made of."""
    knees, advice = results.knees, results.recommendations
    pareto = results.pareto
    return {
        "limit": _percent(float(advice["limit_pct"].iloc[0])) if len(advice) else "",
        "sentences": [sentence(row, _command(results)) for row in records(advice)],
        "recommended": [_row(row) for row in records(advice)],
        "knees": [
            {**row, "said": knee_words(row), "estimate": count_of(row["knee"]), "measured": measured_ways(row, results)}
            for row in records(knees)
        ],
        "refused": refusals(pareto),
        "command": _command(results),
    }


def _command(results: Results) -> str:
    return f"castmates confirm {results.study_file or 'STUDY.yaml'}"


def sentence(row: Row, command: str) -> str:
    """What is recommended for one mix, and whether the processor holds it."""
    return f"{_advice(row, command)}{_doubt(row)}"


def _doubt(row: Row) -> str:
    """A remark where the processor may hold, or held, something else than the partition's masks."""
    name = row["partition"]
    if row.get("held") == UNCERTAIN:
        return (
            f" Masks of {name} have some but not all of the ways that I/O fills too, which some processors give "
            "together only: the lead and the others may share ways."
        )
    if str(row.get("held")).startswith(SHARED):
        return f" Other programs on the machine have ways of {name} too: they are {row['held']}."
    if row.get("held") == OTHERWISE:
        return f" Ways are those that the processor held under {name}, which are not those that were asked."
    return ""


def _advice(row: Row, command: str) -> str:
    who, limit = f"{plain(row['lead'])} beside {plain(row['antagonists'])}", _percent(row["limit_pct"])
    if row["verdict"] == verdicts.NO_SWEEP:
        return (
            f"{who}: no partition that gives the lead its own ways was measured, so none can be recommended for a "
            f"loss of at most {limit}; add a sweep such as `split: all`."
        )
    if row["verdict"] == verdicts.TOO_FEW:
        return (
            f"{who}: {counted(int(row['blocks']), 'launch')} cannot show which lead mask keeps the loss within "
            f"{limit}; it takes at least three."
        )
    if row["verdict"] == verdicts.NOT_MET:
        return f"{who}: no lead mask is shown to keep the loss within {limit}; {_nearest(row)}."
    fresh = confirmation(row, command)
    if row["confirmation"] in (verdicts.NOT_YET, verdicts.TOO_FEW):
        return f"{who}: {ways(row)} keep the loss within {limit}: {_search(row)}, while {_others(row, '')}. {fresh}"
    # What fresh blocks show is the last word; the estimate that made us choose comes after it.
    keep = "keep" if row["confirmation"] == verdicts.YES else "seemed to keep"
    return f"{who}: {ways(row)} {keep} the loss within {limit}. {fresh} It was chosen for {_search(row)}."


def ways(row: Row) -> str:
    """6 of 20 ways (9 MiB)."""
    size = f" ({_mib(row['lead_bytes'])})" if not math.isnan(row["lead_bytes"]) else ""
    of = f" of {row['cache_ways']}" if _there(row["cache_ways"]) else ""
    return f"{row['lead_ways']}{of} ways{size}, {row['partition']},"


def _search(row: Row) -> str:
    bound = row["bound_pct"]
    most = f"a gain of at least {number(-bound)} %" if bound < 0 else f"no more than {number(bound)} %"
    return (
        f"{_lost(row, '')} in the search ({counted(int(row['blocks']), 'launch')}, "
        f"{counted(int(row['masks']), 'mask')} looked at; at {100 * row['confidence']:.3g} % {most})"
    )


def _lost(row: Row, prefix: str) -> str:
    """2.5 % [2.0, 3.0] lost; a negative loss is gained."""
    value, low, high = (row[f"{prefix}loss_{end}"] for end in ("pct", "low", "high"))
    if number(value).startswith("\N{MINUS SIGN}"):
        return f"{number(-value)} % {interval(-high, -low)} gained"
    return f"{number(value)} % {interval(low, high)} lost"


def _others(row: Row, prefix: str) -> str:
    """What the antagonists keep, and what all get done together."""
    kept, low, high = (row[f"{prefix}{name}"] for name in ("kept_pct", "kept_low", "kept_high"))
    stp, least, most = (row[f"{prefix}{name}"] for name in ("stp", "stp_low", "stp_high"))
    several = "+" in row["antagonists"]
    who = "the antagonists keep" if several else f"{plain(row['antagonists'])} keeps"
    if math.isnan(kept) or math.isnan(stp):
        return f"what {who} and the STP are unknown: no launch measured every member both alone and together"
    of = f"of {'their rates' if several else 'its rate'} alone"
    if math.isnan(low) or math.isnan(least):
        return (
            f"{who} {number(kept)} % {of} (STP {number(stp, 2)}), without intervals: fewer than three launches have a "
            "pair of windows of every member"
        )
    return f"{who} {number(kept)} % {interval(low, high)} {of} (STP {number(stp, 2)} {interval(least, most, 2)})"


def _nearest(row: Row) -> str:
    over = row["bound_pct"] - row["limit_pct"]
    points = "less than 0.1" if over < 0.05 else number(over)
    larger = int(row["larger_beyond"])
    if row["loss_pct"] > row["limit_pct"]:
        why = "the estimate is beyond it too"
    elif larger:
        masks = "a larger mask of its kind misses" if larger == 1 else f"{larger} larger masks of its kind miss"
        why = f"the estimate keeps it, but {masks} it too, so more launches of this one alone would not do"
    else:
        why = "the estimate keeps it, and more launches may show as much"
    return (
        f"{row['partition']} comes nearest with {_lost(row, '')} ({counted(int(row['blocks']), 'launch')}), whose "
        f"upper bound of {number(row['bound_pct'])} % misses it by {points} points: {why}"
    )


def confirmation(row: Row, command: str) -> str:
    """What fresh blocks show of it."""
    word = row["confirmation"]
    if word == verdicts.NOT_YET:
        return f"Not confirmed yet: run `{command}`."
    blocks = counted(int(row["confirmed_blocks"]), "fresh launch")
    if word == verdicts.TOO_FEW:
        return f"Not confirmed: {blocks} of {row['confirmed_in']} count, three are needed; run `{command}`."
    value = f"{_lost(row, 'confirmed_')} in {blocks}{_apart(row)}"
    rest = _others(row, "confirmed_")
    if word == verdicts.YES:
        return f"Confirmed: {value}, while {rest}."
    if word == verdicts.EXCEEDED:
        return f"Not confirmed, the loss is beyond the limit: {value}; {rest}."
    return f"Not confirmed, the interval holds the limit: {value}; {rest}."


def _apart(row: Row) -> str:
    """How the fresh blocks were measured where that differs, and how many other studies measured some."""
    others = int(row["confirmed_studies"]) - 1
    more = f"{others} other confirming stud{'y' if others == 1 else 'ies'} with no more blocks" if others > 0 else ""
    remarks = "; ".join(filter(None, [row["confirmed_design"], more]))
    return f" ({remarks})" if remarks else ""


def knee_words(row: Row) -> str:
    """From how many ways on a lead keeps its rate."""
    low, high, verdict = row["knee_low"], row["knee_high"], row["verdict"]
    return {
        sensitivity.KNOWN: f"from {low} ways on",
        sensitivity.BETWEEN: f"from between {low} and {high} ways on",
        sensitivity.AT_LEAST: f"{low} ways or more; up to {row['most_ways']} are not shown to be enough",
        sensitivity.NOT_REACHED: f"not reached with up to {row['most_ways']} ways",
        sensitivity.TOO_FEW: f"unknown: {counted(int(row['blocks']), 'launch')}, and at least three are needed",
    }[verdict]


def measured_ways(row: Row, results: Results) -> str:
    """4 to 8; a lead alone also keeps its rate with the whole cache, which its rates are compared with."""
    fewest, most = row["fewest_ways"], row["most_ways"]
    measured = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    cache = cache_of(results.plan, row["lead"])
    every = cache.ways if cache else 0
    if row["antagonists"] or not every or most >= every:
        return measured
    return f"{measured}, and all {every} (the baseline itself)"


def refusals(pareto: pd.DataFrame) -> list[str]:
    """Which blocks of confirming studies do not count, and why."""
    return [
        f"{counted(int(row['refused']), 'block')} of {row['source']} ({row['mix']} under {row['partition']}) "
        f"{'does' if row['refused'] == 1 else 'do'} not count: {row['why_refused']}."
        for row in records(pareto[pareto["refused"] > 0])
    ]


def _row(row: Row) -> dict[str, Any]:
    """A line of the table: search-time and confirmed estimate side by side."""
    cells: dict[str, object] = {"ways": count_of(row["lead_ways"])}
    for prefix in ("", "confirmed_"):
        for name, digits in (("loss", 1), ("kept", 1), ("stp", 2)):
            low, high = row[f"{prefix}{name}_low"], row[f"{prefix}{name}_high"]
            cells[f"{prefix}{name}_interval"] = "" if math.isnan(low) else interval(low, high, digits)
    return {**row, **cells}


def _percent(value: float) -> str:
    return f"{value:g} %"


def _mib(amount: float) -> str:
    return f"{amount / 2**20:.3g} MiB"


def count_of(value: object) -> float:
    """A whole number out of a table, or NaN where there is none."""
    return float(str(value)) if _there(value) else math.nan


def _there(value: object) -> bool:
    return str(value) not in ("<NA>", "nan", "None")


def texts(advice: pd.DataFrame, command: str, refused: Sequence[str]) -> str:
    """What the command line prints."""
    rows = records(advice)
    platforms = sorted({row["platform"] for row in rows})
    lines = [f"{row['mix']} ({row['platform']}): {sentence(row, command)}" for row in rows]
    note = "" if platforms == ["measured"] else f"Not measured: {', '.join(platforms)}.\n"
    return note + "\n".join([*lines, *refused]) + "\n"
