"""The tables of a paper: effects with intervals, launches and verdict; controls. Captions say the platform."""

from collections.abc import Mapping
from typing import Any

from castmates.report import health, latex
from castmates.report.read import Results, records
from castmates.report.stamps import first_words, stamped
from castmates.report.style import plain
from castmates.report.words import interval, listed, number, percent_of, within
from castmates.study.spec import UNMANAGED

WITHIN = "†"
Row = Mapping[str, Any]
HEADS = ["Member", "Beside", "Against", "Degradation (%)", "95 % interval", "n", "Verdict"]


def paper_tables(results: Results) -> dict[str, str]:
    """Name of the file -> LaTeX."""
    found = {
        "effects.tex": _effects(results, "lead", "the leads"),
        "antagonists.tex": _effects(results, "antagonist", "the antagonists"),
        "controls.tex": _controls(results),
    }
    for mix in dict.fromkeys(results.effects.loc[results.effects["partition"] != UNMANAGED, "mix"]):
        found[f"partitions-{mix.replace('+', '-')}.tex"] = _partitions(results, mix)
    return {name: text for name, text in found.items() if text}


def _effects(results: Results, role: str, who: str) -> str:
    table = results.effects
    rows = records(table[(table["role"] == role) & (table["partition"] == UNMANAGED)])
    if not rows:
        return ""
    caption = (
        f"Degradation of {who} without a partition, in per cent of the rate of the baseline. {_told(results, rows)}"
    )
    cells = [[plain(row["member"]), _beside(row), row["baseline"], *_numbers(row)] for row in rows]
    return latex.tables(f"tab:castmates-{role}s", caption, HEADS, "lllrrrl", cells)


def _partitions(results: Results, mix: str) -> str:
    """The lead's rows under partitions: what it loses against solo, and what the partition changes."""
    table = results.effects
    rows = records(table[(table["mix"] == mix) & (table["role"] == "lead") & (table["partition"] != UNMANAGED)])
    heads = ["Partition", "Ways", "Against", *HEADS[3:]]
    caption = (
        f"{plain(mix)}: degradation of the lead under partitions, in per cent of the rate of the baseline; against "
        f"unmanaged, negative numbers are what the partition gives back. {_told(results, rows)}"
    )
    cells = [[row["partition"], _ways(row), row["baseline"], *_numbers(row)] for row in rows]
    return latex.tables(f"tab:castmates-{mix.replace('+', '-')}", caption, heads, "lrlrrrl", cells)


def _controls(results: Results) -> str:
    rows = [health.control(row) for row in records(results.controls)]
    if not rows:
        return ""
    caption = (
        "Controls: rates that must not differ (A/A, negative) or must (positive). Intervals are 95 % t intervals "
        f"between launches unless marked; n is the number of launches. {_source(results)}"
    )
    cells = [
        [
            row["control"],
            row["what"],
            row["compared"],
            number(row["ratio"], 3),
            row["interval"],
            str(row["blocks"]),
            row["verdict"],
        ]
        for row in rows
    ]
    heads = ["Control", "Of", "Rates", "Ratio", "95 % interval", "n", "Verdict"]
    return latex.tables("tab:castmates-controls", caption, heads, "lllrrrl", cells)


def _numbers(row: Row) -> list[str]:
    few = row["verdict"] == "too few blocks"
    low, high = within(row) if few else (row["degradation_low"], row["degradation_high"])
    ends = "–" if row["verdict"] == "no data" else interval(low, high) + few * WITHIN
    return [number(row["degradation_pct"]), ends, str(row["blocks"]), row["verdict"]]


def _told(results: Results, rows: list[dict[str, Any]]) -> str:
    few = any(row["verdict"] == "too few blocks" for row in rows)
    margin = f"±{percent_of(results.margin)}" if results.margin is not None else "the study's margin"
    return (
        "Intervals are 95 % t intervals between launches; n is the number of launches"
        + (f"; {WITHIN} within these launches only, of which there are fewer than three" if few else "")
        + f". Verdicts are Holm-adjusted over the rows of the same baseline; equivalent means inside {margin}. "
        + _source(results)
    )


def _source(results: Results) -> str:
    platforms = listed(results.platforms) if results.platforms else "no numbers"
    return f"{first_words(results)}Platform: {platforms}. {stamped(results)}"


def _beside(row: Row) -> str:
    """Of a lead its antagonists; of an antagonist all others of its mix."""
    if row["role"] == "lead":
        return str(row["antagonists"]).replace("+", ", ")
    others = [row["lead"], *str(row["antagonists"]).split("+")]
    others.remove(plain(row["member"]))
    return ", ".join(others)


def _ways(row: Row) -> str:
    ways = str(row["lead_ways"])
    return "all" if ways in ("<NA>", "nan", "None") else ways
