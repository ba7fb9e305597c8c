"""The figure `sensitivity`: how fast a lead is with so many ways, alone and beside others; a panel per lead."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType

from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.analysis.partitions.held import UNCERTAIN
from castmates.analysis.partitions.sensitivity import NOT_REACHED
from castmates.report.figures.antagonists import BASELINES, looks, user_first
from castmates.report.figures.interpolated import DOTS, IN_KEY, in_caption, is_interpolated, on_sensitivity
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, ends_of, with_value
from castmates.report.figures.sheet import NOTE, Room, Sheet, drawing, inches_of, lines_across, spread_labels
from castmates.report.figures.style import COLUMN, GREY, INK, PAGE, SMALL, Look, broken, squeezed
from castmates.report.results import Results, records
from castmates.report.text.recommendation import count_of, knee_words
from castmates.report.text.words import Quantity, between, number, plain, units
from castmates.study.masks import popcount
from castmates.study.node_classes import cache_of

FIGURE = {"title": "Sensitivity to its ways", "part": "recommendation", "place": 170, "needs": "PARTITIONS"}
CURVES = 7  # of a panel
ALONE = "alone"
TOP = 108.0  # per cent, at least
BAR, WORDS, MARK = 0.075, 0.13, 0.085  # inches of a knee at the foot, of a line of words there, of a mark before it
LETTERS = 16  # of a line beside the axes
LINES: Sequence[LineStyleType] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))  # kinds of partitions
NO_KNEE = {NOT_REACHED: "not reached", TOO_FEW: TOO_FEW}
Row = dict[str, Any]
Key = tuple[str, str]  # antagonists, curve
ROOM = Room(axes=1.75, above=0.2, below=0.34, left=0.52, right=0.98)


@dataclass(frozen=True)
class Panel:
    """One lead, and some of its curves."""

    title: str
    curves: dict[Key, list[Row]]
    knees: dict[Key, Row]
    ways: int | None  # of the cache
    way_bytes: float

    @property
    def rows(self) -> list[Row]:
        """The points of all curves."""
        return [row for rows in self.curves.values() for row in rows]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data, with the knee of each point's curve."""
    points, knees = on_sensitivity(results.sensitivity, results), results.knees
    keys = ["mix", "member", "curve", "platform"]
    source = points.merge(knees[[*keys, "kept_pct", "knee", "knee_low", "knee_high", "verdict"]], on=keys, how="left")
    if "source" in source:
        source["source"] = source.pop("source")  # at the end
    return drawing(
        results, source, lacking, lambda: _figure(_panels(results, records(points), records(knees)), results)
    )


def lacking(results: Results) -> str:
    if len(results.sensitivity):
        return ""
    return f"No loss over a lead's ways is known in the study {results.name}."


def _panels(results: Results, points: list[Row], knees: list[Row]) -> list[Panel]:
    """Curves with several points, a panel for each lead; what has one point only is drawn where there is no other."""
    by_lead: dict[tuple[str, str], dict[Key, list[Row]]] = {}
    for row in points:
        of_lead = by_lead.setdefault((row["lead"], row["platform"]), {})
        of_lead.setdefault((row["antagonists"], row["curve"]), []).append(row)
    ends = {(row["lead"], row["platform"], row["antagonists"], row["curve"]): row for row in knees}
    platforms = {platform for _, platform in by_lead}
    panels = []
    order = user_first(results, [lead for lead, _ in by_lead])
    for (lead, platform), every in sorted(by_lead.items(), key=lambda one: order.index(one[0][0])):
        cache = cache_of(results.plan, next(iter(every.values()))[0]["machine"])
        ways, way_bytes = (popcount(cache.usable) or None, cache.way_bytes or math.nan) if cache else (None, math.nan)
        curves = {key: rows for key, rows in every.items() if len(rows) > 1} or every
        keys = sorted(curves)
        parts = [keys[begin : begin + CURVES] for begin in range(0, len(keys), CURVES)]
        for count, part in enumerate(parts, start=1):
            title = plain(lead) + (f" ({platform})" if len(platforms) > 1 else "")
            title += f", {count} of {len(parts)}" if len(parts) > 1 else ""
            own = {key: sorted(curves[key], key=lambda row: float(row["lead_ways"])) for key in part}
            known = {key: ends[lead, platform, *key] for key in part if (lead, platform, *key) in ends}
            panels.append(Panel(title, own, known, ways, way_bytes))
    return panels


def _figure(panels: list[Panel], results: Results) -> Figure:
    sheet = Sheet(results, COLUMN if len(panels) == 1 else PAGE)
    names = sorted({antagonists for panel in panels for antagonists, _ in panel.curves if antagonists})
    by_name = looks(results, names) | {"": BASELINES[ALONE]}
    for axes, panel in zip(sheet.grid([broken(panel.title, 40) for panel in panels], ROOM), panels, strict=False):
        _panel(axes, panel, by_name)
    above = "" if all(math.isnan(panel.way_bytes) for panel in panels) else " (above: MiB in one cache)"
    sheet.labels(f"ways of the lead{above}", "rate, % of alone with all ways")
    return sheet.finish(_key(panels, _between(results)))


def _between(results: Results) -> str:
    return between(results.lead_effects("alone", under_partitions=True))


def _key(panels: list[Panel], level: str) -> str:
    rows = [row for panel in panels for row in panel.rows]
    parts = [f"bars: 95 % {level}"] if any(not ends_of(row, "rate")[2] for row in rows) else []
    parts += ["dashed bars: within launch only"] if any(ends_of(row, "rate")[2] for row in rows) else []
    if knees := [row for panel in panels for row in panel.knees.values()]:
        kept = number(knees[0]["kept_pct"], 0)
        parts.append(f"at the foot: the knee, from which on {kept} % (dotted) are kept, and its 95 % interval")
    parts += [IN_KEY] if any(map(is_interpolated, rows)) else []
    shared = any(count_of(row["shared_ways"]) > 0 for row in rows)
    parts += ["rings: some of these ways are filled by I/O too"] if shared else []
    joined = any(row.get("held") == UNCERTAIN for row in rows)
    parts += ["where a mask has only some of I/O's ways, the processor may add the others"] if joined else []
    parts += ["≈: the axis does not begin at zero"] if any(bottom(panel) for panel in panels) else []
    return "; ".join(parts)


def caption(results: Results) -> str:
    launches = units(results.sensitivity["launches"])
    return (
        "How fast each lead is with so many ways of the cache, in per cent of its rate alone with all of them: "
        "alone, and beside antagonists that have other ways. Bars: 95 % t intervals "
        f"{_between(results)} ({launches}). The knee: the fewest ways from which on 95 % are kept. "
        + in_caption(on_sensitivity(results.sensitivity, results), "Dotted bars")
    )


def alternative(results: Results) -> str:
    """The curves' ends and knees in words."""
    knees = records(results.knees)
    points = records(results.sensitivity)
    if not points:
        return lacking(results)
    parts = []
    for row in [knee for knee in knees if knee["fewest_ways"] != knee["most_ways"]][:12]:
        own = [point for point in points if point["mix"] == row["mix"] and point["curve"] == row["curve"]]
        first, last = (end(own, key=lambda point: point["lead_ways"]) for end in (min, max))
        beside = f"beside {plain(row['antagonists'])}" if row["antagonists"] else ALONE
        values = (
            f"{Quantity.of(point, 'rate_pct', '%').whole} with {point['lead_ways']} ways" for point in (first, last)
        )
        parts.append(f"{plain(row['lead'])} {beside}: {', '.join(values)}; knee {knee_words(row)}")
    return f"Rates over ways. {'. '.join(parts)}."


def label_of(key: Key, keys: Iterable[Key]) -> str:
    """`beside stream`; with the kind of partition where there are several."""
    antagonists, curve = key
    name = f"beside {plain(antagonists)}" if antagonists else ALONE
    several = sum(other[0] == antagonists for other in keys) > 1
    return f"{name}, {curve}" if several else name


def _panel(axes: Axes, panel: Panel, by_name: dict[str, Look]) -> None:
    """Draw a lead's curves: a line is whole for the first kind of partition of an antagonist, broken for others."""
    knees = [(by_name[key[0]], panel.knees[key]) for key in panel.curves if key in panel.knees]
    low, foot = bottom(panel), _foot_inches(knees)
    ends = [ends_of(row, "rate")[1] for row in panel.rows]
    top = max([TOP, *(end + 3 for end in ends if not math.isnan(end))])
    unit = (top - low) / (inches_of(axes)[1] - foot * (low > 0))  # per cent of an inch
    axes.set_ylim(low - foot * unit * (low > 0), top)
    kept = next((row["kept_pct"] for row in panel.knees.values()), 95.0)
    for level, style in ((100, "-"), (kept, (0, (1, 2)))):
        axes.axhline(level, color=GREY, linewidth=0.6, linestyle=style, zorder=1)
    most = max([*(row["lead_ways"] for row in panel.rows), *([panel.ways] if panel.ways else [])])
    axes.set_xlim(min(row["lead_ways"] for row in panel.rows) - 0.6, most + 0.6)
    room = max(1, int(inches_of(axes)[1] / NOTE / len(panel.curves)))
    labels, kinds = [], dict.fromkeys(by_name, 0)
    for place, (key, points) in enumerate(panel.curves.items()):
        look, line = by_name[key[0]], LINES[kinds[key[0]] % len(LINES)]
        kinds[key[0]] += 1
        _curve(axes, points, look, line, (place - (len(panel.curves) - 1) / 2) * 0.07)
        labels.append((points[-1]["rate_pct"], squeezed(label_of(key, panel.curves), LETTERS, room), look[0]))
    _foot(axes, knees, unit, panel.ways)
    _ticks(axes, panel, most, low)
    spread_labels(axes, labels)
    if low > 0:
        axes.text(
            0.0, 0.0, "≈", transform=axes.transAxes, ha="center", va="center", fontsize=9, color=INK, rotation=90,
            bbox={"boxstyle": "square,pad=0.02", "facecolor": "white", "edgecolor": "none"}, clip_on=False,
        )  # fmt: skip


def bottom(panel: Panel) -> float:
    """Zero, unless everything lies far above it: then the axis is broken, and marked."""
    lows = [value for row in panel.rows for value in (ends_of(row, "rate")[0], row["rate_pct"])]
    least = min(low for low in lows if not math.isnan(low))
    return 10.0 * math.floor((least - 5) / 10) if least > 55 else 0.0


def _curve(axes: Axes, points: list[Row], look: Look, line: LineStyleType, shift: float) -> None:
    colour, marker = look
    xs, ys = [row["lead_ways"] + shift for row in points], [row["rate_pct"] for row in points]
    axes.plot(xs, ys, color=colour, linewidth=0.8, linestyle=line, zorder=2)
    for x, row in zip(xs, points, strict=True):
        low, high, within = ends_of(row, "rate")
        style = DOTS if is_interpolated(row) else WITHIN_LAUNCH if within else "-"
        bar(axes, x, low, high, colour, line=style, upright=True)
        if count_of(row["shared_ways"]) > 0:  # something else than the lead fills some of these ways too
            axes.scatter(x, row["rate_pct"], s=30, facecolors="none", edgecolors=colour, linewidths=0.6, zorder=4)
    faces = ["white" if is_interpolated(row) else colour for row in points]
    marks = axes.scatter(xs, ys, s=9, marker=marker, c=faces, edgecolors=colour, linewidths=0.6, zorder=4)
    with_value(marks, *map(_value, points))


def _value(row: Row) -> str:
    who = f"beside {plain(row['antagonists'])}" if row["antagonists"] else ALONE
    how = " (interpolated)" if is_interpolated(row) else ""
    return f"{who}, {row['lead_ways']} ways: {Quantity(row['rate_pct'], *ends_of(row, 'rate')[:2], '%')}{how}"


def _foot_inches(knees: list[tuple[Look, Row]]) -> float:
    unknown = [row["verdict"] for _, row in knees if math.isnan(count_of(row["knee_low"]))]
    return BAR * (len(knees) - len(unknown)) + WORDS * len(set(unknown)) + 0.04


def _foot(axes: Axes, knees: list[tuple[Look, Row]], unit: float, ways: int | None) -> None:
    """From below: a bar for each knee that is known, then a line for all those that are not, for each reason."""
    y, unknown = axes.get_ylim()[0], [pair for pair in knees if math.isnan(count_of(pair[1]["knee_low"]))]
    for (colour, _), row in (pair for pair in knees if pair not in unknown):
        y += BAR * unit
        _knee(axes, row, y - 0.25 * BAR * unit, colour, ways)
    inch, across = 1 / inches_of(axes)[0], axes.get_yaxis_transform()
    for verdict, words in NO_KNEE.items():
        marks = [look for look, row in unknown if row["verdict"] == verdict]
        if marks:
            y += WORDS * unit
            middle, x = y - 0.4 * WORDS * unit, 0.11 * inch
            for colour, marker in marks:
                axes.scatter(x, middle, s=9, marker=marker, c=colour, linewidths=0, transform=across, zorder=4)
                x += MARK * inch
            axes.text(x, middle, words, transform=across, fontsize=SMALL, color=GREY, va="center", ha="left")


def _knee(axes: Axes, row: Row, y: float, colour: str, ways: int | None) -> None:
    """A bar from the lower to the upper end; an arrow where there is no upper one."""
    low, high, knee = (count_of(row[name]) for name in ("knee_low", "knee_high", "knee"))
    end = float(ways or row["most_ways"]) + 0.5 if math.isnan(high) else high
    bar(axes, y, low, end, colour, width=1.0)
    for x, marker in ((low, "|"), (end, ">" if math.isnan(high) else "|")):
        axes.scatter([x], [y], s=16, marker=marker, c=colour, linewidths=1.0, zorder=3, clip_on=False)
    if not math.isnan(knee):
        axes.scatter([knee], [y], s=14, marker="D", c="white", edgecolors=colour, linewidths=0.9, zorder=4)


def _ticks(axes: Axes, panel: Panel, most: int, low: float) -> None:
    step = max(1, math.ceil(most / 8))
    ticks = [ways for ways in range(0, most + 1, step) if ways >= axes.get_xlim()[0]]
    axes.set_xticks(ticks)
    axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= axes.get_ylim()[1]])
    lines_across(axes, "y")
    if math.isnan(panel.way_bytes):
        return
    top = axes.secondary_xaxis("top")
    top.set_xticks(ticks, [f"{ways * panel.way_bytes / 2**20:.3g}" for ways in ticks])
    top.tick_params(labelsize=6.5, length=2, pad=1)
    top.spines["top"].set_linewidth(0.4)
