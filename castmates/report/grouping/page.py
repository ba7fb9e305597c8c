"""The page of a placement: one self-contained HTML file with the look of a study's report."""

from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.analysis.grouping.advice import ALONE, RANKS
from castmates.files import replace_text, writing
from castmates.report.figures.drawing import key_of
from castmates.report.figures.marks import bar, dot, legend_key, with_value
from castmates.report.figures.sheet import UNDER, Origin, Sheet, empty_figure, rows_of
from castmates.report.figures.style import ALARM, COLOURS, GREY, INK, broken, styled
from castmates.report.grouping.words import Shown, fresh_words, limit_words, loss_words, schemata, sentences, task
from castmates.report.page.common_parts import first_words, rendered, write_drawing
from castmates.report.results import records
from castmates.report.text.words import number
from castmates.results.tables import write_table


def write(shown: Shown, folder: Path) -> list[Path]:
    """Write tables, figure and page into a folder."""
    write_table(shown.groupings, folder / "groupings")
    write_table(shown.ways, folder / "ways")
    drawn, source = draw(shown)
    content = page(shown, write_drawing(drawn, source, folder / "placement-figure"), key_of(drawn))
    with writing(output := folder / "index.html"):
        replace_text(output, content)
    return [output, folder / "groupings.csv", folder / "placement-figure.svg"]


def page(shown: Shown, drawing: Markup, key: str) -> str:
    """The page's HTML."""
    said = sentences(shown)
    content = {
        "shown": shown,
        "title": f"Which jobs should share a cache: {shown.title or shown.advice.place.study}",
        "task": task(shown),
        "first": first_words(shown.origin),
        "sentences": said,
        "best": [_grouping(shown, rank) for rank in sorted(set(shown.groupings["rank"]))],
        "ways": [_way(row) for row in records(shown.ways[shown.ways["job"] == ""])],
        "drawing": drawing,
        "key": key,
        "alternative": " ".join(filter(None, [shown.origin, *said])),
    }
    return rendered("grouping.html.j2", content)


def _grouping(shown: Shown, rank: int) -> dict[str, Any]:
    rows = records(shown.groupings[shown.groupings["rank"] == rank])
    found = shown.advice.found.best[rank - 1]
    return {
        "name": f"The {RANKS[rank - 1]} grouping",
        "mean": number(found.mean_loss),
        "rows": [row | {"said": loss_words(row), "limit": limit_words(row), "fresh": fresh_words(row)} for row in rows],
        "fresh": any(row["confirmed_in"] for row in rows),
        "masks": any(row["mask"] for row in rows),
        "schemata": schemata(shown, rank),
    }


def _way(row: dict[str, Any]) -> dict[str, Any]:
    named = ("loss_pct", "loss_p5", "loss_p95", "gain_pct", "exceeded", "domains")
    said = {f"said_{name}": number(row[name]) for name in named}
    return row | said | {"said_stp": number(row["stp"], 2), "said_predicted": number(100 * row["predicted"], 0)}


# The figure `placement`: what each kind of job loses in the best grouping, by spreading and at random.
#
# Filled marks are measured, hollow ones predicted; diamonds are fresh launches.

Row = dict[str, Any]
BEST, SPREADING, RANDOM = COLOURS[0], COLOURS[1], GREY
LANES = {"best": 0.26, "spreading": 0.56, "random": 0.78}  # of a row's height, from its top
ROW, LEFT, RIGHT = 0.52, 1.35, 0.15  # inches
ALL = "all jobs (mean)"


def draw(shown: Shown) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = shown.ways[shown.ways["way"].isin([*LANES])].reset_index(drop=True)
    with styled():
        if not shown.advice.found.best:
            return empty_figure("No grouping of these jobs can be judged.", shown.origin), source
        return _figure(shown, source), source


def _figure(shown: Shown, source: pd.DataFrame) -> Figure:
    jobs = ["", *shown.advice.problem.by_name]
    sheet = Sheet(Origin(shown.origin), head=0.36)
    axes = sheet.panel(ROW * len(jobs), LEFT, RIGHT)
    for place, job in enumerate(jobs):
        if place % 2:
            axes.axhspan(place, place + 1, color="#f5f5f5", linewidth=0, zorder=0)
        for row in records(source[(source["job"] == job) & (source["way"] != "best")]):
            _usual(axes, place, row)
        _best(axes, place, job, shown)
    rows_of(axes, [], at_zero=0.0)
    axes.set_ylim(len(jobs), 0)
    axes.set_yticks([place + 0.5 for place in range(len(jobs))], [broken(job, 18) if job else ALL for job in jobs])
    axes.set_xlabel("loss of the rate when alone (%)")
    keys = [legend_key("best grouping", (BEST, "o"), size=3.8, line="-")]
    for name, colour in (("spreading", SPREADING), ("random", RANDOM)):
        keys.append(Line2D([], [], marker="|", color=colour, label=name, linewidth=4, alpha=0.5))
    keys += [legend_key("limit", (ALARM, ""), line="-")] if shown.groupings["limit_pct"].notna().any() else []
    fresh = shown.groupings["fresh_pct"].notna().any()
    keys += [legend_key("fresh launches", (INK, "D"), size=2.8)] if fresh else []
    axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=len(keys), borderaxespad=0.3)
    sheet.skip(UNDER)
    return sheet.finish(_key(shown))


def _usual(axes: Axes, place: int, row: Row) -> None:
    """What is lost on average, and by nine of ten groupings."""
    y, colour = place + LANES[row["way"]], SPREADING if row["way"] == "spreading" else RANDOM
    axes.plot([row["loss_p5"], row["loss_p95"]], [y, y], color=colour, linewidth=4, alpha=0.35, solid_capstyle="butt")
    (point,) = axes.plot([row["loss_pct"]], [y], "|", color=colour, markersize=7, markeredgewidth=1.6)
    who = row["job"] or "all jobs"
    words = f"{who}, {row['way']}: {number(row['loss_pct'])} % on average over {row['groupings']} groupings"
    with_value(point, f"{words}, {number(row['loss_p5'])} to {number(row['loss_p95'])} % in nine of ten")


def _best(axes: Axes, place: int, job: str, shown: Shown) -> None:
    """Every single job of the best grouping; of all jobs the mean."""
    rows = records(shown.groupings[shown.groupings["rank"] == 1])
    y = place + LANES["best"]
    if not job:
        mean, who = shown.advice.found.best[0].mean_loss, "all jobs, best grouping"
        dot(axes, mean, y, (BEST, "o"), f"{who}: {number(mean)} % on average", hollow=shown.is_predicted, size=4.6)
        found = [0.0 if row["source"] == ALONE else row["fresh_pct"] for row in rows]
        if any(row["source"] != ALONE for row in rows) and all(loss == loss for loss in found):
            fresh = sum(found) / len(found)
            words = f"{who}: fresh launches found {number(fresh)} % on average"
            dot(axes, fresh, y, (INK, "D"), words, size=2.8, zorder=5)
        return
    own = [row for row in rows if row["job"] == job]
    step = 0.2 / max(1, len(own) - 1)
    for turn, row in enumerate(own):
        at = y + step * (turn - (len(own) - 1) / 2)
        beside = "alone" if row["source"] == ALONE else f"beside {row['beside'].replace('+', ' + ')}, {row['source']}"
        bar(axes, at, row["loss_low"], row["loss_high"], BEST, width=1.3)
        words = f"{row['job']} {beside}: {loss_words(row)} %"
        dot(axes, row["loss_pct"], at, (BEST, "o"), words, hollow=row["source"] == "predicted", size=3.8)
        if row["fresh_pct"] == row["fresh_pct"]:
            bar(axes, at, row["fresh_low"], row["fresh_high"], INK, width=0.8, zorder=5)
            words = f"{row['job']} {beside}: fresh launches found {fresh_words(row)}"
            dot(axes, row["fresh_pct"], at, (INK, "D"), words, size=2.8, zorder=5)
    limit = own[0]["limit_pct"]
    if limit == limit:
        axes.plot([limit, limit], [place + 0.06, place + 0.94], color=ALARM, linewidth=1.1, zorder=3)


def _key(shown: Shown) -> str:
    parts = [
        "best grouping: every single job, with its 95 % interval between launches",
        *(["hollow: predicted, and its interval may leave out how far that is off"] if shown.is_predicted else []),
        "random and spreading: the mean over drawn groupings, and where nine of ten of them lie",
        f"{shown.advice.place.platform}, study {shown.advice.place.study}",
    ]
    return "; ".join(parts)
