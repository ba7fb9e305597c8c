"""The figure `steptimes`: how the step times of each lead are distributed alone and beside others."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from castmates.analysis.explanations.steps import COLUMNS, QUANTILES, Launches, launch_quantiles
from castmates.report.figures.antagonists import antagonists, beside, user_first
from castmates.report.figures.panels import drawing
from castmates.report.figures.steptimes_axes import SHARES, Curve, Panel, figure_of
from castmates.report.results import Results, records
from castmates.report.text.latency import of_steps
from castmates.report.text.words import counted, interval, number, plain, units
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "How long steps take", "part": "losses", "place": 60}
PANELS = 6  # leads: more are higher than a page
LAUNCHES = 8  # of a lead that are drawn
DRAWN = {"corun": 5, "placebo": 2}  # of a lead, without partitions: those with the largest change of the median
POINTS = 80  # of a bold line
SHOWN = ["study", "member", "scene", "what", "cohort", "launch", "share", "ms", "low", "high", "steps", "launches"]
SHOWN += ["refused", "platform"]
SAID = 6  # leads that the alternative text names
Row = dict[str, Any]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the quantiles with their intervals, then the lines."""
    panels = _panels(results)
    source = _source(results, panels)
    return drawing(results, source, lacking, lambda: figure_of(panels, results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    if _leads(results):
        return ""
    return f"No lead of the study {results.name} completed two steps in a valid window, so no step has a length."


def caption(results: Results) -> str:
    """The caption, without the part that all captions share."""
    leads = _leads(results)
    known = of_steps(results)[of_steps(results)["role"] == "lead"]
    most = int((known["launches"] + known["launches_few"]).max()) if len(known) else 0
    some = f"faint: each of at most {LAUNCHES} launches" if most > LAUNCHES else "faint: each launch"
    left = f" {PANELS} of {counted(len(leads), 'lead')} are shown." if len(leads) > PANELS else ""
    of = units(known.loc[known["refused"] == "", "launches"])
    some_of = " Of many antagonists and placebos, those that change the median most are drawn." * _chosen(known)
    refused = sorted({str(name) for name in known.loc[known["refused"] != "", "quantile"]})
    few = f" Where {' or '.join(refused)} is missing, there are too few steps for it." if refused else ""
    return (
        f"Above: the share of a lead's steps that take no longer; {some}, bold: all together. Below: median, p95 "
        f"and p99 with 95 % t intervals between launches ({of}).{few}{some_of}{left} "
    )


def _chosen(known: pd.DataFrame) -> bool:
    """Whether some lead has more scenes of a kind than are drawn."""
    medians = known[(known["quantile"] == next(iter(QUANTILES))) & (known["partition"] == UNMANAGED)]
    counts = Counter(zip(medians["member"], medians["platform"], medians["kind"], strict=True))
    return any(count > DRAWN.get(kind, count) for (_, _, kind), count in counts.items())


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    leads = _leads(results)
    parts = []
    for member, platform in leads[:SAID]:
        rows = _conditions(results, member, platform)
        labels = _labels(rows)
        times = [f"{labels[row['scene']]} {number(row['ms'], 3)}{_interval(row)}" for row in rows]
        parts.append(f"{plain(member)}: {', '.join(times)}")
    more = f"; and {len(leads) - SAID} more leads" if len(leads) > SAID else ""
    return f"Median step time in ms: {'; '.join(parts)}{more}." if parts else lacking(results)


def _leads(results: Results) -> list[tuple[str, str]]:
    """Members and platforms with a median without a partition: the user's programs, then those of the controls."""
    table = of_steps(results)
    known = table[(table["role"] == "lead") & (table["partition"] == UNMANAGED) & table["ms"].notna()]
    order = user_first(results, known["member"])
    return sorted(set(zip(known["member"], known["platform"], strict=True)), key=lambda one: (order.index(one[0]), one))


def _conditions(results: Results, member: str, platform: str) -> list[Row]:
    """The rows of the median in the scenes that are drawn: the baselines, then the co-runs that change it most."""
    table = of_steps(results)
    own = table[(table["member"] == member) & (table["platform"] == platform) & (table["partition"] == UNMANAGED)]
    rows = records(own[(own["quantile"] == next(iter(QUANTILES))) & own["ms"].notna()])
    kept = {
        row["scene"]
        for kind, most in DRAWN.items()
        for row in sorted((row for row in rows if row["kind"] == kind), key=lambda row: -_change(row))[:most]
    }
    order = {name: place for place, name in enumerate(antagonists(results))}
    shown = [row for row in rows if row["kind"] not in DRAWN or row["scene"] in kept]
    return sorted(shown, key=lambda row: (row["kind"] == "corun", order.get(beside(row["mix"]), len(order))))


def _change(row: Row) -> float:
    return abs(math.log(row["ratio"])) if row["ratio"] > 0 else 0.0


def _labels(rows: list[Row]) -> dict[str, str]:
    """By scene: what it is called; placebos by their CPUs where there are several."""
    placebos = sum(row["kind"] == "placebo" for row in rows)
    labels = {}
    for row in rows:
        label = f"beside {beside(row['mix'])}" if row["kind"] == "corun" else row["kind"]
        on = f" on {row['scene'].partition(':')[2]}" if row["kind"] == "placebo" and placebos > 1 else ""
        labels[row["scene"]] = f"{label}{on}"
    return labels


def _interval(row: Row) -> str:
    return "" if math.isnan(row["ms_low"]) else f" {interval(row['ms_low'], row['ms_high'], 3)}"


def _panels(results: Results) -> list[Panel]:
    leads = _leads(results)[:PANELS]
    shapes = _shapes(results, leads)
    panels = []
    for member, platform in leads:
        table = of_steps(results)[(of_steps(results)["member"] == member) & (of_steps(results)["platform"] == platform)]
        curves, rows = [], _conditions(results, member, platform)
        drawn = table[table["scene"].isin([row["scene"] for row in rows]) & (table["refused"] == "")]
        # A quantile that one scene alone has steps enough for compares nothing.
        alone = [name for name, count in drawn["quantile"].value_counts().items() if count == 1 < len(rows)]
        for row, label in zip(rows, _labels(rows).values(), strict=True):
            lines = shapes[(shapes["member"] == member) & (shapes["platform"] == platform)]
            lines = lines[lines["scene"] == row["scene"]]
            values = lines[[str(share) for share in SHARES]].to_numpy(dtype=float)
            marks = records(table[(table["scene"] == row["scene"]) & ~table["quantile"].isin(alone)])
            curves.append(Curve(label, str(row["scene"]), lines, values, pooled(values), marks))
        several = len({platform for _, platform in leads}) > 1
        step = str(row["unit"]) if row["units"] == 1 else f"{row['units']:,.0f} {row['unit']}s"
        panels.append(Panel(f"{plain(member)}{f' ({platform})' if several else ''}", member, platform, step, curves))
    return panels


def pooled(values: np.ndarray) -> np.ndarray:
    """Times and shares of the launches' mean distribution, each with the same weight."""
    if not len(values):
        return np.empty((0, 2))
    times = np.geomspace(values.min(), values.max(), POINTS)
    shares = [np.interp(times, quantiles, SHARES, left=0.0, right=1.0) for quantiles in values]
    return np.column_stack([times, np.mean(shares, axis=0)])


def _shapes(results: Results, leads: list[tuple[str, str]]) -> pd.DataFrame:
    """A row per launch and scene of the leads that are drawn: the quantiles of its steps."""
    own = results.windows[(results.windows["role"] == "lead") & results.windows["valid"]]
    own = own[(own["beats"] > 1) & own["member"].isin([member for member, _ in leads])]
    launches = own.drop_duplicates(["member", "cohort", "launch"]).sort_values(["member", "cohort", "launch"])
    place = launches.groupby("member").cumcount().to_numpy()
    count = launches.groupby("member")["launch"].transform("size").to_numpy()
    every = np.maximum((count - 1) / (LAUNCHES - 1), 1)
    drawn = launches[(np.round(np.round(place / every) * every) == place)]
    only = {(str(cohort), int(launch)) for cohort, launch in zip(drawn["cohort"], drawn["launch"], strict=True)}
    steps = results.launch_table("steps", only=only, columns=COLUMNS)
    cells = Launches.of(own)
    quantiles = launch_quantiles(steps, cells, SHARES)
    return cells.table.loc[quantiles["group"]].reset_index(drop=True).join(quantiles.drop(columns="group"))


def _source(results: Results, panels: list[Panel]) -> pd.DataFrame:
    """What is drawn, as rows: intervals, launches, and the launches together."""
    rows: list[Row] = []
    for panel in panels:
        for curve in panel.curves:
            head = {"study": results.name, "member": panel.member, "scene": curve.scene, "platform": panel.platform}
            for mark in curve.marks:
                numbers = {name: mark[name] for name in ("ms", "steps", "launches", "refused")}
                ends = {"low": mark["ms_low"], "high": mark["ms_high"], "share": QUANTILES[mark["quantile"]]}
                rows.append(head | numbers | ends | {"what": "interval"})
            for launch, values in zip(records(curve.launches), curve.values, strict=True):
                place = {name: launch[name] for name in ("cohort", "launch", "steps")} | {"what": "launch"}
                rows += [head | place | {"share": share, "ms": ms} for share, ms in zip(SHARES, values, strict=True)]
            rows += [head | {"what": "together", "share": share, "ms": ms} for ms, share in curve.pooled.tolist()]
    return pd.DataFrame(rows, columns=SHOWN)
