"""The figure `counters_evolution`: how a lead's counts go on over the rounds of a launch, alone and beside others."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from castmates.analysis.core import once
from castmates.analysis.explanations.counted_metrics import IPC, is_per_unit
from castmates.analysis.explanations.counters import NAMES, NAMES_OF_STEPS, NEEDED, OF_STEPS, over_rounds
from castmates.report.figures.antagonists import BASELINES, antagonists, looks, user_first
from castmates.report.figures.antagonists import beside as beside_of
from castmates.report.figures.counters import SECONDS, amount
from castmates.report.figures.marks import legend_key, with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, fitting, lines_across
from castmates.report.figures.style import GREY, Look, broken
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, counted, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "Counters over the rounds", "part": "why", "place": 230, "needs": "EVENTS"}
METRICS = 4  # of a program that are drawn: instructions per cycle, then those that drift most
BESIDE = 4  # antagonists of a program that are drawn: those beside which some metric drifts most
PANEL, GAP, LEFT, RIGHT = 1.0, 0.25, 0.75, 0.15  # inches
DRAWN = 12  # values that the text alternative names
ALONE = "alone"
WHO = ["platform", "lead", "member"]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the value of every metric in each round, and its drift."""
    by_round, drifts = tables(results)
    keys = [*WHO, "kind", "mix", "partition", "metric"]
    source = by_round.merge(drifts.drop(columns="launches"), on=keys, how="left") if len(by_round) else by_round
    return drawing(results, source, lacking, lambda: _figure(shown(results), results))


@once
def tables(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Values by round, and drifts."""
    counts = results.launch_parts("counters", NEEDED, NAMES)
    steps = results.launch_parts("steps", OF_STEPS, NAMES_OF_STEPS)
    return over_rounds(counts, steps, results.windows)


@once
def shown(results: Results) -> pd.DataFrame:
    """What is drawn: of each program a few metrics, alone and beside a few antagonists, without a partition."""
    by_round, drifts = tables(results)
    drifts = drifts[(drifts["partition"] == UNMANAGED) & ~drifts["metric"].isin(SECONDS)]
    if drifts.empty:
        return by_round.iloc[:0]
    drifts = drifts.assign(size=drifts["drift"].map(math.log).abs())
    ratios = ~drifts["metric"].map(is_per_unit).astype(bool)
    # Beside a ratio, the counts that it is made of show the same once more.
    chosen = drifts[ratios] if ratios.any() else drifts
    first = chosen["metric"] == IPC
    metrics = chosen.assign(size=chosen["size"].where(~first, math.inf)).groupby([*WHO, "metric"], sort=False)["size"]
    kept = metrics.max().reset_index().sort_values("size", ascending=False, kind="stable").groupby(WHO).head(METRICS)
    mixes = chosen.groupby([*WHO, "kind", "mix"], sort=False)["size"].max().reset_index()
    alone = mixes["kind"] == "alone"
    near = mixes[~alone].sort_values("size", ascending=False, kind="stable").groupby(WHO).head(BESIDE)
    scenes = pd.concat([mixes[alone], near])[[*WHO, "kind", "mix"]]
    rows = by_round[by_round["partition"] == UNMANAGED].merge(kept[[*WHO, "metric"]], on=[*WHO, "metric"])
    rows = rows.merge(scenes, on=[*WHO, "kind", "mix"])
    leads = {name: place for place, name in enumerate(user_first(results, rows["lead"]))}
    rank = {key: place for place, key in enumerate(kept[[*WHO, "metric"]].itertuples(index=False, name=None))}
    order = pd.DataFrame({
        "lead": rows["lead"].map(leads),
        "metric": [rank[key] for key in rows[[*WHO, "metric"]].itertuples(index=False, name=None)],
    }, index=rows.index)  # fmt: skip
    return rows.loc[order.sort_values(["lead", "metric"], kind="stable").index]


def lacking(results: Results) -> str:
    if len(shown(results)):
        return ""
    if tables(results)[0].empty:
        return f"No event was counted for a lead of the study {results.name}, so nothing goes on over its rounds."
    return f"No event was counted in enough rounds of a launch of the study {results.name} to see it go on."


def _figure(rows: pd.DataFrame, results: Results) -> Figure:
    panels = [own for _, own in rows.groupby([*WHO, "metric"], sort=False)]
    count = fitting([PANEL + UNDER + GAP for _ in panels], around=1.2)
    order = [name for name in antagonists(results) if name in set(rows["mix"].map(beside_of))]
    by_name = {ALONE: BASELINES[ALONE]} | looks(results, [*order, *filter(None, rows["mix"].map(beside_of))])
    sheet = Sheet(results)
    for own in panels[:count]:
        _panel(sheet.panel(PANEL, LEFT, RIGHT, above=GAP), own, by_name, results)
        sheet.skip(UNDER)
    sheet.legend([legend_key(_scene(name), look, size=4, line="-") for name, look in by_name.items()])
    words = ["band: 95 % between launches"] if rows["low"].notna().any() else []
    words += ["behind a title: the last third of the rounds against the first, alone"]
    words += [f"{counted(len(panels) - count, 'more panel')} in the CSV"] if len(panels) > count else []
    words += ["partitions are in the CSV"] if results.partitioned else []
    return sheet.finish("; ".join(words))


def _panel(axes: Axes, rows: pd.DataFrame, by_name: dict[str, Look], results: Results) -> None:
    first = records(rows)[0]
    for (kind, mix), own in rows.groupby(["kind", "mix"], sort=False):
        name = beside_of(str(mix)) if kind == "corun" else ALONE
        (colour, marker), scene = by_name[name], own.sort_values("round")
        if scene["low"].notna().any():
            band = scene["round"], scene["low"], scene["high"]
            axes.fill_between(*band, color=colour, alpha=0.13, linewidth=0, zorder=2)
        (line,) = axes.plot(
            scene["round"], scene["value"], marker=marker, markersize=3, linewidth=1.0, color=colour, zorder=3
        )
        values = ", ".join(amount(value, str(first["metric"])) for value in scene["value"][:8])
        with_value(line, f"{first['metric']} {_scene(name)}: {values}")
    lines_across(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(broken(f"per {first['unit']}" if first["unit"] else "ratio", 18))
    known = rows["iteration"].dropna()
    which = f" (iterations {known.min():,.0f} to {known.max():,.0f} of a launch)" if len(known) else ""
    axes.set_xlabel(f"round{which}", labelpad=1)
    axes.set_title(f"{plain(str(first['lead']))}: {first['metric']}", loc="left", pad=3)
    axes.set_title(_drift(first, results), loc="right", pad=3, fontsize=6.5, color=GREY)


def _scene(name: str) -> str:
    return name if name == ALONE else f"beside {name}"


def _drift(row: dict[str, Any], results: Results) -> str:
    """By how much a metric drifts alone."""
    drifts = tables(results)[1]
    own = drifts[(drifts["kind"] == "alone") & (drifts["partition"] == UNMANAGED)]
    for key in (*WHO, "metric"):
        own = own[own[key] == row[key]]
    return _per_cent(records(own)[0]) if len(own) else ""


def _per_cent(drift: dict[str, Any]) -> str:
    change = Quantity.made((100 * (drift[name] - 1) for name in ("drift", "drift_low", "drift_high")), "%")
    return f"{'+' if change.value >= 0 else ''}{change.whole}"


def caption(results: Results) -> str:
    if reason := lacking(results):
        return f"{reason} "
    return (
        "How each lead's counts go on over the rounds of a launch, alone and beside its antagonists, with 95 % t "
        f"intervals between launches ({units(shown(results)['launches'])}). Of each lead the {METRICS} metrics that "
        "drift most are drawn, instructions per cycle first. "
    )


def alternative(results: Results) -> str:
    if reason := lacking(results):
        return reason
    drifts = tables(results)[1]
    rows = drifts[(drifts["partition"] == UNMANAGED) & (drifts["kind"] == "alone") & ~drifts["metric"].isin(SECONDS)]
    parts = [f"{row['metric']} of {plain(row['lead'])} {_per_cent(row)}" for row in records(rows)[:DRAWN]]
    more = f"; and {len(rows) - DRAWN} more" if len(rows) > DRAWN else ""
    return f"Counts alone in the last third of the rounds against the first: {'; '.join(parts)}{more}."
