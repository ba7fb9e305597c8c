"""The figure `health`: one glance at whether a study is to be trusted; what was not recorded is said to be missing."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.report.figures import health_rows
from castmates.report.figures.panels import NOTE, axes_at, finish, small_print, without_axis
from castmates.report.figures.style import (
    COLOURS,
    GREY,
    INK,
    PAGE,
    SMALL,
    badge_room,
    empty_figure,
    squeezed,
    stamp,
    styled,
)
from castmates.report.results import Results
from castmates.report.text.stamps import caveat
from castmates.report.text.words import counted, listed, number, units

ROW, HEAD, UNDER = 0.22, 0.3, 0.42  # inches: of a line, above a panel, below it
NAME, LEFT, RIGHT = 24, 1.45, 0.2  # letters and inches of a line's name
NOTHING = "not recorded"
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = health_rows.rows(results)
    with styled():
        if source.empty:
            why = f": {failed}" if (failed := _failed(results)) else ""
            return empty_figure(f"Nothing of the study {results.name} was measured{why}.", caveat(results)), source
        return _figure(source, results), source


def caption(results: Results) -> str:
    """What stands below the figure, before what all captions say."""
    looked = health_rows.looked_at(results)
    marks = health_rows.rows(results)
    controls, priced = (marks[marks["panel"] == name] for name in (health_rows.CONTROLS, health_rows.COSTS))
    costs = f", with intervals of the same kind ({units(priced['blocks'])})" if len(priced) else ""
    blocks = int((results.blocks["status"] == "measured").sum())
    failed = f"{failed}, which left no windows. " if (failed := _failed(results)) else ""
    some = f"all {blocks}" if len(looked) == blocks else f"{len(looked)} evenly spaced ones of {blocks}"
    return (
        "Controls: the ratio of two rates that must be the same, with 95 % t intervals between launches "
        f"({units(controls['blocks'])}), dashed within launch. Rejected: the share of all windows that each kind of "
        "reason spoiled (a window may have several). By "
        "block: rejected windows; the time of a CPU that the hypervisor took (mean over CPUs) and that other programs "
        "took together while windows were open; windows in which heat held the processor back. "
        "After a change of scene: the lead's mean rate in each part of its slices against that of the later half, "
        "over all scenes; hollow marks are left out of every slice. "
        "Counted: the share of the time for which perf's counters ran, the least and the median over windows. Cost: "
        f"what each collector does to the lead's rate, measured in pairs with and without it{costs}. "
        f"Time taken and counters are of {some} measured blocks. What is missing was not recorded; it is not zero. "
        f"{failed}"
    )


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
    """How many blocks failed; nothing where none did."""
    failed = int((results.blocks["status"] == "failed").sum())
    return f"{failed} of {counted(len(results.blocks), 'block')} failed" if failed else ""


def _figure(source: pd.DataFrame, results: Results) -> Figure:
    parts: list[tuple[str, Callable[[Axes, pd.DataFrame, Results], None]]] = [
        (health_rows.CONTROLS, _controls), (health_rows.REJECTED, _bars), (health_rows.BLOCKS, _blocks),
        (health_rows.SETTLING, _settling), (health_rows.COSTS, _costs), (health_rows.COUNTED, _counted),
    ]  # fmt: skip
    known = pd.DataFrame(source.dropna(subset=["value"]))
    own = {str(panel): pd.DataFrame(rows) for panel, rows in known.groupby("panel", sort=False)}
    parts = [part for part in parts if part[0] in own]
    lines = {
        panel: 5 if panel in health_rows.CURVES else max(3, min(health_rows.MOST, own[panel]["what"].nunique()))
        for panel, _ in parts
    }
    pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
    high = [ROW * max(lines[panel] for panel, _ in pair) for pair in pairs]
    notes = small_print(PAGE, _note(source, results))
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
    return finish(figure, notes, caveat(results))


def _controls(axes: Axes, own: pd.DataFrame, results: Results) -> None:
    if results.margin is not None:
        axes.axvspan(1 - results.margin, 1 + results.margin, color="#dcebf5", linewidth=0, zorder=0)
    axes.axvline(1.0, color=GREY, linewidth=0.6, zorder=1)
    _intervals(axes, own.head(health_rows.MOST))
    reach = max(abs(own[["value", "low", "high"]] - 1).max().max(), 1.25 * (results.margin or 0.02))
    axes.set_xlim(1 - 1.1 * reach, 1 + 1.1 * reach)
    axes.locator_params(axis="x", nbins=5)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel("ratio, which must be one", labelpad=1)


def _bars(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    shown = own.head(health_rows.MOST)
    axes.barh(range(len(shown)), shown["value"], height=0.6, color=[INK, *[COLOURS[4]] * (len(shown) - 1)])
    for y, value in enumerate(shown["value"]):
        axes.text(value, y, f" {number(value)}", va="center", ha="left", fontsize=SMALL)
    axes.set_xlim(0, max(5.0, 1.18 * shown["value"].max()))
    _named(axes, shown)
    axes.set_xlabel("share of all windows (%)", labelpad=1)


def _blocks(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    for index, (what, rows) in enumerate(own.groupby("what", sort=False)):
        axes.plot(
            rows["place"], rows["value"], linestyle="", marker="os^D"[index % 4], markersize=2.6,
            color=(INK, COLOURS[1], COLOURS[0], COLOURS[3])[index % 4], label=str(what), clip_on=False,
        )  # fmt: skip
    axes.set_ylim(0, max(5.0, 1.6 * own["value"].max()))  # with room for the legend
    axes.set_yticks([tick for tick in axes.get_yticks() if tick <= min(100.0, axes.get_ylim()[1])])
    axes.set_xlabel("blocks, in the order of their start", labelpad=1)
    axes.set_ylabel("%", labelpad=1)
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="upper left", ncols=2, fontsize=SMALL, handletextpad=0.1, columnspacing=0.8, borderpad=0.1)


def _settling(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    for index, (lead, rows) in enumerate(own.groupby("what", sort=False)):
        colour, marker = COLOURS[index % len(COLOURS)], "os^D"[index % 4]
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
        axes.plot([row["low"], row["high"]], [y, y], color=COLOURS[0], linewidth=1.4, linestyle=style, zorder=2)
        bad = row["verdict"] not in ("", "passes", "sensitive")
        axes.plot(
            [row["value"]], [y], marker="X" if bad else "o", color=COLOURS[1] if bad else COLOURS[0], markersize=4
        )
    _named(axes, rows)


def _named(axes: Axes, rows: pd.DataFrame) -> None:
    names = [squeezed(name, NAME, 2) for name in rows["what"].astype(str)]
    axes.set_yticks(range(len(rows)), names, fontsize=SMALL, linespacing=0.9)
    axes.set_ylim(max(3, len(rows)) - 0.5, -0.6)
    without_axis(axes)


def _note(source: pd.DataFrame, results: Results) -> str:
    hidden = 0
    for panel in health_rows.PANELS:
        if panel not in health_rows.CURVES:
            hidden += max(0, int((source["panel"] == panel).sum()) - health_rows.MOST)
    known = set(source.dropna(subset=["value"])["panel"])
    missing = [panel.lower() for panel in health_rows.PANELS if panel not in known]
    parts = [*filter(None, [_failed(results)]), "crosses: controls that do not pass"]
    parts += [f"{NOTHING}: {listed(missing)}"] if missing else []
    parts += [f"{counted(hidden, 'more line')} in the CSV, the worst are drawn"] if hidden else []
    parts += ["shaded: the margin"] if results.margin is not None else []
    return f"{'; '.join(parts)} · {stamp(results.platforms, results.name)}"
