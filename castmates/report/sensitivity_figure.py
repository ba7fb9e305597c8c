"""The figure `sensitivity`: how fast a lead is with so many ways, alone and beside others; a panel per lead."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from castmates.analysis.sensitivity import NOT_REACHED, TOO_FEW
from castmates.report.panels import Grid, drawn_grid, spread_labels
from castmates.report.read import Results, records
from castmates.report.recommendation import count_of, knee_words
from castmates.report.stamps import caveat
from castmates.report.style import COLOURS, COLUMN, GREY, INK, MARKERS, broken, empty_figure, plain, stamp, styled
from castmates.report.words import counted, interval, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = 7  # of a panel
ALONE = "alone"
Row = dict[str, Any]
Key = tuple[str, str]  # antagonists, curve


@dataclass(frozen=True)
class Panel:
    """One lead, and some of its curves."""

    title: str
    curves: dict[Key, list[Row]]
    knees: dict[Key, Row]
    ways: int | None  # of the cache
    way_bytes: float


def draw(results: Results) -> "tuple[Figure, pd.DataFrame]":
    """The figure and its source data, with the knee of each point's curve."""
    points, knees = results.sensitivity_curves, results.knees
    keys = ["mix", "member", "curve", "platform"]
    source = points.merge(knees[[*keys, "kept_pct", "knee", "knee_low", "knee_high", "verdict"]], on=keys, how="left")
    with styled():
        panels = _panels(results, records(points), records(knees))
        if not panels:
            message = f"No curve over the lead's ways is known in the study {results.name}."
            return empty_figure(message, caveat(results)), source
        return _figure(panels, results), source


def _panels(results: Results, points: list[Row], knees: list[Row]) -> list[Panel]:
    """Curves with several points, a panel for each lead; what has one point only is drawn where there is no other."""
    found: dict[tuple[str, str], dict[Key, list[Row]]] = {}
    for row in points:
        of_lead = found.setdefault((row["lead"], row["platform"]), {})
        of_lead.setdefault((row["antagonists"], row["curve"]), []).append(row)
    cache = results.plan.get("cache") or {}
    ends = {(row["lead"], row["platform"], row["antagonists"], row["curve"]): row for row in knees}
    platforms = {platform for _, platform in found}
    panels = []
    for (lead, platform), every in found.items():
        curves = {key: rows for key, rows in every.items() if len(rows) > 1} or every
        keys = sorted(curves)
        parts = [keys[begin : begin + CURVES] for begin in range(0, len(keys), CURVES)]
        for count, part in enumerate(parts, start=1):
            title = plain(lead) + (f" ({platform})" if len(platforms) > 1 else "")
            title += f", {count} of {len(parts)}" if len(parts) > 1 else ""
            own = {key: sorted(curves[key], key=lambda row: float(row["lead_ways"])) for key in part}
            known = {key: ends[lead, platform, *key] for key in part if (lead, platform, *key) in ends}
            panels.append(Panel(title, own, known, cache.get("ways"), float(cache.get("way_bytes") or math.nan)))
    return panels


def label_of(key: Key, keys: "list[Key]") -> str:
    """`beside stream`; with the kind of partition where there are several."""
    antagonists, curve = key
    name = f"beside {plain(antagonists)}" if antagonists else ALONE
    several = sum(one[0] == antagonists for one in keys) > 1
    return f"{name}, {curve}" if several else name


def _figure(panels: list[Panel], results: Results) -> "Figure":
    names = {key for panel in panels for key in panel.curves}
    looks = {key: place for place, key in enumerate(sorted(names))}
    grid = drawn_grid(
        [broken(panel.title, 40) for panel in panels],
        notes=_key(panels, results),
        caveat=caveat(results),
        room=Grid(width=COLUMN, axes=1.75, above=0.36, below=0.34, left=0.52, right=0.98),
    )
    for axes, panel in zip(grid.places, panels, strict=False):
        _panel(axes, panel, looks)
    grid.labels(f"ways of the lead{_mask(panels)}", "rate, % of solo with all ways")
    return grid.figure


def _panel(axes: "Axes", panel: Panel, looks: dict[Key, int]) -> None:
    low = _bottom(panel)
    rows = [row for rows in panel.curves.values() for row in rows]
    room = 0.06 * (108 - low)  # of one knee
    axes.set_ylim(low - room * (len(panel.knees) + 0.5) * (low > 0), 108)
    axes.axhline(100, color=GREY, linewidth=0.6, zorder=1)
    kept = next((row["kept_pct"] for row in panel.knees.values()), 95.0)
    axes.axhline(kept, color=GREY, linewidth=0.6, linestyle=(0, (1, 2)), zorder=1)
    most = max([*(row["lead_ways"] for row in rows), *([panel.ways] if panel.ways else [])])
    axes.set_xlim(min(row["lead_ways"] for row in rows) - 0.6, most + 0.6)
    begin = axes.get_ylim()[0]
    for place, (key, points) in enumerate(panel.curves.items()):
        look = looks[key]
        colour = INK if not key[0] else COLOURS[look % len(COLOURS)]
        _curve(axes, points, colour, MARKERS[look % len(MARKERS)], (place - (len(panel.curves) - 1) / 2) * 0.07)
        if key in panel.knees:
            _knee(axes, panel.knees[key], begin + room * (place + 0.7), colour, panel.ways)
    _ticks(axes, panel, most)
    keys = list(panel.curves)
    names = {key: broken(label_of(key, keys), 17) for key in keys}
    spread_labels(axes, [(panel.curves[key][-1]["rate_pct"], names[key], _colour(key, looks)) for key in keys])
    if low > 0:
        axes.text(
            0.0, 0.0, "≈", transform=axes.transAxes, ha="center", va="center", fontsize=9, color=INK, rotation=90,
            bbox={"boxstyle": "square,pad=0.02", "facecolor": "white", "edgecolor": "none"}, clip_on=False,
        )  # fmt: skip


def _colour(key: Key, looks: dict[Key, int]) -> str:
    return INK if not key[0] else COLOURS[looks[key] % len(COLOURS)]


def _bottom(panel: Panel) -> float:
    """Zero, unless everything lies far above it: then the axis is broken, and says so."""
    lows = [_ends(row)[0] for rows in panel.curves.values() for row in rows]
    lows += [row["rate_pct"] for rows in panel.curves.values() for row in rows]
    least = min(one for one in lows if not math.isnan(one))
    return 10.0 * math.floor((least - 5) / 10) if least > 55 else 0.0


def _ends(row: Row) -> tuple[float, float, bool]:
    """The interval to draw, and whether it speaks of these launches only."""
    within = math.isnan(row["rate_low"])
    return (row["within_low"], row["within_high"], True) if within else (row["rate_low"], row["rate_high"], False)


def _curve(axes: "Axes", points: list[Row], colour: str, marker: str, shift: float) -> None:
    xs, ys = [row["lead_ways"] + shift for row in points], [row["rate_pct"] for row in points]
    axes.plot(xs, ys, color=colour, linewidth=0.8, zorder=2)
    for x, row in zip(xs, points, strict=True):
        low, high, within = _ends(row)
        if not math.isnan(low):
            axes.plot(
                [x, x], [low, high], color=colour, linewidth=1.2, linestyle=(0, (2, 1.2)) if within else "-", zorder=3
            )
    axes.scatter(xs, ys, s=9, marker=marker, c=colour, linewidths=0, zorder=4)
    shared = [(x, y) for x, y, row in zip(xs, ys, points, strict=True) if _shared(row)]
    if shared:
        axes.scatter(
            [x for x, _ in shared],
            [y for _, y in shared],
            s=30,
            facecolors="none",
            edgecolors=colour,
            linewidths=0.6,
            zorder=4,
        )


def _shared(row: Row) -> bool:
    return count_of(row["shared_ways"]) > 0


def _knee(axes: "Axes", row: Row, y: float, colour: str, ways: int | None) -> None:
    """A bar at the foot of the panel from the lower to the upper end; an arrow where there is none."""
    low, high, knee = (count_of(row[name]) for name in ("knee_low", "knee_high", "knee"))
    if math.isnan(low):
        text = {NOT_REACHED: "not reached", TOO_FEW: "too few launches"}[row["verdict"]]
        axes.text(axes.get_xlim()[0], y, f" {text}", fontsize=6.5, color=colour, va="center", ha="left")
        return
    end = high if not math.isnan(high) else float(ways or row["most_ways"]) + 0.5
    axes.plot([low, end], [y, y], color=colour, linewidth=1.0, zorder=3)
    axes.scatter([low], [y], s=16, marker="|", c=colour, linewidths=1.0, zorder=3)
    marker = "|" if not math.isnan(high) else ">"
    axes.scatter([end], [y], s=16, marker=marker, c=colour, linewidths=1.0, zorder=3, clip_on=False)
    if not math.isnan(knee):
        axes.scatter([knee], [y], s=14, marker="D", c="white", edgecolors=colour, linewidths=0.9, zorder=4)


def _ticks(axes: "Axes", panel: Panel, most: int) -> None:
    step = max(1, math.ceil(most / 8))
    ticks = [ways for ways in range(0, most + 1, step) if ways >= axes.get_xlim()[0]]
    axes.set_xticks(ticks)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    if math.isnan(panel.way_bytes):
        return
    top = axes.secondary_xaxis("top")
    top.set_xticks(ticks, [f"{ways * panel.way_bytes / 2**20:.3g}" for ways in ticks])
    top.tick_params(labelsize=6.5, length=2, pad=1)
    top.spines["top"].set_linewidth(0.4)


def _mask(panels: list[Panel]) -> str:
    return "" if math.isnan(panels[0].way_bytes) else " (above: MiB in one cache)"


def _key(panels: list[Panel], results: Results) -> str:
    rows = [row for panel in panels for points in panel.curves.values() for row in points]
    parts = ["bars: 95 % between launches"] if any(not _ends(row)[2] for row in rows) else []
    parts += ["dashed bars: within launch only"] if any(_ends(row)[2] for row in rows) else []
    knees = [row for panel in panels for row in panel.knees.values()]
    if knees:
        parts.append(
            f"at the foot: the knee, from which on {number(knees[0]['kept_pct'], 0)} % (dotted) are kept, and its 95 % "
            "interval"
        )
    parts += ["rings: some of these ways are filled by I/O too"] if any(map(_shared, rows)) else []
    parts += ["≈: the axis does not begin at zero"] if any(_bottom(panel) for panel in panels) else []
    return f"{'; '.join(parts)} · {stamp(results.platforms, results.name)}"


def caption(results: Results) -> str:
    """What is shown, with the method of its intervals."""
    blocks = results.sensitivity_curves["blocks"]
    few, many = (int(blocks.min()), int(blocks.max())) if len(blocks) else (0, 0)
    launches = counted(many, "launch") if few == many else f"{few} to {counted(many, 'launch')}"
    return (
        "Rate of each lead, in per cent of its solo rate with all ways, over the ways that a partition gives it: "
        "alone, and beside its antagonists, who have other ways. Bars are 95 % t intervals between launches "
        f"({launches}); dashed ones speak of these launches only. The knee is the "
        "smallest measured number of ways from which on 95 % of the solo rate are kept; its 95 % interval inverts "
        "one-sided t-tests in a fixed order. Partitions that are alone in their kind are in the CSV. "
    )


def alternative(results: Results) -> str:
    """The curves' ends and knees in words."""
    knees = records(results.knees)
    points = records(results.sensitivity_curves)
    if not points:
        return "No curve over the lead's ways is known."
    parts = []
    for row in [one for one in knees if one["fewest_ways"] != one["most_ways"]][:12]:
        own = [one for one in points if one["mix"] == row["mix"] and one["curve"] == row["curve"]]
        first, last = (end(own, key=lambda one: one["lead_ways"]) for end in (min, max))
        beside = f"beside {plain(row['antagonists'])}" if row["antagonists"] else ALONE
        values = (
            f"{number(one['rate_pct'])} % {interval(one['rate_low'], one['rate_high'])} with {one['lead_ways']} ways"
            for one in (first, last)
        )
        parts.append(f"{plain(row['lead'])} {beside}: {', '.join(values)}; knee {knee_words(row)}")
    return f"Rates over ways. {'. '.join(parts)}."
