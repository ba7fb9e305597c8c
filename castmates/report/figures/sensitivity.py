"""The figure `sensitivity`: how fast a lead is with so many ways, alone and beside others; a panel per lead."""

import math

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.partitions.held import UNCERTAIN
from castmates.report.figures.antagonists import user_first
from castmates.report.figures.interpolated import IN_KEY, in_caption, is_interpolated, on_sensitivity
from castmates.report.figures.panels import Grid, drawing, drawn_grid
from castmates.report.figures.sensitivity_axes import (
    ALONE,
    Key,
    Panel,
    Row,
    bottom,
    ends_of,
    is_shared,
    looks_by_panel,
    paint,
)
from castmates.report.figures.style import COLUMN, broken
from castmates.report.results import Results, records
from castmates.report.text.recommendation import knee_words
from castmates.report.text.words import interval, number, plain, units
from castmates.study.class_caches import cache_of
from castmates.study.masks import popcount

FIGURE = {"title": "Sensitivity to its ways", "part": "recommendation", "place": 170, "needs": "PARTITIONS"}
CURVES = 7  # of a panel


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
    """Why there is nothing to show."""
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
    grid = drawn_grid(
        [broken(panel.title, 40) for panel in panels],
        key=_key(panels),
        results=results,
        room=Grid(width=COLUMN, axes=1.75, above=0.2, below=0.34, left=0.52, right=0.98),
    )
    for axes, panel, looks in zip(grid.places, panels, looks_by_panel(panels, results), strict=False):
        paint(axes, panel, looks)
    grid.labels(f"ways of the lead{_mask(panels)}", "rate, % of alone with all ways")
    return grid.figure


def _mask(panels: list[Panel]) -> str:
    return "" if all(math.isnan(panel.way_bytes) for panel in panels) else " (above: MiB in one cache)"


def _key(panels: list[Panel]) -> str:
    rows = [row for panel in panels for points in panel.curves.values() for row in points]
    parts = ["bars: 95 % between launches"] if any(not ends_of(row)[2] for row in rows) else []
    parts += ["dashed bars: within launch only"] if any(ends_of(row)[2] for row in rows) else []
    knees = [row for panel in panels for row in panel.knees.values()]
    if knees:
        parts.append(
            f"at the foot: the knee, from which on {number(knees[0]['kept_pct'], 0)} % (dotted) are kept, and its 95 % "
            "interval"
        )
    parts += [IN_KEY] if any(map(is_interpolated, rows)) else []
    parts += ["rings: some of these ways are filled by I/O too"] if any(map(is_shared, rows)) else []
    joined = any(row.get("held") == UNCERTAIN for row in rows)
    parts += ["where a mask has only some of I/O's ways, the processor may add the others"] if joined else []
    parts += ["≈: the axis does not begin at zero"] if any(bottom(panel) for panel in panels) else []
    return "; ".join(parts)


def caption(results: Results) -> str:
    """What is shown, with the method of its intervals."""
    launches = units(results.sensitivity["launches"])
    return (
        "How fast each lead is with so many ways of the cache, in per cent of its rate alone with all of them: "
        "alone, and beside antagonists that have other ways. Bars: 95 % t intervals between launches "
        f"({launches}). The knee: the fewest ways from which on 95 % are kept. "
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
            f"{number(point['rate_pct'])} % {interval(point['rate_low'], point['rate_high'])} with "
            f"{point['lead_ways']} ways"
            for point in (first, last)
        )
        parts.append(f"{plain(row['lead'])} {beside}: {', '.join(values)}; knee {knee_words(row)}")
    return f"Rates over ways. {'. '.join(parts)}."
