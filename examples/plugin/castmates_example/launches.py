"""The figure `launches`: how much the same lead's rate alone differs from launch to launch."""

import pandas as pd
from matplotlib import figure

from castmates.report.figures.antagonists import user_first
from castmates.report.figures.marks import with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, rows_of
from castmates.report.figures.style import COLUMN, INK, squeezed
from castmates.report.results import Results
from castmates.report.text.words import counted, listed, number, plain

LEADS = 24  # that fit on a page
SHOWN = ["study", "lead", "cohort", "launch", "relative_rate", "platform"]


def draw(results: Results) -> tuple[figure.Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = relative_rates(results.windows)
    return drawing(results, source, lacking, lambda: _figure(source, results))


def lacking(results: Results) -> str:
    """Why there is nothing to show."""
    none = f"No launch of the study {results.name} has a valid measurement alone."
    return none if relative_rates(results.windows).empty else ""


def caption(results: Results) -> str:
    """The text below the figure, before what all captions have in common."""
    leads = relative_rates(results.windows)["lead"].nunique()
    left = f" {LEADS} of {counted(leads, 'program')} are shown." if leads > LEADS else ""
    return f"A ring is a launch: the program's median rate alone, over the median of its launches.{left} "


def alternative(results: Results) -> str:
    """The text for screen readers."""
    rates = relative_rates(results.windows).groupby("lead", sort=False)["relative_rate"]
    parts = [f"{plain(str(lead))} from {number(own.min(), 3)} to {number(own.max(), 3)}" for lead, own in rates]
    return f"Rates alone, launch by launch: {listed(parts)}." if parts else lacking(results)


def relative_rates(windows: pd.DataFrame) -> pd.DataFrame:
    """A row per launch: its median rate alone over the median of the lead's launches."""
    valid = windows[windows["valid"] & windows["rate"].gt(0)]
    alone = valid[(valid["role"] == "lead") & (valid["kind"] == "alone")]
    keys = ["study", "workload", "cohort", "launch", "platform"]
    rates = alone.groupby(keys, as_index=False, sort=False)["rate"].median().rename(columns={"workload": "lead"})
    rates["relative_rate"] = rates["rate"] / rates.groupby("lead")["rate"].transform("median")
    return rates[SHOWN]


def _figure(source: pd.DataFrame, results: Results) -> figure.Figure:
    leads = user_first(results, source["lead"])[:LEADS]
    sheet = Sheet(results, COLUMN)
    axes = sheet.panel(0.3 * len(leads), left=1.1, right=0.1)
    for y, lead in enumerate(leads):
        rates = source.loc[source["lead"] == lead, "relative_rate"]
        rings = axes.scatter(rates, [y] * len(rates), s=16, facecolors="none", edgecolors=INK, linewidths=0.8)
        with_value(rings, *(f"{plain(lead)}: {number(rate, 3)}" for rate in rates))
    rows_of(axes, [squeezed(plain(lead), 17, 1) for lead in leads], at_zero=1.0)
    axes.set_xlabel("rate alone / median of the launches")
    axes.locator_params(axis="x", nbins=4)
    sheet.skip(UNDER)
    return sheet.finish()
