"""The figure `pareto`: what the antagonists keep against what the lead loses; a panel per mix."""

import math

import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.partitions.pareto import CONFIRMED, SEARCH
from castmates.report.figures.antagonists import looks, user_first
from castmates.report.figures.panels import Grid, drawing, drawn_grid
from castmates.report.figures.pareto_axes import Panel, Row, beyond, labels_of, paint
from castmates.report.figures.style import COLUMN, broken
from castmates.report.results import Results, records
from castmates.report.text.words import interval, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "What a share costs the others", "part": "recommendation", "place": 180, "needs": "PARTITIONS"}
BEYOND = "A point far from all others is an arrow at the edge of the axes, with its numbers in brackets. "
MANY = 6  # panels, beyond which they are lower


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    return drawing(results, results.pareto, lacking, lambda: _figure(_panels(results), results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    return "" if _panels(results) else f"No partition of a mix is known in the study {results.name}."


def _panels(results: Results) -> list[Panel]:
    rows, advice = records(results.pareto), records(results.recommendations)
    platforms = {row["platform"] for row in rows}
    advice_of = {(row["mix"], row["platform"]): row for row in advice}
    panels = []
    lead = {row["mix"]: row["lead"] for row in rows}
    order = user_first(results, lead.values())
    mixes = dict.fromkeys((row["mix"], row["platform"]) for row in rows)
    for key in sorted(mixes, key=lambda pair: order.index(lead[pair[0]])):
        own = [row for row in rows if (row["mix"], row["platform"]) == key and _known(row)]
        if not any(row["partition"] != UNMANAGED for row in own):
            continue
        advised = advice_of.get(key)
        title = f"{plain(own[0]['lead'])} beside {plain(own[0]['antagonists'])}"
        title += f" ({key[1]})" if len(platforms) > 1 else ""
        limit = advised["limit_pct"] if advised else math.nan
        met = advised["partition"] if advised and advised["verdict"] == "met" else ""
        colour = looks(results, [own[0]["antagonists"]])[own[0]["antagonists"]][0]
        panels.append(Panel(title, own, limit, met, colour))
    return panels


def _known(row: Row) -> bool:
    return not (math.isnan(row["loss_pct"]) or math.isnan(row["kept_pct"]))


def _figure(panels: list[Panel], results: Results) -> Figure:
    many = len(panels) > MANY
    grid = drawn_grid(
        [broken(panel.title, 44) for panel in panels],
        key=_key(panels),
        results=results,
        room=Grid(
            width=COLUMN, axes=1.4 if many else 2.1, above=0.12, below=0.34, left=0.72 if many else 0.58, right=0.12
        ),
    )
    for axes, panel in zip(grid.places, panels, strict=False):
        paint(axes, panel)
    beside = "rate that the\nneighbours keep (%)" if many else "rate that the antagonists keep (%)"
    grid.labels("loss of the lead (%)", beside)
    return grid.figure


def _key(panels: list[Panel]) -> str:
    rows = [row for panel in panels for row in panel.rows]
    crossed = any(not math.isnan(row["loss_low"]) for row in rows)
    parts = ["crosses: 95 % between launches" if crossed else "no crosses: too few launches for intervals"]
    parts += ["hollow: as found in the search; grey: dominated; stairs: the frontier; square: no partition"]
    parts += ["filled: fresh launches"] if any(row["stage"] == CONFIRMED for row in rows) else []
    parts += ["arrow: beyond the axes, with its loss and what is kept"] if any(map(beyond, panels)) else []
    limits = [panel.limit for panel in panels if not math.isnan(panel.limit)]
    parts += [f"dashed: the limit of {limits[0]:g} %"] if limits else []
    parts += ["bold: recommended"] if any(panel.recommended for panel in panels) else []
    return "; ".join(parts)


def caption(results: Results) -> str:
    """What is shown, with the method of its intervals."""
    fresh = bool((results.pareto["stage"] == CONFIRMED).any())
    panels = _panels(results)
    return (
        "What the antagonists keep of their rate alone (mean over them) against what the lead loses, under each "
        "partition and without one. "
        + _crosses(panels)
        + "What stands out in a search does so partly by luck: "
        + ("filled points are fresh launches of a separate study. " if fresh else "no point is confirmed yet. ")
        + (BEYOND if any(map(beyond, panels)) else "")
    )


def _crosses(panels: list[Panel]) -> str:
    """What the crosses are, if some are drawn, and of how many launches the points are."""
    rows = [row for panel in panels for row in panel.rows]
    of = units(row["launches"] for row in rows)
    if any(not math.isnan(row["loss_low"]) for row in rows):
        return f"Crosses are 95 % t intervals between launches ({of}). "
    return f"There are too few launches for intervals ({of}). "


def alternative(results: Results) -> str:
    """The frontier in words."""
    rows = [row for row in records(results.pareto) if _known(row)]
    parts = []
    for mix in list(dict.fromkeys(row["mix"] for row in rows))[:6]:
        own = [row for row in rows if row["mix"] == mix and row["stage"] == SEARCH and row["frontier"]]
        names = labels_of(row for row in rows if row["mix"] == mix)
        points = ", ".join(
            f"{names[row['partition']]}: {_point_words(row)}"
            for row in sorted(own, key=lambda row: row["loss_pct"])[:5]
        )
        fresh = [row for row in rows if row["mix"] == mix and row["stage"] == CONFIRMED]
        confirmed = "".join(f"; confirmed {names[row['partition']]}: {_point_words(row)}" for row in fresh)
        parts.append(f"{plain(mix)}: frontier {points}{confirmed}")
    return f"Loss of the lead against what the antagonists keep. {'. '.join(parts)}." if parts else "Nothing is known."


def _point_words(row: Row) -> str:
    return (
        f"loss {number(row['loss_pct'])} % {interval(row['loss_low'], row['loss_high'])}, kept "
        f"{number(row['kept_pct'])} % {interval(row['kept_low'], row['kept_high'])}"
    )
