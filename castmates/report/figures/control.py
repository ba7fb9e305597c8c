"""The figure `control`: what must not differ (A/A of each lead, the negative control), so that the ratio is one."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.effects.contrasts import workloads_of
from castmates.report.figures.antagonists import user_first
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, dot, ends_of
from castmates.report.figures.sheet import UNDER, Sheet, drawing, rows_of
from castmates.report.figures.style import COLUMN, INK, broken
from castmates.report.results import Results, records
from castmates.report.text.health import control_name
from castmates.report.text.words import Quantity, number, plain, units

FIGURE = {"title": "Controls", "part": "health", "place": 310}
BESIDE = 0.9  # inches: for the verdicts
NAME = 17  # letters of a line beside the axis
KINDS = ["alone", "alone-again"]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: the controls' rows, then a row per launch."""
    by_launch = launch_ratios(results.windows)
    summary = results.controls.assign(what="all launches")
    points = by_launch.assign(what="one launch", study=results.name, platform=", ".join(results.platforms))
    source = pd.concat([summary, points], ignore_index=True) if len(points) else summary
    return drawing(results, source, lacking, lambda: _figure(by_launch, results))


def lacking(results: Results) -> str:
    same = results.controls[results.controls["control"] != "positive"]
    return "" if same["ratio"].notna().any() else f"No control could be computed in the study {results.name}."


def caption(results: Results) -> str:
    of = units(results.controls.loc[results.controls["control"] != "positive", "launches"])
    return (
        "The same lead measured twice: its rate alone over its rate alone again; of the negative control beside a "
        "placebo over beside an antagonist that cannot disturb it. Each interval should hold one and lie inside the "
        f"margin. Bars: 95 % t intervals between launches ({of}). "
    )


def alternative(results: Results) -> str:
    rows = records(results.controls)
    if not rows:
        return lacking(results)
    parts = [f"{row['control']} {control_name(row)} {number(row['ratio'], 3)}, {row['verdict']}" for row in rows]
    return f"Ratios of the controls: {'; '.join(parts)}."


def launch_ratios(windows: pd.DataFrame) -> pd.DataFrame:
    """rate(alone) / rate(alone-again) of each launch: the geometric mean over its complete pairs."""
    rows = windows[
        (windows["role"] == "lead") & windows["valid"] & windows["scene"].isin(KINDS) & windows["rate"].gt(0)
    ]
    keys = ["lead", "cohort", "launch", "round"]
    rows = rows.assign(lead=workloads_of(rows["member"]))
    rates = rows.pivot_table(index=keys, columns="kind", values="rate", aggfunc="mean").reindex(columns=KINDS).dropna()
    pairs = pd.DataFrame({"log": np.log(rates["alone"] / rates["alone-again"])}).reset_index()
    means = pairs.groupby(keys[:3], as_index=False, sort=False)["log"].mean()
    return pd.DataFrame(
        {"lead": means["lead"], "cohort": means["cohort"], "launch": means["launch"], "ratio": np.exp(means["log"])}
    )


def _figure(by_launch: pd.DataFrame, results: Results) -> Figure:
    same = results.controls[results.controls["control"] != "positive"]
    order = user_first(results, same["lead"])
    rows = sorted(records(same), key=lambda row: order.index(row["lead"]))
    labels = [_label(row) for row in rows]
    left = 0.15 + 0.062 * max(len(line) for label in labels for line in label.split("\n"))
    high = max(0.42, 0.05 + 0.125 * max(label.count("\n") + 1 for label in labels))
    sheet = Sheet(results, COLUMN)
    axes = sheet.panel(high * len(rows), left, BESIDE)
    if results.margin is not None:
        axes.axvspan(1 - results.margin, 1 + results.margin, color="#dcebf5", linewidth=0, zorder=0)
    for y, row in enumerate(rows):
        again = row["control"] == "A/A"
        _row(axes, y, row, by_launch[(by_launch["lead"].map(plain) == plain(row["lead"])) & again])
    rows_of(axes, labels, at_zero=1.0)
    axes.grid(visible=False)
    # Symmetric around one, wide enough for all that is drawn.
    drawn = [bound for row in rows for bound in ends_of(row, "ratio")[:2]] + by_launch["ratio"].tolist()
    reach = max([abs(value - 1) for value in drawn if not math.isnan(value)] + [1.25 * (results.margin or 0.02)])
    axes.set_xlim(1 - 1.12 * reach, 1 + 1.12 * reach)
    axes.locator_params(axis="x", nbins=3)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel("ratio, which must be one")
    sheet.skip(UNDER)
    return sheet.finish(_key(rows, results))


def _row(axes: Axes, y: int, row: dict[str, Any], points: pd.DataFrame) -> None:
    spread = [y + 0.2 - 0.05 * (index % 3) for index in range(len(points))]
    axes.scatter(points["ratio"], spread, s=9, facecolors="none", edgecolors="#8a8a8a", linewidths=0.7, zorder=2)
    style: Any = {"va": "center", "fontsize": 7, "fontweight": "bold" if row["verdict"] == "unstable" else "normal"}
    axes.text(1.04, y, row["verdict"], transform=axes.get_yaxis_transform(), color=INK, **style)
    if not math.isnan(row["ratio"]):
        low, high, dashed = ends_of(row, "ratio")
        bar(axes, y, low, high, INK, width=1.6, line=WITHIN_LAUNCH if dashed else "-")
        ratio = Quantity(row["ratio"], low, high, digits=3)
        dot(
            axes,
            row["ratio"],
            y,
            (INK, "o"),
            f"{row['control']} {control_name(row)}: {ratio}, {row['verdict']}",
            size=4.5,
        )


def _label(row: dict[str, Any]) -> str:
    remark = row["control"] if row["mix"] else "" if row["study_lead"] else "of a control"
    return broken(plain(row["mix"] or row["lead"]), NAME) + (f"\n({remark})" if remark else "")


def _key(rows: list[dict[str, Any]], results: Results) -> str:
    controls = {row["control"] for row in rows}
    dashed = {ends_of(row, "ratio")[2] for row in rows if not math.isnan(row["ratio"])}
    parts = ["bar: 95 % between launches"] if False in dashed else []
    parts += ["dashed bar: 95 % within launch only"] if True in dashed else []
    parts.append("rings: launches")
    parts += ["negative: beside a placebo over beside its antagonist"] if "negative" in controls else []
    if results.margin is not None:
        parts.append(f"band: margin of ±{100 * results.margin:.3g} %")
    # The positive control should lie far outside of these axes: it is given in words.
    parts += [
        f"positive control {control_name(row)}, beside a placebo over beside: "
        f"{Quantity(row['ratio'], *ends_of(row, 'ratio')[:2], digits=2).whole}, {row['verdict']}"
        for row in records(results.controls[results.controls["control"] == "positive"])
        if not math.isnan(row["ratio"])
    ]
    return "; ".join(parts)
