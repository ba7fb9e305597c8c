"""The figure `partitions`: what each lead loses under partitions, against the ways that it has; a panel per mix."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures.antagonists import BASELINES, other_looks, user_first
from castmates.report.figures.interpolated import (
    DOTS,
    IN_KEY,
    in_caption,
    is_interpolated,
    read_aloud,
    with_interpolated,
)
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, legend_key, with_value
from castmates.report.figures.sheet import Sheet, drawing, lines_across
from castmates.report.figures.style import ALARM, COLUMN, GREY, PAGE, SMALL, Look, broken
from castmates.report.results import Results, records
from castmates.report.text.words import READ_ALOUD, Quantity, as_loss, between, number, plain, units
from castmates.study.node_classes import cache_of
from castmates.study.partitions.partitions import curve_names
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Under partitions", "part": "recommendation", "place": 150, "needs": "PARTITIONS"}
PANELS = 12
TICK = 20  # letters of a line beside the axis
OWN = "own share, alone"
OWN_BESIDE_PLACEBOS = "own share, beside placebos"
ALL_WAYS = "the lead has all ways"
WITHOUT = "without a partition"
GREYS = {OWN: BASELINES["alone"], OWN_BESIDE_PLACEBOS: BASELINES["placebo"]}
DASHES = (0, (3, 2))  # of the lead's own share
PLACEBO_AT_MASK = "placebo@mask"
DERIVED = "alone, derived from placebo@mask"
SHOWN = ["study", "mix", "lead", "antagonists", "member", "partition", "lead_ways", "series", "baseline"]
SHOWN += ["loss_pct", "low", "high", "within_launch", "launches", "verdict", "platform"]
Row = dict[str, Any]
Panel = tuple[str, list[Row]]  # of a mix on one platform: title, and rows with the lead's own share
OF_LOSS = "#f1dcda"  # the band of what is lost without a partition
LEFT, HIGH, GAP = 0.62, 1.35, 0.2  # inches


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    source = losses(results)
    shown = source[[*SHOWN, *(name for name in ("source",) if name in source)]]
    return drawing(results, shown, lacking, lambda: _figure(_panels(source, results), results))


def lacking(results: Results) -> str:
    source = losses(results)
    known = source["loss_pct"].notna() & (source["partition"] != UNMANAGED)
    return "" if known.any() else f"No loss under a partition is known in the study {results.name}."


def caption(results: Results) -> str:
    rows = losses(results)
    of = units(rows["launches"])
    return (
        "What each lead loses against running alone, in per cent, over the ways of the last-level cache that a "
        "partition gives it; one panel a mix. Red: without a partition. Bars and bands: 95 % t intervals "
        f"{between(rows)} ({of}). Own share: with no more ways, and nothing else in the cache. "
        + in_caption(rows, "Dotted bars")
    )


def alternative(results: Results) -> str:
    source = losses(results)
    rows = [row for row in records(source) if not math.isnan(row["loss_pct"]) and not is_interpolated(row)]
    under = [row for row in rows if row["partition"] != UNMANAGED]
    # The lead's own share describes a mix only where there are no antagonists.
    shown = [row for row in under if row["series"] not in GREYS or not row["antagonists"]]
    parts = []
    for mix in dict.fromkeys(row["mix"] for row in shown):
        values = [row["loss_pct"] for row in shown if row["mix"] == mix]
        parts.append(f"{plain(mix)} from {number(min(values))} to {number(max(values))} %")
    more = f"; and {len(parts) - READ_ALOUD} more mixes" if len(parts) > READ_ALOUD else ""
    text = f"Losses under partitions: {'; '.join(parts[:READ_ALOUD])}{more}." if parts else "No loss is known."
    return text + read_aloud(source)


def losses(results: Results) -> pd.DataFrame:
    """The leads' rows against alone, with the interval to draw; and what their own share alone costs them."""
    effects = with_interpolated(results.lead_effects("alone", under_partitions=True), results)
    of_plan = curve_names(results.plan)
    known = effects.assign(series=[_series(row, of_plan) for row in records(effects)])
    table = pd.concat([known, _beside_placebos(results, known)], ignore_index=True)
    within = table["loss_low"].isna()
    low, high = (table[name].map(as_loss) for name in ("within_low", "within_high"))
    return table.assign(
        low=table["loss_low"].where(~within, low),
        high=table["loss_high"].where(~within, high),
        within_launch=within & low.notna(),
        ways=np.asarray(table["lead_ways"].astype("float64")),
    )


def _series(row: Row, curves: Mapping[str, str]) -> str:
    """What partitions of one kind have in common."""
    name = str(row["partition"])
    if name == UNMANAGED:
        return UNMANAGED
    if not row["antagonists"]:
        return OWN
    return ALL_WAYS if pd.isna(row["lead_ways"]) else curves[name]


def _beside_placebos(results: Results, known: pd.DataFrame) -> pd.DataFrame:
    """Rate(alone) over rate(placebo@mask), from the two slowdowns of the same co-run; a number without an interval."""
    keys = ["mix", "member", "partition", "platform"]
    at_mask = results.lead_effects(PLACEBO_AT_MASK, under_partitions=True)
    both = known.merge(at_mask[[*keys, "slowdown", "launches"]], on=keys, suffixes=("", "_at_mask"))
    slowdown = both["slowdown"] / both["slowdown_at_mask"]
    none = dict.fromkeys(("loss_low", "loss_high", "within_low", "within_high"), math.nan)
    both = both.assign(series=OWN_BESIDE_PLACEBOS, slowdown=slowdown, loss_pct=slowdown.map(as_loss), **none)
    # No row of effects holds this, so that nothing of the co-run's row may be read as its own.
    both = both.assign(baseline=DERIVED, verdict="", launches=both[["launches", "launches_at_mask"]].min(axis=1))
    return both[list(known.columns)]


def _panels(source: pd.DataFrame, results: Results) -> list[Panel]:
    rows = records(source)
    alone = {(row["member"], row["platform"]) for row in rows if row["antagonists"]}
    platforms = {row["platform"] for row in rows}
    panels = []
    lead = {row["mix"]: row["lead"] for row in rows}
    order = user_first(results, lead.values())
    mixes = dict.fromkeys((row["mix"], row["platform"]) for row in rows)
    for mix, platform in sorted(mixes, key=lambda pair: order.index(lead[pair[0]])):
        own = [row for row in rows if (row["mix"], row["platform"]) == (mix, platform)]
        under = [row for row in own if row["partition"] != UNMANAGED]
        if not own[0]["antagonists"] and (own[0]["member"], platform) in alone:
            continue  # drawn into the panels of that lead's mixes
        shares = [row for row in rows if row["series"] == OWN and row["mix"] != mix]
        under += [row for row in shares if (row["member"], row["platform"]) == (own[0]["member"], platform)]
        if not any(not math.isnan(row["loss_pct"]) for row in under):
            continue
        beside = f" beside {plain(own[0]['antagonists'])}" if own[0]["antagonists"] else " alone"
        title = f"{plain(own[0]['lead'])}{beside}" + (f" ({platform})" if len(platforms) > 1 else "")
        panels.append((title, [*under, *(row for row in own if row["partition"] == UNMANAGED)]))
    return panels


def _figure(panels: list[Panel], results: Results) -> Figure:
    drawn = panels[:PANELS]
    there = {row["series"] for _, rows in drawn for row in rows}
    looks = other_looks(results, sorted(there - {*GREYS, UNMANAGED}))
    looks |= {name: look for name, look in GREYS.items() if name in there}
    across = 2 if len(drawn) == 4 else min(3, len(drawn))
    sheet = Sheet(results, PAGE if across > 1 else COLUMN)
    titles = [broken(title, 34 if across > 1 else 40) for title, _ in drawn]
    above = 0.08 + 0.12 * max(title.count("\n") + 1 for title in titles)
    names = max((len(line) for _, rows in drawn for name in _others(rows) for line in _tick(name)), default=0)
    wide = (sheet.width - LEFT - 0.12 - GAP * (across - 1)) / across
    columns = [(LEFT + column * (wide + GAP), wide) for column in range(across)]
    begin, places = sheet.top, list[Axes]()
    for start in range(0, len(drawn), across):
        places += sheet.beside(HIGH, *columns[: len(drawn) - start], above=above)
        sheet.skip(0.29 + 0.055 * names)
    for place, (axes, (_, rows), title) in enumerate(zip(places, drawn, titles, strict=True)):
        axes.sharey(places[0]) if place else None
        _panel(axes, rows, looks)
        axes.set_title(title, loc="left", pad=3)
        axes.tick_params(axis="y", labelleft=place % across == 0)
    style = {"fontsize": 8, "ha": "center", "va": "center"}
    sheet.text(0.12, (begin + sheet.top) / 2, "loss (%)", rotation=90, **style)
    sheet.text(sheet.width / 2, sheet.top, f"ways of the lead{_size_of_ways(results)}", **style)
    sheet.skip(0.12)
    keys = []
    for name, look in looks.items():
        own = name in GREYS
        keys.append(legend_key(name, look, hollow=own, size=4, line=DASHES if own else "-", width=0.8))
    sheet.legend([*keys, legend_key(WITHOUT, (ALARM, ""), line="-")], handletextpad=0.8)
    rows = [row for _, rows in panels for row in rows if row["series"] == UNMANAGED or not math.isnan(row["loss_pct"])]
    known = [row for row in rows if not is_interpolated(row)]
    certain = any(not row["within_launch"] and not math.isnan(row["low"]) for row in known)
    within = any(row["within_launch"] for row in known)
    level = between(results.lead_effects("alone", under_partitions=True))
    parts = [f"bars and bands: 95 % {level}"] if certain else []
    parts += ["dashed bars, and bands beside them: 95 % within launch only"] if within else []
    parts += [IN_KEY] if any(map(is_interpolated, rows)) else []
    parts += [f"{len(panels) - PANELS} more mixes are in the CSV"] if len(panels) > PANELS else []
    return sheet.finish("; ".join(parts))


def _others(rows: list[Row]) -> list[str]:
    """Partitions that give the lead none of its own ways, in their order: they stand beside the axis."""
    names = (row["partition"] for row in rows if math.isnan(row["ways"]) and row["series"] != UNMANAGED)
    return list(dict.fromkeys(names))


def _panel(axes: Axes, rows: list[Row], looks: dict[str, Look]) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    for row in (row for row in rows if row["series"] == UNMANAGED and not math.isnan(row["loss_pct"])):
        if not math.isnan(row["low"]):
            axes.axhspan(row["low"], row["high"], color=OF_LOSS, linewidth=0, zorder=0)
        axes.axhline(row["loss_pct"], color=ALARM, linewidth=1.0, zorder=1)
    rows = [row for row in rows if row["series"] != UNMANAGED]
    known = [row["ways"] for row in rows if not math.isnan(row["ways"])]
    beside, place = {}, max(known, default=0) + 1.0
    for name in _others(rows):
        lines = len(_tick(name))
        beside[name], place = place + lines / 2, place + lines
    for index, (name, look) in enumerate(looks.items()):
        here = [row for row in rows if row["series"] == name and not math.isnan(row["loss_pct"])]
        _curve(axes, here, beside, look, (index - (len(looks) - 1) / 2) * min(0.12, 0.6 / len(looks)))
    every = sorted({int(ways) for ways in known})
    ticks = every[:: max(1, math.ceil(len(every) / 9))]
    axes.set_xticks([*ticks, *beside.values()], [*map(str, ticks), *("\n".join(_tick(name)) for name in beside)])
    for label in axes.get_xticklabels()[len(ticks) :]:
        label.set(rotation=90, fontsize=SMALL, linespacing=0.9)
    axes.margins(x=0.06, y=0.08)
    lines_across(axes, "y")


def _tick(partition: str) -> list[str]:
    """The name of a partition that stands beside the axis, in lines."""
    return broken(partition, TICK).split("\n")


def _curve(axes: Axes, rows: list[Row], beside: dict[str, float], look: Look, shift: float) -> None:
    colour, marker = look
    at = [(beside.get(row["partition"], row["ways"] + shift), row) for row in rows]
    curve = sorted(((x, row["loss_pct"]) for x, row in at if not math.isnan(row["ways"])))
    own = bool(rows) and rows[0]["series"] in GREYS
    xs, ys = [x for x, _ in curve], [y for _, y in curve]
    axes.plot(xs, ys, color=colour, linewidth=0.8, linestyle=DASHES if own else "-", zorder=2)
    for x, row in at:
        line = DOTS if is_interpolated(row) else WITHIN_LAUNCH if row["within_launch"] else "-"
        bar(axes, x, row["low"], row["high"], colour, line=line, upright=True)
    faces = ["white" if own or is_interpolated(row) else colour for _, row in at]
    xs, ys = [x for x, _ in at], [row["loss_pct"] for _, row in at]
    points = axes.scatter(xs, ys, s=13, marker=marker, c=faces, edgecolors=colour, linewidths=0.8, zorder=4)
    if rows:
        with_value(points, *map(_value, rows))


def _value(row: Row) -> str:
    series = f", {row['series']}" if row["series"] in GREYS else ""
    how = " (interpolated)" if is_interpolated(row) else ""
    return f"{row['partition']}{series}: {Quantity(row['loss_pct'], row['low'], row['high'], '%')}{how}"


def _size_of_ways(results: Results) -> str:
    """How large a way is, where that is known; of each class of nodes where they differ."""
    caches = {mix.machine: cache_of(results.plan, mix.machine) for mix in results.plan.mixes}
    words = {name: f"{each.way_bytes / 2**20:.3g} MiB each" for name, each in caches.items() if each and each.way_bytes}
    if len(set(words.values())) > 1:
        words = {name: f"{size} on {name}" for name, size in words.items()}
    return f" ({', '.join(dict.fromkeys(words.values()))})" if words else ""
