"""The figure `windows`: the lead's rate in every window of a block, over time."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from castmates.report.figures.panels import beside_each_other, columns_for, finish, legend, lines_across, sharing
from castmates.report.figures.style import (
    COLUMN,
    GREY,
    INK,
    PAGE,
    Look,
    badge_room,
    empty_figure,
    looks_of,
    squeezed,
    stamp,
    styled,
)
from castmates.report.results import Results
from castmates.report.text.stamps import caveat
from castmates.report.text.words import READ_ALOUD, counted, listed, number, plain
from castmates.study.spec import UNMANAGED

PANELS = 12
TITLE = 31  # letters that fit above a panel
BASELINES = {"solo": (INK, "o"), "solo-again": ("#8f8f8f", "o"), "placebo": ("#7f7f7f", "d")}
PARTITIONED = ", partitioned"
SHOWN = ["study", "company", "block", "lead", "round", "window", "seconds", "what", "relative_rate", "valid", "reasons"]
SHOWN += ["platform"]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data."""
    source = relative_rates(results.windows)
    with styled():
        if source["relative_rate"].notna().sum() == 0:
            message = f"No window of the study {results.name} can be compared with a solo one."
            return empty_figure(message, caveat(results)), source
        return _figure(source, chosen_blocks(source), results), source


def caption(results: Results) -> str:
    """What stands below the figure, before what all captions say."""
    source = relative_rates(results.windows)
    shown, chosen = source[source["relative_rate"].notna()], chosen_blocks(source)
    blocks = len(shown[["company", "block"]].drop_duplicates())
    which = (
        "Every block that has rates is shown."
        if len(chosen) == blocks
        else (
            f"{len(chosen)} of {blocks} blocks are shown: the first, the last and evenly spaced ones between; "
            "the others are in the figure's CSV."
        )
    )
    lost = int(source["relative_rate"].isna().sum())
    without = (
        f" {counted(lost, 'window')} gave no rate, or had no solo rate to be compared with, and cannot be drawn."
        if lost
        else ""
    )
    return (
        "The lead's rate in every window, over the median of its solo windows in the same block (of the valid ones, "
        f"if there are any). Hollow crosses are rejected windows. {which}{without} "
    )


def alternative(results: Results) -> str:
    """What is read aloud in the figure's place."""
    source = relative_rates(results.windows)
    kept = source[source["valid"] & source["relative_rate"].notna()]
    if kept.empty:
        return "No valid window can be compared with a solo one."
    medians = kept.groupby("what", sort=False)["relative_rate"].median()
    parts = [f"{plain(str(what))} {number(float(value), 2)}" for what, value in medians.head(READ_ALOUD).items()]
    blocks = counted(len(chosen_blocks(source)), "block")
    return f"Rates of the lead over time in {blocks}; medians over solo: {listed(parts)}."


def relative_rates(windows: pd.DataFrame) -> pd.DataFrame:
    """Each lead's rate in a window over the median of its solo windows in the same block: the valid ones, if any."""
    rows = windows[windows["role"] == "lead"].copy()
    block = [rows["company"], rows["block"]]
    solo = rows["rate"].where(rows["scene"] == "solo")
    valid_solo = solo.where(rows["valid"]).groupby(block).transform("median")
    rows["relative_rate"] = rows["rate"] / valid_solo.fillna(solo.groupby(block).transform("median"))
    rows["seconds"] = (rows["open_ns"] - rows["open_ns"].groupby(block).transform("min")) / 1e9
    beside = rows["mix"].str.replace(r"^[^+]*\+?", "", regex=True)
    what = rows["kind"].where(rows["kind"] != "corun", "beside " + beside)
    rows["what"] = what.where(rows["partition"] == UNMANAGED, what + PARTITIONED)
    rows["lead"] = rows["workload"]
    return pd.DataFrame(rows[SHOWN].sort_values(["company", "block", "window"], ignore_index=True))


def chosen_blocks(source: pd.DataFrame) -> list[tuple[str, int]]:
    """The blocks that are drawn: all, or the first, the last and evenly spaced ones between them."""
    shown = source[source["relative_rate"].notna()]
    launches = shown[["company", "block"]].drop_duplicates()
    blocks = list(zip(launches["company"], launches["block"].astype(int), strict=True))
    if len(blocks) <= PANELS:
        return blocks
    return [blocks[round(index * (len(blocks) - 1) / (PANELS - 1))] for index in range(PANELS)]


def _looks(source: pd.DataFrame) -> dict[str, Look]:
    """Colour and marker by what ran, without its partition; seven colours by six markers are 42 pairs."""
    scenes = {what.removesuffix(PARTITIONED) for what in source["what"].unique()}
    looks = {what: look for what, look in BASELINES.items() if what in scenes}
    return looks | looks_of(sorted(scenes - set(looks)), 1)


def _figure(source: pd.DataFrame, blocks: list[tuple[str, int]], results: Results) -> Figure:
    looks = _looks(source)
    across, down = beside_each_other(len(blocks))
    width = PAGE if across > 1 else COLUMN
    keys = _keys(looks, bool(source["what"].str.endswith(PARTITIONED).any()))
    columns = columns_for((key.get_label() for key in keys), width, key=0.36, letter=0.06, most=5)
    foot = 0.75 + 0.16 * math.ceil(len(keys) / columns)
    head = 0.3 + badge_room(caveat(results), width)
    height = head - 0.05 + down * 1.5 + foot
    figure = Figure(figsize=(width, height))
    places = sharing(figure, len(blocks), left=0.58, top=head, bottom=foot, between=0.48)
    for axes, (company, block) in zip(places, blocks, strict=True):
        own = source[(source["company"] == company) & (source["block"] == block)]
        _panel(axes, own, looks)
        axes.set_title(_title(source, str(own["lead"].iloc[0]), company, block), loc="left", pad=3)
    middle = (foot + height - head) / 2
    figure.text(
        0.07 / width, middle / height, "rate / median solo rate", rotation=90, va="center", ha="left", fontsize=8
    )
    figure.text(0.5, (foot - 0.42) / height, "seconds since the block's first window", ha="center", fontsize=8)
    legend(figure, keys, (foot - 0.46) / height, columns)
    return finish(figure, [stamp(results.platforms, results.name)], caveat(results), va="baseline")


def _title(source: pd.DataFrame, lead: str, company: str, block: int) -> str:
    """dlrm, block 3; with the end of its company's name where the lead has several companies."""
    several = source.loc[source["lead"] == lead, "company"].nunique() > 1
    place = f", block {block}" + (f" of {company.rpartition('-')[2]}" if several else "")
    return squeezed(plain(lead), max(8, TITLE - len(place)), 1) + place


def _panel(axes: Axes, source: pd.DataFrame, looks: dict[str, Look]) -> None:
    axes.axhline(1.0, color=GREY, linewidth=0.6, zorder=1)
    there = set(source["what"].str.removesuffix(PARTITIONED))
    for what, (colour, marker) in looks.items():
        if what not in there:
            continue
        for name, face in ((what, colour), (what + PARTITIONED, "white")):
            kept = source[(source["what"] == name) & source["valid"]]
            axes.scatter(
                kept["seconds"], kept["relative_rate"], s=14, c=face, edgecolors=colour, marker=marker, linewidths=0.8
            )
        rejected = source[source["what"].isin([what, what + PARTITIONED]) & ~source["valid"]]
        axes.scatter(
            rejected["seconds"], rejected["relative_rate"], s=30, facecolors="none", edgecolors=colour, marker="X",
            linewidths=0.8,
        )  # fmt: skip
    axes.margins(x=0.04, y=0.08)
    lines_across(axes, "y")


def _keys(looks: dict[str, Look], partitioned: bool) -> list[Line2D]:
    def key(colour: str, marker: str, label: str, face: str) -> Line2D:
        return Line2D(
            [], [], linestyle="", marker=marker, markersize=4.5, markeredgecolor=colour, markerfacecolor=face,
            label=label,
        )  # fmt: skip

    keys = [key(colour, marker, plain(what), colour) for what, (colour, marker) in looks.items()]
    keys += [key(GREY, "o", "hollow: under a partition", "white")] if partitioned else []
    return [*keys, key(GREY, "X", "rejected window", "none")]
