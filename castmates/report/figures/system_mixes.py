"""The figure `system_mixes`: STP and ANTT of every random mix, pair or mix of a group, sorted, with their means."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from castmates.analysis.effects.system import ANTT, STP
from castmates.report.figures.antagonists import other_looks
from castmates.report.figures.marks import bar, with_value
from castmates.report.figures.sheet import Room, Sheet, drawing, lines_across
from castmates.report.figures.style import GREY, SMALL, Look
from castmates.report.results import Results, records
from castmates.report.text.over_mixes import sentences
from castmates.report.text.words import Quantity, counted, plain, units
from castmates.study.class_names import without_class
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Combined throughput of many mixes", "part": "losses", "place": 50, "needs": "SETS"}
ROOM = Room(axes=2.1, above=0.14, below=0.46, left=0.55, right=0.1)
SHOWN = (STP, ANTT)
TITLES = {"random": "Random mixes", "pairs": "All pairs", "groups": "Pairs in groups"}
BETWEEN = 1.0  # mixes of one size and of the next, in mixes
FEW = 30  # points, up to which each has a large mark
Means = dict[int, dict[str, object]]  # by number of antagonists
Panel = tuple[str, pd.DataFrame, Means]  # of a metric of a set on a platform: title, sorted mixes, means over mixes


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    source = sorted_mixes(results)
    return drawing(results, source, lacking, lambda: _figure(list(_panels(results, source)), results))


def lacking(results: Results) -> str:
    known = sorted_mixes(results)["value"].notna().any()
    return "" if known else f"No random mix, pair or group has a whole launch in the study {results.name}."


def caption(results: Results) -> str:
    source = sorted_mixes(results)
    means = results.system_over_mixes
    drawn = bool(means["all_value"].notna().any())
    of = units(source["launches"])
    known = source["low"].notna().any()
    marks = (
        f"Marks: 95 % t intervals between launches ({of}). " if known else f"Too few launches for intervals ({of}). "
    )
    whose = "all mixes that could have been drawn" if drawn else "these mixes"
    band = f"Lines: the mean over {whose}; bands: its 95 % intervals. " if means["low"].notna().any() else ""
    return f"Every mix, sorted among those with as many antagonists. {marks}{band}"


def alternative(results: Results) -> str:
    return " ".join(sentences(results)) or lacking(results)


def sorted_mixes(results: Results) -> pd.DataFrame:
    """A row per set, mix and metric without a partition, in the order in which they stand."""
    table = results.system
    rows = table[(table["partition"] == UNMANAGED) & table["metric"].isin(SHOWN)]
    names = rows["mix"].astype(str).map(without_class)
    parts = [
        rows[names.isin(each.mixes)].assign(set=each.name, antagonists=lambda own: own["members"] - 1)
        for each in results.plan.sets
    ]
    if not parts:
        return rows.iloc[:0].assign(set="", neighbours=0)
    keys = ["set", "platform", "metric", "antagonists", "value"]
    return pd.concat(parts, ignore_index=True).sort_values(keys, ascending=[True, True, False, True, True])


def _panels(results: Results, source: pd.DataFrame) -> Iterator[Panel]:
    means = results.system_over_mixes
    means = means[(means["partition"] == UNMANAGED) & means["antagonists"].notna()]
    classes = source["mix"].astype(str).map({mix.name: mix.machine for mix in results.plan.mixes})
    platforms = source["platform"].nunique()
    for (name, platform, machine), part in source.groupby([source["set"], source["platform"], classes], sort=False):
        where = [str(word) for word in (machine, platform if platforms > 1 else "") if word]
        beside = f" ({', '.join(where)})" if where else ""
        of_set = means[(means["set"] == name) & (means["platform"] == platform) & (means["machine"] == machine)]
        for metric in SHOWN:
            own = part[(part["metric"] == metric) & part["value"].notna()]
            known = {int(row["antagonists"]): row for row in records(of_set[of_set["metric"] == metric])}
            if len(own):
                yield f"{TITLES[str(name)]}: {metric}{beside}", own, known


def _figure(panels: Sequence[Panel], results: Results) -> Figure:
    sizes = sorted({int(size) for _, mixes, _ in panels for size in mixes["antagonists"]})
    looks = other_looks(results, [f"{size} antagonists" for size in sizes])
    sheet = Sheet(results)
    for axes, (_, mixes, means) in zip(sheet.grid([title for title, *_ in panels], ROOM), panels, strict=False):
        _panel(axes, mixes, means, dict(zip(sizes, looks.values(), strict=True)))
    sheet.labels("mixes, sorted by the metric", "")
    return sheet.finish("a mark is a mix; lines and bands: means over mixes, with 95 % intervals")


def _panel(axes: Axes, mixes: pd.DataFrame, means: Means, looks: dict[int, Look]) -> None:
    at, middles, area = 0.0, [], 16 if len(mixes) <= FEW else 8
    for size, rows in mixes.groupby("antagonists", sort=True):
        count, (colour, marker) = int(str(size)), looks[int(str(size))]
        places, found = [at + place for place in range(len(rows))], records(rows)
        for x, row in zip(places, found, strict=True):
            bar(axes, x, row["low"], row["high"], colour, width=0.7, upright=True)
        marks = axes.scatter(places, rows["value"], s=area, marker=marker, color=colour, linewidths=0, zorder=4)
        with_value(marks, *(f"{plain(row['mix'])}: {row['metric']} {_number(row, '')}" for row in found))
        if mean := means.get(count):
            _mean(axes, [places[0] - 0.5, places[-1] + 0.5], mean, colour)
        middles.append((sum(places) / len(places), counted(count, "antagonist")))
        at = places[-1] + 1 + BETWEEN
    axes.set_xlim(-1, at - BETWEEN)
    axes.set_xticks([middle for middle, _ in middles], [words for _, words in middles], fontsize=SMALL)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", length=0)
    axes.axhline(1.0, color=GREY, linewidth=0.6, zorder=1)
    lines_across(axes, "y")


def _mean(axes: Axes, ends: list[float], mean: dict[str, object], colour: str) -> None:
    """The mean over all mixes like these or, where these are all, over these; and its interval."""
    prefix = "" if math.isnan(float(str(mean["all_value"]))) else "all_"
    value, low, high = (float(str(mean[f"{prefix}{end}"])) for end in ("value", "low", "high"))
    (line,) = axes.plot(ends, [value, value], color=colour, linewidth=0.9, zorder=2)
    with_value(line, f"mean: {_number(mean, prefix)}")
    if not math.isnan(low):
        axes.fill_between(ends, low, high, color=colour, alpha=0.2, linewidth=0, zorder=1)


def _number(row: dict[str, object], prefix: str) -> str:
    value, low, high = (float(str(row[f"{prefix}{end}"])) for end in ("value", "low", "high"))
    return str(Quantity(value, low, high, digits=2))
