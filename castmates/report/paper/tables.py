"""The tables of a paper: effects, what they are due to, the members together, controls. Captions name the platform."""

import math
from collections.abc import Mapping
from typing import Any

from castmates.analysis.effects.system import ANTT, STP, UNFAIRNESS
from castmates.analysis.effects.verdicts import NO_DATA, TOO_FEW
from castmates.analysis.partitions import recommendation as verdicts
from castmates.analysis.partitions.attribution_parts import TOTAL
from castmates.report.paper import latency, methods
from castmates.report.paper.latency import FEW, WITHIN, beside, file_name, flag, flagged, intervals, source
from castmates.report.results import Results, records
from castmates.report.text import attribution, health, system
from castmates.report.text.recommendation import count_of, knee_words, measured_ways
from castmates.report.text.words import Quantity, between, between_with_others, effect, number, percent_of, plain
from castmates.study.spec import UNMANAGED

Row = Mapping[str, Any]


SYSTEM = (STP, ANTT, UNFAIRNESS)  # what fits beside each other; the study's table has more
HEADS = ["Member", "Beside", "Against", "Loss (%)", "95 % interval", "n", "Verdict"]


def paper_tables(results: Results) -> dict[str, str]:
    """Name of the file -> LaTeX."""
    texts = {
        "effects.tex": _effects(results, "lead", "the leads"),
        "antagonists.tex": _effects(results, "antagonist", "the antagonists"),
        "attribution.tex": _attribution(results),
        "system.tex": _system(results),
        **latency.tables(results),
        **tables(results),
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
    return methods.tables(f"tab:castmates-{role}s", caption, HEADS, "lllrrrl", cells)


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
    return methods.tables(f"tab:castmates-{mix.replace('+', '-')}", caption, heads, "lrlrrrl", cells)


def _attribution(results: Results) -> str:
    """What the losses are due to, in points of the rate alone, which add up."""
    rows = [(total, row) for total, parts in attribution.mixes(results) for row in (total, *parts) if row["launches"]]
    if not rows:
        return ""
    cells = [
        [
            attribution.who(total) if row["part"] == TOTAL else "",
            row["part"] if row["part_of"] in ("", TOTAL) else f"– of which {row['part']}",
            *Quantity.of(row, "points").cells(flag(row)),
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
        f"{intervals()}{flagged(row for _, row in rows)}. {'; '.join(isolated)}{'. ' * bool(isolated)}"
        f"{source(results)}{rounds}"
    )
    heads = ["Mix", "Part", "Points", *HEADS[4:]]
    return methods.tables("tab:castmates-attribution", caption, heads, "llrrrl", cells)


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
        [plain(row["mix"]), *(f"{row['cells'][place]}{flag(row)}" for place in places), str(row["launches"])]
        for row in rows
    ]
    return methods.tables("tab:castmates-system", caption, heads, "l" + "r" * (len(heads) - 1), cells)


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
    return methods.tables("tab:castmates-controls", caption, heads, "lllrrrl", cells)


def _numbers(row: Row) -> list[str]:
    few = row["verdict"] == TOO_FEW
    found = effect(row)
    shown = "–" if row["verdict"] == NO_DATA else found.ends + few * WITHIN + flag(row)
    return [found.amount, shown, str(row["launches"]), row["verdict"]]


def _method(results: Results, rows: list[dict[str, Any]]) -> str:
    few = any(row["verdict"] == TOO_FEW for row in rows)
    margin = f"±{percent_of(results.margin)}" if results.margin is not None else "the study's margin"
    return (
        intervals(between(results.effects))
        + (f"; {WITHIN} {FEW}" if few else "")
        + f"{flagged(rows)}. Verdicts are Holm-adjusted over the rows of the same role and baseline; no loss means "
        f"inside {margin}. {source(results)}"
    )


def _ways(row: Row) -> str:
    ways = str(row["lead_ways"])
    return "all" if ways in ("<NA>", "nan", "None") else ways


# The tables of a paper on shares of the cache: a lead's rate with so many ways, its knees, what is recommended.


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
        f"{intervals()}{f'; {WITHIN} {FEW}' if few else ''}. {source(results)}"
    )
    heads = ["Lead", "Beside", "Kind of partition", "Ways", "Rate (%)", "95 % interval", "n"]
    return methods.tables("tab:castmates-sensitivity", caption, heads, "lllrrrr", cells)


def _curve(row: Row) -> list[str]:
    return [plain(row["lead"]), row["antagonists"].replace("+", ", ") or "nothing", row["curve"]]


def _rate(row: Row) -> list[str]:
    few = math.isnan(row["rate_low"])
    rate = Quantity.of(row, "rate_pct", stem="within" if few else "rate")
    return [*rate.cells(WITHIN if few and rate.known else ""), str(row["launches"])]


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
    return methods.tables("tab:castmates-knees", caption, heads, "lllrllr", cells)


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
        f"Others keep: mean rate of the antagonists in per cent of their own alone. "
        f"{intervals(between_with_others(results.effects))}. {source(results)}"
    )
    cells = [line for row in rows for line in _advice(row)]
    heads = ["Mix", "Partition", "Ways", "Estimate", "Loss (%)", "Bound (%)"]
    heads += ["Faster (\N{MULTIPLICATION SIGN})", "Others keep (%)", "n", "Verdict"]
    return methods.tables("tab:castmates-recommendations", caption, heads, "llrlrrrrrl", cells)


def _aim(row: Row) -> str:
    if row["aim"] == verdicts.KNEE:
        return f"at the knee, from which on it keeps {100 - row['limit_pct']:g} % of its speed"
    return f"the smallest that keeps the lead's loss within {row['limit_pct']:g} % (met)"


def _advice(row: Row) -> list[list[str]]:
    if not row["partition"]:
        return [[plain(row["mix"]), *["–"] * 7, str(row["launches"] or "–"), row["verdict"]]]
    ways = f"{row['lead_ways']} of {row['cache_ways']}" if count_of(row["cache_ways"]) > 0 else str(row["lead_ways"])
    waits = f", {verdicts.NOT_YET}" if row["confirmation"] == verdicts.NOT_YET else ""
    lines = [
        [plain(row["mix"]), row["partition"], ways, "search", str(Quantity.of(row, "loss_pct")),
         number(row["bound_pct"]), str(Quantity.of(row, "faster", digits=2)), str(Quantity.of(row, "kept_pct")),
         str(row["launches"]), row["verdict"] + waits]
    ]  # fmt: skip
    if row["confirmed_in"]:
        lines.append(
            ["", "", "", "fresh launches", str(Quantity.of(row, "confirmed_loss_pct")), "–", "–",
             str(Quantity.of(row, "confirmed_kept_pct")), str(row["confirmed_launches"]), row["confirmation"]]
        )  # fmt: skip
    return lines
