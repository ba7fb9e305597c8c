"""The tables of a paper: effects, what they are due to, the members together, controls. Captions name the platform."""

from collections.abc import Mapping
from typing import Any

from castmates.analysis.effects.system import ANTT, STP, UNFAIRNESS
from castmates.analysis.effects.verdicts import NO_DATA, TOO_FEW
from castmates.analysis.partitions.attribution_parts import TOTAL
from castmates.report.paper import latency, latex, shares
from castmates.report.paper.words import BETWEEN, FEW, WITHIN, beside, ends, file_name, flag, flagged, source
from castmates.report.results import Results, records
from castmates.report.text import attribution, health, system
from castmates.report.text.words import effect_words, number, percent_of, plain, within
from castmates.study.spec import UNMANAGED

SYSTEM = (STP, ANTT, UNFAIRNESS)  # what fits beside each other; the study's table has more
Row = Mapping[str, Any]
HEADS = ["Member", "Beside", "Against", "Loss (%)", "95 % interval", "n", "Verdict"]


def paper_tables(results: Results) -> dict[str, str]:
    """Name of the file -> LaTeX."""
    texts = {
        "effects.tex": _effects(results, "lead", "the leads"),
        "antagonists.tex": _effects(results, "antagonist", "the antagonists"),
        "attribution.tex": _attribution(results),
        "system.tex": _system(results),
        **latency.tables(results),
        **shares.tables(results),
        "controls.tex": _controls(results),
    }
    for mix in dict.fromkeys(results.effects.loc[results.effects["partition"] != UNMANAGED, "mix"]):
        texts[file_name("partitions", mix)] = _partitions(results, mix)
    return {name: text for name, text in texts.items() if text}


def _effects(results: Results, role: str, who: str) -> str:
    table = results.effects
    rows = records(table[(table["role"] == role) & (table["partition"] == UNMANAGED)])
    if not rows:
        return ""
    caption = f"Loss of {who} without a partition, in per cent of the rate of the baseline. {_method(results, rows)}"
    cells = [[plain(row["member"]), beside(row), row["baseline"], *_numbers(row)] for row in rows]
    return latex.tables(f"tab:castmates-{role}s", caption, HEADS, "lllrrrl", cells)


def _partitions(results: Results, mix: str) -> str:
    """The lead's rows under partitions: what it loses against alone, and what the partition changes."""
    table = results.effects
    rows = records(table[(table["mix"] == mix) & (table["role"] == "lead") & (table["partition"] != UNMANAGED)])
    heads = ["Partition", "Ways", "Against", *HEADS[3:]]
    caption = (
        f"{plain(mix)}: loss of the lead under partitions, in per cent of the rate of the baseline; a "
        f"gain, such as what a partition gives back against unmanaged, is given as how many times as fast. "
        f"{_method(results, rows)}"
    )
    cells = [[row["partition"], _ways(row), row["baseline"], *_numbers(row)] for row in rows]
    return latex.tables(f"tab:castmates-{mix.replace('+', '-')}", caption, heads, "lrlrrrl", cells)


def _attribution(results: Results) -> str:
    """What the losses are due to, in points of the rate alone, which add up."""
    rows = [(total, row) for total, parts in attribution.mixes(results) for row in (total, *parts) if row["launches"]]
    if not rows:
        return ""
    cells = [
        [
            attribution.who(total) if row["part"] == TOTAL else "",
            row["part"] if row["part_of"] in ("", TOTAL) else f"– of which {row['part']}",
            number(row["points"]),
            ends(row["points_low"], row["points_high"]) + flag(row),
            str(row["launches"]),
            row["verdict"],
        ]
        for total, row in rows
    ]
    how = attribution.separations(results)
    isolated = [reason if len(how) == 1 else f"{pairs}: {reason}" for reason, pairs in how]
    fewer = {attribution.who(total): attribution.fewer_rounds(results, total) for total, _ in rows}
    counts = [f"{pair}, {count}" for pair, count in fewer.items() if count]
    rounds = f" Made of fewer rounds than the loss: {'; '.join(counts)}." if counts else ""
    caption = (
        "What the losses are due to, in percentage points of the rate alone; parts of the same whole add up to it. "
        f"{BETWEEN}{flagged(row for _, row in rows)}. {'; '.join(isolated)}{'. ' * bool(isolated)}"
        f"{source(results)}{rounds}"
    )
    heads = ["Mix", "Part", "Points", *HEADS[4:]]
    return latex.tables("tab:castmates-attribution", caption, heads, "llrrrl", cells)


def _system(results: Results) -> str:
    """The combined throughput of a mix, without a partition."""
    rows = [row for row in system.rows(results) if row["partition"] == UNMANAGED]
    if not rows:
        return ""
    caption = (
        "Combined throughput of the members of a mix without a partition: system throughput (STP), average normalised "
        "turnaround time (ANTT) and unfairness, geometric means over launches with 95 % t intervals between launches; "
        f"n is the number of launches in which every member has a pair{flagged(rows)}. {source(results)}"
    )
    places = [place for place, metric in enumerate(system.COLUMNS) if metric in SYSTEM]
    heads = ["Mix", *(system.COLUMNS[metric][0] for metric in SYSTEM), "n"]
    cells = [
        [plain(row["mix"]), *(_cell(row["cells"][place]) + flag(row) for place in places), str(row["launches"])]
        for row in rows
    ]
    return latex.tables("tab:castmates-system", caption, heads, "l" + "r" * (len(heads) - 1), cells)


def _cell(cell: Row) -> str:
    return f"{cell['text']} {cell['interval']}".strip()


def _controls(results: Results) -> str:
    rows = [health.control(row) for row in records(results.controls)]
    if not rows:
        return ""
    caption = (
        "Controls: rates that must not differ (A/A, negative) or must (positive). Intervals are 95 % t intervals "
        f"between launches unless marked; n is the number of launches. {source(results)}"
    )
    cells = [
        [
            row["control"],
            row["what"],
            row["compared"],
            number(row["ratio"], 3),
            row["interval"],
            str(row["launches"]),
            row["verdict"],
        ]
        for row in rows
    ]
    heads = ["Control", "Of", "Rates", "Ratio", "95 % interval", "n", "Verdict"]
    return latex.tables("tab:castmates-controls", caption, heads, "lllrrrl", cells)


def _numbers(row: Row) -> list[str]:
    few = row["verdict"] == TOO_FEW
    low, high = within(row) if few else (row["loss_low"], row["loss_high"])
    value, between = effect_words(row, low, high)
    shown = "–" if row["verdict"] == NO_DATA else between + few * WITHIN + flag(row)
    return [value, shown, str(row["launches"]), row["verdict"]]


def _method(results: Results, rows: list[dict[str, Any]]) -> str:
    few = any(row["verdict"] == TOO_FEW for row in rows)
    margin = f"±{percent_of(results.margin)}" if results.margin is not None else "the study's margin"
    return (
        BETWEEN
        + (f"; {WITHIN} {FEW}" if few else "")
        + f"{flagged(rows)}. Verdicts are Holm-adjusted over the rows of the same role and baseline; no loss means "
        f"inside {margin}. {source(results)}"
    )


def _ways(row: Row) -> str:
    ways = str(row["lead_ways"])
    return "all" if ways in ("<NA>", "nan", "None") else ways
