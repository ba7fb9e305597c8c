"""The tables of a paper on shares of the cache: a lead's rate with so many ways, its knees, what is recommended."""

import math
from collections.abc import Mapping
from typing import Any

from castmates.analysis.partitions import recommendation as verdicts
from castmates.report.paper import latex
from castmates.report.paper.words import BETWEEN, FEW, WITHIN, ends, source
from castmates.report.results import Results, records
from castmates.report.text.recommendation import count_of, knee_words, measured_ways
from castmates.report.text.words import interval, number, plain

Row = Mapping[str, Any]


def tables(results: Results) -> dict[str, str]:
    """Name of the file -> LaTeX."""
    texts = {
        "sensitivity.tex": _sensitivity(results),
        "knees.tex": _knees(results),
        "recommendations.tex": _recommendations(results),
    }
    return {name: text for name, text in texts.items() if text}


def _sensitivity(results: Results) -> str:
    """How fast each lead is with so many ways; points of one curve stand together."""
    rows = records(results.sensitivity)
    if not rows:
        return ""
    curves: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        curves.setdefault(tuple(row[name] for name in ("mix", "member", "curve", "platform")), []).append(row)
    cells = [
        [*(_curve(row) if not place else ["", "", ""]), str(row["lead_ways"]), *_rate(row)]
        for own in curves.values()
        for place, row in enumerate(sorted(own, key=lambda row: row["lead_ways"]))
    ]
    few = any(math.isnan(row["rate_low"]) for row in rows)
    caption = (
        "Rate of the leads by the number of their own ways, in per cent of the rate alone with all ways. "
        f"{BETWEEN}{f'; {WITHIN} {FEW}' if few else ''}. {source(results)}"
    )
    heads = ["Lead", "Beside", "Kind of partition", "Ways", "Rate (%)", "95 % interval", "n"]
    return latex.tables("tab:castmates-sensitivity", caption, heads, "lllrrrr", cells)


def _curve(row: Row) -> list[str]:
    return [plain(row["lead"]), row["antagonists"].replace("+", ", ") or "nothing", row["curve"]]


def _rate(row: Row) -> list[str]:
    few = math.isnan(row["rate_low"])
    low, high = (row["within_low"], row["within_high"]) if few else (row["rate_low"], row["rate_high"])
    mark = WITHIN if few and not math.isnan(low) else ""
    return [number(row["rate_pct"]), ends(low, high) + mark, str(row["launches"])]


def _knees(results: Results) -> str:
    rows = records(results.knees)
    if not rows:
        return ""
    caption = (
        f"From how many ways on a lead keeps {number(rows[0]['kept_pct'], 0)} % of its rate alone with all ways, of "
        "the numbers of ways that were measured and, for a lead alone, the whole cache, which is the baseline itself. "
        "The 95 % interval inverts one-sided t tests in a fixed order, with launches as units; "
        f"n is the number of launches of the point that has fewest. {source(results)}"
    )
    cells = [
        [*_curve(row), number(count_of(row["knee"]), 0), knee_words(row), measured_ways(row, results),
         str(row["launches"])]
        for row in rows
    ]  # fmt: skip
    heads = ["Lead", "Beside", "Kind of partition", "Knee (ways)", "95 % interval", "Measured", "n"]
    return latex.tables("tab:castmates-knees", caption, heads, "lllrllr", cells)


def _recommendations(results: Results) -> str:
    """What was chosen in the search, and below it what fresh launches show."""
    rows = records(results.recommendations)
    if not rows:
        return ""
    fresh = [row for row in rows if row["confirmed_launches"]]
    caption = (
        f"The lead mask that is advised for each mix, {_aim(rows[0])}, or the one that comes nearest; none where the "
        f"loss without a partition is within {rows[0]['limit_pct']:g} % (not needed), or not proven to be larger. "
        "Faster: as many times as fast as without a partition. Estimates of the search chose the mask, and so tend to "
        "be too good, by luck"
        + ("; those of fresh launches, of a separate study, do not" if fresh else "")
        + ". The upper bound of the loss is one-sided, at 97.5 % or, where there are several kinds of partition, more. "
        f"Others keep: mean rate of the antagonists in per cent of their own alone. {BETWEEN}. {source(results)}"
    )
    cells = [line for row in rows for line in _advice(row)]
    heads = ["Mix", "Partition", "Ways", "Estimate", "Loss (%)", "Bound (%)"]
    heads += ["Faster (\N{MULTIPLICATION SIGN})", "Others keep (%)", "n", "Verdict"]
    return latex.tables("tab:castmates-recommendations", caption, heads, "llrlrrrrrl", cells)


def _aim(row: Row) -> str:
    if row["aim"] == verdicts.KNEE:
        return f"at the knee, from which on it keeps {100 - row['limit_pct']:g} % of its speed"
    return f"the smallest that keeps the lead's loss within {row['limit_pct']:g} % (met)"


def _advice(row: Row) -> list[list[str]]:
    if not row["partition"]:
        return [[plain(row["mix"]), *["–"] * 7, str(row["launches"] or "–"), row["verdict"]]]
    ways = f"{row['lead_ways']} of {row['cache_ways']}" if count_of(row["cache_ways"]) > 0 else str(row["lead_ways"])
    waits = f", {verdicts.NOT_YET}" if row["confirmation"] == verdicts.NOT_YET else ""
    faster = number(row["faster"], 2)
    faster += "" if math.isnan(row["faster_low"]) else f" {interval(row['faster_low'], row['faster_high'], 2)}"
    lines = [
        [plain(row["mix"]), row["partition"], ways, "search", _with_ends(row, "loss"), number(row["bound_pct"]),
         faster, _with_ends(row, "kept"), str(row["launches"]), row["verdict"] + waits]
    ]  # fmt: skip
    if row["confirmed_in"]:
        lines.append(
            ["", "", "", "fresh launches", _with_ends(row, "confirmed_loss"), "–", "–",
             _with_ends(row, "confirmed_kept"), str(row["confirmed_launches"]), row["confirmation"]]
        )  # fmt: skip
    return lines


def _with_ends(row: Row, name: str) -> str:
    """2.5 [2.0, 3.0]."""
    value, low, high = (row[f"{name}_{end}"] for end in ("pct", "low", "high"))
    return number(value) if math.isnan(low) else f"{number(value)} {interval(low, high)}"
