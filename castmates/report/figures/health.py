"""The figure `health`: one glance at whether a study is to be trusted; what was not recorded is marked as missing."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures import health_rows
from castmates.report.figures.antagonists import antagonists, other_looks, user_first
from castmates.report.figures.antagonists import looks as looks_of
from castmates.report.figures.panels import NOTE, SmallPrint, axes_at, drawing, finish, small_print, without_axis
from castmates.report.figures.style import (
    ALARM,
    GREY,
    INK,
    PAGE,
    SMALL,
    badge_room,
    squeezed,
)
from castmates.report.figures.values import with_value
from castmates.report.results import Results
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, interval, listed, number, units

FIGURE = {"title": "Health", "part": "health", "place": 300}
ROW, HEAD, UNDER = 0.22, 0.3, 0.42  # inches: of a line, above a panel, below it
NAME, LEFT, RIGHT = 24, 1.45, 0.2  # letters and inches of a line's name
NOTHING = "not recorded"
ALL_THE_TIME = 99.95  # per cent
KINDS = {  # of what happened to a launch: colour and marker
    health_rows.LOST: (INK, "o"),
    health_rows.STOLEN: (ALARM, "s"),
    health_rows.TAKEN: (GREY, "^"),
    health_rows.HOT: ("#9a9a9a", "D"),
}
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = health_rows.rows(results)
    return drawing(results, source, lacking, lambda: _figure(source, results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    source = health_rows.rows(results)
    if source.empty:
        why = f": {failed}" if (failed := _failed(results)) else ""
        return f"Nothing of the study {results.name} was measured{why}."
    return "" if _telling(source) else f"No disturbance of the study {results.name} was recorded."


def caption(results: Results) -> str:
    """The caption, without the part that all captions share."""
    looked = health_rows.looked_at(results)
    marks = health_rows.rows(results)
    shown = _telling(marks)
    priced = marks[marks["panel"] == health_rows.COSTS]
    launches = int((results.launches["status"] == "measured").sum())
    some = f"all {counted(launches, 'launch')}" if len(looked) == launches else f"{len(looked)} of {launches} launches"
    said = {
        health_rows.REJECTED: "the share of all windows that each reason spoiled",
        health_rows.LAUNCHES: f"of {some}, what was rejected, and the share of a processor's time that others took",
        health_rows.SETTLING: "the lead's rate against its later rate; hollow marks are left out",
        health_rows.COSTS: "what each collector does to the lead's rate, in pairs with and without it, with 95 % t "
        f"intervals between launches ({units(priced['launches'])})",
        health_rows.COUNTED: "the share of the time for which events were counted",
    }
    parts = [f"{panel}: {words}." for panel, words in said.items() if panel in shown]
    failed = f" {failed}." if (failed := _failed(results)) else ""
    return f"{' '.join(parts)}{failed} "


def _telling(source: pd.DataFrame) -> list[str]:
    """The panels that show something: no bar of nothing, and not that counters ran all the time."""
    known = source.dropna(subset=["value"])
    values = {str(panel): rows["value"] for panel, rows in known.groupby("panel", sort=False)}
    nothing = {name for name, own in values.items() if name == health_rows.REJECTED and (own == 0).all()}
    nothing |= {name for name, own in values.items() if name == health_rows.COUNTED and (own >= ALL_THE_TIME).all()}
    return [name for name in health_rows.PANELS if name in values and name not in nothing]


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    source = health_rows.rows(results)
    parts = []
    for panel in health_rows.PANELS:
        own = source[source["panel"] == panel].dropna(subset=["value"])
        if panel in health_rows.CURVES:
            own = own.sort_values("value", key=abs, ascending=False, kind="stable").drop_duplicates("what")
        marks = [f"{row['what']} {number(row['value'], 2)}" for row in own.head(6).to_dict("records")]
        parts.append(f"{panel}: {listed(marks) if marks else NOTHING}")
    return f"Health of the study. {'; '.join(filter(None, [_failed(results), *parts]))}."


def _failed(results: Results) -> str:
    """How many launches failed; nothing where none did."""
    failed = int((results.launches["status"] == "failed").sum())
    return f"{failed} of {counted(len(results.launches), 'launch')} failed" if failed else ""


def _figure(source: pd.DataFrame, results: Results) -> Figure:
    parts: list[tuple[str, Callable[[Axes, pd.DataFrame, Results], None]]] = [
        (health_rows.REJECTED, _bars), (health_rows.LAUNCHES, _launches), (health_rows.SETTLING, _settling),
        (health_rows.COSTS, _costs), (health_rows.COUNTED, _counted),
    ]  # fmt: skip
    known = pd.DataFrame(source.dropna(subset=["value"]))
    own = {str(panel): pd.DataFrame(rows) for panel, rows in known.groupby("panel", sort=False)}
    parts = [part for part in parts if part[0] in _telling(source)]
    lines = {
        panel: 5 if panel in health_rows.CURVES else max(3, min(health_rows.MOST, own[panel]["what"].nunique()))
        for panel, _ in parts
    }
    pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
    high = [ROW * max(lines[panel] for panel, _ in pair) for pair in pairs]
    notes = _key(source, results)
    head, foot = 0.05 + badge_room(caveat(results), PAGE), 0.1 + NOTE * len(notes)
    height = head + sum(high) + len(pairs) * (HEAD + UNDER) + foot
    figure = Figure(figsize=(PAGE, height))
    top = head
    for pair, tall in zip(pairs, high, strict=True):
        for column, (panel, paint) in enumerate(pair):
            x, y = column * PAGE / 2 + LEFT, height - top - HEAD - tall
            axes = axes_at(figure, x, y, PAGE / 2 - LEFT - RIGHT, tall)
            axes.set_title(panel, loc="left", pad=4, fontweight="bold")
            paint(axes, own[panel], results)
        top += HEAD + tall + UNDER
    return finish(figure, notes, results)


def _bars(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    shown = own.head(health_rows.MOST)
    axes.barh(range(len(shown)), shown["value"], height=0.6, color=[INK, *[GREY] * (len(shown) - 1)])
    for y, value in enumerate(shown["value"]):
        axes.text(value, y, f" {number(value)}", va="center", ha="left", fontsize=SMALL)
    axes.set_xlim(0, max(5.0, 1.18 * shown["value"].max()))
    _named(axes, shown)
    axes.set_xlabel("share of all windows (%)", labelpad=1)


def _launches(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    for what, rows in own.groupby("what", sort=False):
        colour, marker = KINDS[str(what)]
        axes.plot(
            rows["place"], rows["value"], linestyle="", marker=marker, markersize=2.6, color=colour, label=str(what),
            clip_on=False,
        )  # fmt: skip
    axes.set_ylim(0, max(5.0, 1.6 * own["value"].max()))  # with room for the legend
    axes.set_yticks([tick for tick in axes.get_yticks() if tick <= min(100.0, axes.get_ylim()[1])])
    axes.set_xlabel("launches, in the order of their start", labelpad=1)
    axes.set_ylabel("%", labelpad=1)
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="upper left", ncols=2, fontsize=SMALL, handletextpad=0.1, columnspacing=0.8, borderpad=0.1)


def _settling(axes: Axes, own: pd.DataFrame, results: Results) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    leads = user_first(results, own["what"])
    known = set(antagonists(results))
    looks = other_looks(results, [lead for lead in leads if lead not in known])
    looks |= looks_of(results, [lead for lead in leads if lead in known])
    for lead in leads:
        rows, (colour, marker) = own[own["what"] == lead], looks[lead]
        axes.plot(rows["place"], rows["value"], color=colour, linewidth=0.8, zorder=2)
        for verdict, fill in ((health_rows.LEFT_OUT, "white"), ("", colour)):
            part = rows[rows["verdict"] == verdict]
            axes.plot(
                part["place"], part["value"], linestyle="", marker=marker, markersize=2.8, color=colour,
                markerfacecolor=fill, markeredgewidth=0.7, label=str(lead) if not verdict else None, zorder=3,
            )  # fmt: skip
    reach = max(2.0, 1.15 * own["value"].abs().max())
    axes.set_ylim(-reach, 1.6 * reach)  # with room for the legend
    axes.set_xlim(left=0)
    axes.set_xlabel("ms since the change", labelpad=1)
    axes.set_ylabel("% of later rate", labelpad=1)
    axes.legend(loc="upper left", ncols=2, fontsize=SMALL, handletextpad=0.1, columnspacing=0.8, borderpad=0.1)


def _costs(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    _intervals(axes, own.head(health_rows.MOST))
    axes.set_xlabel("change of the lead's rate (%)", labelpad=1)


def _counted(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    _bars(axes, own, _)
    axes.set_xlim(0, 115)
    axes.set_xlabel("time for which they counted (%)", labelpad=1)


def _intervals(axes: Axes, rows: pd.DataFrame) -> None:
    for y, row in enumerate(rows.to_dict("records")):
        style = (0, (2, 1.2)) if row["within_launch"] else "-"
        axes.plot([row["low"], row["high"]], [y, y], color=INK, linewidth=1.4, linestyle=style, zorder=2)
        (point,) = axes.plot([row["value"]], [y], marker="o", color=INK, markersize=4)
        with_value(point, f"{row['what']}: {number(row['value'], 2)} % {interval(row['low'], row['high'], 2)}")
    _named(axes, rows)


def _named(axes: Axes, rows: pd.DataFrame) -> None:
    names = [squeezed(name, NAME, 2) for name in rows["what"].astype(str)]
    axes.set_yticks(range(len(rows)), names, fontsize=SMALL, linespacing=0.9)
    axes.set_ylim(max(3, len(rows)) - 0.5, -0.6)
    without_axis(axes)


def _key(source: pd.DataFrame, results: Results) -> SmallPrint:
    hidden = 0
    for panel in health_rows.PANELS:
        if panel not in health_rows.CURVES:
            hidden += max(0, int((source["panel"] == panel).sum()) - health_rows.MOST)
    known = set(source.dropna(subset=["value"])["panel"])
    missing = [panel.lower() for panel in health_rows.PANELS if panel not in known]
    telling = _telling(source)
    parts = [*filter(None, [_failed(results)])]
    parts += ["no window was rejected"] if {health_rows.REJECTED} & known - set(telling) else []
    parts += ["all events were counted all the time"] if {health_rows.COUNTED} & known - set(telling) else []
    parts += [f"{NOTHING}: {listed(missing)}"] if missing else []
    parts += [f"{counted(hidden, 'more line')} in the CSV, the worst are drawn"] if hidden else []
    return small_print(PAGE, "; ".join(parts), results)
