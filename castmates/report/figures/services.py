"""The figure `services`: how long requests to open-loop services take, against the load that is offered."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from castmates.report.figures.antagonists import looks
from castmates.report.figures.panels import Grid, drawing, drawn_grid, lines_across, spread_labels
from castmates.report.figures.style import GREY, PAGE, Look
from castmates.report.figures.values import with_value
from castmates.report.results import Results, records
from castmates.report.text.services import KINDS, rate, where
from castmates.report.text.words import interval, number, plain, units

FIGURE = {"title": "How long requests take", "part": "losses", "place": 70, "needs": "SERVICES"}
ROOM = Grid(width=PAGE, axes=2.4, above=0.06, below=0.5, left=0.62, right=1.3)
SHOWN = {"p50": (0, (2, 1.5)), "p99": "-"}  # quantiles, each with its line
LIMIT = (0, (1, 2))
APART = 0.012  # of the load, by which curves are moved sideways so that intervals do not lie upon each other
MOST_TOLD = 12
Row = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A service on one platform: rows by where it ran."""

    title: str
    curves: dict[tuple[str, str], list[Row]]  # antagonists, partition


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    return drawing(results, results.services, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    known = results.services[["p50_ms", "p99_ms"]].notna().any(axis=None)
    return "" if known else f"No latency of requests is known in the study {results.name}."


def caption(results: Results) -> str:
    """What stands below the figure."""
    limit = " Dotted: the study's limit." if results.loads["limit_ms"].notna().any() else ""
    launches = units(results.services["launches"])
    return (
        "Latency of requests from when they were due, against the load: p99 (whole lines) and p50 (broken lines). "
        f"Bars: 95 % t intervals between launches ({launches}). Crosses: saturated, less than 97 % of the load was "
        f"answered.{limit} "
    )


def alternative(results: Results) -> str:
    """The figure in words."""
    parts = [
        f"{panel.title}, {where(row)}, {rate(row['load'])} a second: "
        + ("saturated" if row["saturated"] else f"p99 {number(row['p99_ms'], 3)} ms")
        for panel in _panels(results)
        for own in panel.curves.values()
        for row in own
        if row["saturated"] or not math.isnan(row["p99_ms"])
    ]
    more = f"; and {len(parts) - MOST_TOLD} more" if len(parts) > MOST_TOLD else ""
    return f"Latency of requests by load. {'; '.join(parts[:MOST_TOLD])}{more}." if parts else lacking(results)


def _panels(results: Results) -> list[Panel]:
    table = results.services
    leads = table[(table["role"] == "lead") & table["kind"].isin(KINDS)]
    several = leads["platform"].nunique() > 1
    panels = []
    for (service, platform, machine), own in leads.groupby(["service", "platform", "machine"], sort=False):
        curves: dict[tuple[str, str], list[Row]] = {}
        for row in records(own.sort_values("load")):
            curves.setdefault((row["antagonists"], row["partition"]), []).append(row)
        about = ", ".join(filter(None, [str(machine), str(platform) if several else ""]))
        panels.append(Panel(f"{plain(str(service))} ({about})" if about else plain(str(service)), curves))
    return panels


def _figure(panels: list[Panel], results: Results) -> Figure:
    limits = results.loads.drop_duplicates("quantile")["limit_ms"].to_list()
    key = f"whole: p99; broken: p50; cross: saturated{'; dotted: the limit' * bool(limits)}"
    drawn = drawn_grid([panel.title for panel in panels], key, results, ROOM)
    colours = looks(results, [key[0] for panel in panels for key in panel.curves])
    for axes, panel in zip(drawn.places, panels, strict=False):
        _panel(axes, panel, colours, limits)
    drawn.labels("load (requests a second)", "latency (ms)")
    return drawn.figure


def _panel(axes: Axes, panel: Panel, colours: dict[str, Look], limits: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    labels = []
    for place, ((antagonists, _), own) in enumerate(panel.curves.items()):
        shift = (1 + APART) ** (place - (len(panel.curves) - 1) / 2)
        for quantile, line in SHOWN.items():
            known = [row for row in own if not row["saturated"] and not math.isnan(row[f"{quantile}_ms"])]
            _curve(axes, known, quantile, shift, colours[antagonists], line)
            if quantile == "p99" and known:
                labels.append((math.log10(known[-1]["p99_ms"]), where(own[0]), colours[antagonists][0]))
        for row in (row for row in own if row["saturated"]):
            (mark,) = axes.plot(
                [row["load"] * shift], [1.0], marker="x", color=colours[antagonists][0], linestyle="",
                transform=axes.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip
            share = number(100 * row["answered_share"], 0)
            with_value(mark, f"{where(row)}, {rate(row['load'])} a second: saturated, {share} % answered")
    for limit in limits:
        axes.axhline(limit, color=GREY, linewidth=0.8, linestyle=LIMIT, zorder=1)
    every = sorted({row["load"] for own in panel.curves.values() for row in own})
    axes.set_xlim(every[0] / 1.15, every[-1] * 1.15)
    axes.set_xticks(every, [rate(load) for load in every])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.margins(y=0.1)
    lines_across(axes, "y")
    _labels(axes, labels, panel, colours)


def _labels(axes: Axes, labels: list[tuple[float, str, str]], panel: Panel, colours: dict[str, Look]) -> None:
    """Name the curves beside the axes, which has to be done on a scale without logarithms."""
    named = {text for _, text, _ in labels}
    low, high = (math.log10(end) for end in axes.get_ylim())
    missing = [(where(own[0]), colours[key[0]][0]) for key, own in panel.curves.items() if where(own[0]) not in named]
    twin = axes.twinx()
    twin.set_ylim(low, high)
    twin.axis("off")
    spread_labels(twin, [*labels, *((high, text, colour) for text, colour in missing)])


def _curve(
    axes: Axes,
    own: list[Row],
    quantile: str,
    shift: float,
    look: Look,
    line: Any,  # noqa: ANN401
) -> None:
    colour, marker = look
    values = [row[f"{quantile}_ms"] for row in own]
    loads = [row["load"] * shift for row in own]
    axes.plot(loads, values, color=colour, linestyle=line, linewidth=1.1, zorder=2)
    for load, row in zip(loads, own, strict=True):
        ms, low, high = (row[f"{quantile}_ms{end}"] for end in ("", "_low", "_high"))
        certain = not math.isnan(low)
        if certain:
            axes.plot([load, load], [low, high], color=colour, linewidth=0.8, zorder=2)
        (mark,) = axes.plot([load], [ms], color=colour, marker=marker, markersize=3.5, linestyle="", zorder=3)
        words = f"{where(row)}, {rate(row['load'])} a second: {quantile} {number(ms, 3)} ms"
        with_value(mark, f"{words} {interval(low, high, 3)}" if certain else words)
