"""The figure `services`: how long requests to open-loop services take, against the load that is offered."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.typing import LineStyleType

from castmates.report.figures.antagonists import looks
from castmates.report.figures.marks import bar, dot, with_value
from castmates.report.figures.sheet import Room, Sheet, drawing, lines_across, spread_labels
from castmates.report.figures.style import GREY, Look
from castmates.report.results import Results, records
from castmates.report.text.services import KINDS, rate, where
from castmates.report.text.words import Quantity, number, plain, units

FIGURE = {"title": "How long requests take", "part": "losses", "place": 70, "needs": "SERVICES"}
ROOM = Room(axes=2.4, above=0.06, below=0.5, left=0.62, right=1.3)
SHOWN: dict[str, LineStyleType] = {"p50": (0, (2, 1.5)), "p99": "-"}  # quantiles, each with its line
LIMIT = (0, (1, 2))
APART = 0.012  # of the load, by which curves are moved sideways so that intervals do not lie upon each other
MOST_TOLD = 12
Row = dict[str, Any]
Curves = dict[tuple[str, str], list[Row]]  # of a service on one platform, by where it ran: antagonists and partition


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    return drawing(results, results.services, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    known = results.services[["p50_ms", "p99_ms"]].notna().any(axis=None)
    return "" if known else f"No latency of requests is known in the study {results.name}."


def caption(results: Results) -> str:
    limit = " Dotted: the study's limit." if results.loads["limit_ms"].notna().any() else ""
    launches = units(results.services["launches"])
    return (
        "Latency of requests from when they were due, against the load: p99 (whole lines) and p50 (broken lines). "
        f"Bars: 95 % t intervals between launches ({launches}). Crosses: saturated, less than 97 % of the load was "
        f"answered.{limit} "
    )


def alternative(results: Results) -> str:
    parts = [
        f"{title}, {where(row)}, {rate(row['load'])} a second: "
        + ("saturated" if row["saturated"] else f"p99 {number(row['p99_ms'], 3)} ms")
        for title, curves in _panels(results)
        for own in curves.values()
        for row in own
        if row["saturated"] or not math.isnan(row["p99_ms"])
    ]
    more = f"; and {len(parts) - MOST_TOLD} more" if len(parts) > MOST_TOLD else ""
    return f"Latency of requests by load. {'; '.join(parts[:MOST_TOLD])}{more}." if parts else lacking(results)


def _panels(results: Results) -> list[tuple[str, Curves]]:
    table = results.services
    leads = table[(table["role"] == "lead") & table["kind"].isin(KINDS)]
    several = leads["platform"].nunique() > 1
    panels = []
    for (service, platform, machine), own in leads.groupby(["service", "platform", "machine"], sort=False):
        about = ", ".join(filter(None, [str(machine), str(platform) if several else ""]))
        curves: Curves = {}
        for row in records(own.sort_values("load")):
            curves.setdefault((row["antagonists"], row["partition"]), []).append(row)
        panels.append((plain(str(service)) + (f" ({about})" if about else ""), curves))
    return panels


def _figure(panels: list[tuple[str, Curves]], results: Results) -> Figure:
    limits = results.loads.drop_duplicates("quantile")["limit_ms"].to_list()
    colours = looks(results, [key[0] for _, curves in panels for key in curves])
    sheet = Sheet(results)
    for axes, (_, curves) in zip(sheet.grid([title for title, _ in panels], ROOM), panels, strict=False):
        _panel(axes, curves, colours, limits)
    sheet.labels("load (requests a second)", "latency (ms)")
    return sheet.finish(f"whole: p99; broken: p50; cross: saturated{'; dotted: the limit' if limits else ''}")


def _panel(axes: Axes, curves: Curves, colours: dict[str, Look], limits: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = []
    for place, ((antagonists, _), own) in enumerate(curves.items()):
        shift = (1 + APART) ** (place - (len(curves) - 1) / 2)
        look = colours[antagonists]
        for quantile, line in SHOWN.items():
            known = [row for row in own if not row["saturated"] and not math.isnan(row[f"{quantile}_ms"])]
            _curve(axes, known, quantile, shift, look, line)
            last = math.log10(known[-1]["p99_ms"]) if known else math.nan
        ends.append((last, where(own[0]), look[0]))
        for row in (row for row in own if row["saturated"]):
            share = number(100 * row["answered_share"], 0)
            (mark,) = axes.plot(
                [row["load"] * shift], [1.0], marker="x", color=look[0], linestyle="",
                transform=axes.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip
            with_value(mark, f"{where(row)}, {rate(row['load'])} a second: saturated, {share} % answered")
    for limit in limits:
        axes.axhline(limit, color=GREY, linewidth=0.8, linestyle=LIMIT, zorder=1)
    every = sorted({row["load"] for own in curves.values() for row in own})
    axes.set_xlim(every[0] / 1.15, every[-1] * 1.15)
    axes.set_xticks(every, [rate(load) for load in every])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(y=0.1)
    lines_across(axes, "y")
    _labels(axes, ends)


def _labels(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Name the curves beside the axes, which has to be done on a scale without logarithms; without an end: above."""
    low, high = (math.log10(end) for end in axes.get_ylim())
    twin = axes.twinx()
    twin.set_ylim(low, high)
    twin.axis("off")
    spread_labels(twin, [(high if math.isnan(end) else end, words, colour) for end, words, colour in ends])


def _curve(axes: Axes, own: list[Row], quantile: str, shift: float, look: Look, line: LineStyleType) -> None:
    loads = [row["load"] * shift for row in own]
    axes.plot(loads, [row[f"{quantile}_ms"] for row in own], color=look[0], linestyle=line, linewidth=1.1, zorder=2)
    for load, row in zip(loads, own, strict=True):
        ms, low, high = (row[f"{quantile}_ms{end}"] for end in ("", "_low", "_high"))
        bar(axes, load, low, high, look[0], width=0.8, upright=True, zorder=2)
        words = f"{where(row)}, {rate(row['load'])} a second: {quantile} {Quantity(ms, low, high, 'ms', 3)}"
        dot(axes, load, ms, look, words, size=3.5, zorder=3)
