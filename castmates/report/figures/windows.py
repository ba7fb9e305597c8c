"""The figure `windows`: every program's rate over the time of the study, what was rejected, and why."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.core import once
from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.keys import LAUNCH
from castmates.report.figures.antagonists import BESIDE, looks_of_scenes, user_first
from castmates.report.figures.marks import legend_key, with_value
from castmates.report.figures.sheet import UNDER, Sheet, drawing, evenly, fitting, lines_across, without_axis
from castmates.report.figures.style import ALARM, GREY, SMALL, Look, squeezed
from castmates.report.results import Results, records
from castmates.report.text.words import READ_ALOUD, Row, counted, listed, number, plain
from castmates.study.reasons import NOT_VISIBLE, ReasonKind, listed_in, program_of
from castmates.study.spec import UNMANAGED

FIGURE = {"title": "The study over time", "part": "health", "place": 320}
LEFT, RIGHT = 1.15, 0.12  # inches beside the axes
PANEL, LANE, HEAD = 0.85, 0.17, 0.3  # inches of a program, of a row of others, above a panel
LANES = 8  # below a heading: those who took most, the most frequent reasons
LOST = "#f3dede"
NAME = 17  # letters of a line beside the axes
LAUNCHES, MARKS = 60, 1500  # that are drawn at most, and measurements of them, about
PAUSE = 0.15  # between two launches, as a part of the middle one's length
PARTITIONED = ", partitioned"
HYPERVISOR, NOBODY = "hypervisor", "not visible"
TOOK, WHY = "Who else took time", "Why else windows were rejected"  # headings of what disturbed
TAKING = (ReasonKind.FOREIGN_LOAD, ReasonKind.NEIGHBOURS, ReasonKind.STEAL)  # reasons for which somebody took time
WINDOW = [*LAUNCH, "window"]
SHOWN = ["study", "cohort", "launch", "lead", "round", "window", "seconds", "what", "relative_rate", "valid", "reasons"]
SHOWN += ["platform"]
DISTURBED = [*WINDOW, "cause", "share_pct", "heading"]


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    """The figure and its source data: every measurement, with its place in the figure where it is drawn."""
    source = rates(results)
    if lacking(results):
        return drawing(results, source, lacking, Figure)
    launches = chosen_launches(source, results.launches)
    drawn, disturbed = in_a_row(source, launches), disturbances(results, launches)
    others = disturbed[disturbed["heading"] == TOOK]
    names = others.groupby(WINDOW)["cause"].agg(", ".join).rename("disturbed_by").reset_index()
    placed = source.merge(drawn[[*WINDOW, "minutes"]], on=WINDOW, how="left").merge(names, on=WINDOW, how="left")
    shown = placed[[*SHOWN, "minutes", "disturbed_by"]]
    return drawing(results, shown, lacking, lambda: _figure(drawn, disturbed, results))


@once
def rates(results: Results) -> pd.DataFrame:
    """The rates of the study."""
    return relative_rates(results.windows)


def relative_rates(windows: pd.DataFrame) -> pd.DataFrame:
    """Each lead's rate in a window over the median of its windows alone in the same launch: the valid ones, if any."""
    rows = windows[windows["role"] == "lead"].copy()
    launch = [rows["cohort"], rows["launch"]]
    alone = rows["rate"].where(rows["scene"] == "alone")
    valid_alone = alone.where(rows["valid"]).groupby(launch).transform("median")
    rows["relative_rate"] = rows["rate"] / valid_alone.fillna(alone.groupby(launch).transform("median"))
    middle = (rows["open_ns"] + rows["close_ns"]) / 2
    rows["seconds"] = (middle - rows["open_ns"].groupby(launch).transform("min")) / 1e9
    beside = rows["mix"].str.replace(r"^[^+]*\+?", "", regex=True)
    what = rows["kind"].where(rows["kind"] != "corun", "beside " + beside)
    rows["what"] = what.where(rows["partition"] == UNMANAGED, what + PARTITIONED)
    rows["lead"] = workloads_of(rows["member"])
    return pd.DataFrame(rows[SHOWN].sort_values(WINDOW, ignore_index=True))


def lacking(results: Results) -> str:
    if rates(results)["relative_rate"].notna().any():
        return ""
    return f"No window of the study {results.name} can be compared with one alone."


def caption(results: Results) -> str:
    source = rates(results)
    drawn = len(chosen_launches(source, results.launches))
    launches = len(source[source["relative_rate"].notna()][["cohort", "launch"]].drop_duplicates())
    which = f"all {counted(launches, 'launch')}" if drawn == launches else f"{drawn} of {launches} launches"
    lost = int(source["relative_rate"].isna().sum())
    without = f" {counted(lost, 'window')} cannot be drawn: there is no rate, or none alone." if lost else ""
    return (
        "Each lead's rate in every window, over the median of those alone in its launch; launches one after "
        f"the other, without the time between them ({which}). Crosses, and shaded: rejected. Below: who else took time "
        f"of the processors, and why else windows were rejected.{without} "
    )


def alternative(results: Results) -> str:
    source = rates(results)
    kept = source[source["valid"] & source["relative_rate"].notna()]
    if kept.empty:
        return "No valid window can be compared with one alone."
    launches = chosen_launches(source, results.launches)
    medians = kept.groupby("what", sort=False)["relative_rate"].median()
    parts = [f"{_said(str(what))} {number(float(value), 2)}" for what, value in medians.head(READ_ALOUD).items()]
    below = "".join(f" {heading}: {listed(lanes)}." for heading, _, lanes in _below(disturbances(results, launches)))
    return f"Rates over time in {counted(len(launches), 'launch')}; medians over alone: {listed(parts)}.{below}"


def _figure(drawn: pd.DataFrame, disturbed: pd.DataFrame, results: Results) -> Figure:
    leads = user_first(results, drawn["lead"])
    below = _below(disturbed)
    tall = sum(HEAD + LANE * len(lanes) for _, _, lanes in below)
    shown = leads[: fitting([HEAD + PANEL] * len(leads), around=tall + 1.2)]
    what = drawn.loc[drawn["lead"].isin(shown), "what"].unique()
    by_what = looks_of_scenes(results, {name.removesuffix(PARTITIONED) for name in what})
    sheet = Sheet(results, head=0.0)
    heights = [PANEL] * len(shown) + [LANE * len(lanes) for _, _, lanes in below]
    titles = [squeezed(plain(lead), 60, 1) for lead in shown] + [heading for heading, _, _ in below]
    places = sheet.stacked(heights, HEAD, LEFT, RIGHT)
    for axes, lead in zip(places, shown, strict=False):
        _program(axes, drawn[drawn["lead"] == lead], by_what)
    for axes, (_, rows, lanes) in zip(places[len(shown) :], below, strict=True):
        _causes(axes, rows.merge(drawn[[*WINDOW, "minutes", "valid"]], on=WINDOW), lanes)
    room = 0.01 * float(drawn["minutes"].max()) or 0.01
    rejected = sorted(drawn.loc[~drawn["valid"], "minutes"].unique())
    for axes, title in zip(places, titles, strict=True):
        axes.set_title(title, loc="left", pad=3, fontweight="bold")
        axes.set_xlim(drawn["minutes"].min() - room, drawn["minutes"].max() + room)
        # In every panel, so that their culprits stand below them.
        axes.vlines(rejected, 0, 1, transform=axes.get_xaxis_transform(), color=LOST, linewidth=2.4, zorder=0)
        axes.tick_params(labelbottom=axes is places[-1])
    axes.set_xlabel("minutes of measuring", labelpad=2)
    places[(len(shown) - 1) // 2].set_ylabel("rate / rate alone")
    sheet.skip(UNDER)
    keys = [legend_key(_said(what), look) for what, look in by_what.items()]
    masked = drawn["what"].str.endswith(PARTITIONED).any()
    keys += [legend_key("hollow: under a partition", (GREY, "o"), hollow=True)] if masked else []
    keys += [legend_key("rejected", (GREY, "X"), hollow=True)] if rejected else []
    sheet.legend(keys, handletextpad=0.2)
    parts = [] if (disturbed["heading"] == TOOK).any() else ["no time that others took was recorded"]
    if disturbed["share_pct"].notna().any():
        parts.append(f"tallest mark: {number(float(disturbed['share_pct'].max()))} % of a processor")
        parts += ["red: rejected"] if rejected else []
    more = sum(rows["cause"].nunique() - len(lanes) for _, rows, lanes in below)
    parts += [f"{more} more in the CSV"] if more > 0 else []
    hidden = len(leads) - len(shown)
    return sheet.finish("; ".join(parts + ([f"{counted(hidden, 'more lead')} in the CSV"] if hidden else [])))


def _said(what: str) -> str:
    """What ran, in words: beside 2 × stream (on its siblings), partitioned."""
    scene = what.removesuffix(PARTITIONED)
    if not scene.startswith(BESIDE):
        return plain(what)
    return BESIDE + plain(scene.removeprefix(BESIDE)) + what.removeprefix(scene)


def _program(axes: Axes, rows: pd.DataFrame, by_what: dict[str, Look]) -> None:
    """One program's measurements."""
    axes.axhline(1.0, color=GREY, linewidth=0.6, zorder=1)
    rows = rows[rows["relative_rate"].notna()]
    for what, (colour, marker) in by_what.items():
        own = rows[rows["what"].isin([what, what + PARTITIONED])]
        bare, valid = own["what"] == what, own["valid"]
        marks: list[tuple[Any, dict[str, Any]]] = [
            (bare & valid, {"s": 9, "c": colour, "marker": marker, "linewidths": 0.6, "zorder": 3}),
            (~bare & valid, {"s": 9, "c": "white", "marker": marker, "linewidths": 0.6, "zorder": 3}),
            (~valid, {"s": 22, "facecolors": "none", "marker": "X", "linewidths": 0.7, "zorder": 4}),
        ]
        for chosen, style in marks:
            if chosen.any():
                part = own[chosen]
                points = axes.scatter(part["minutes"], part["relative_rate"], edgecolors=colour, **style)
                with_value(points, *map(_value, records(part)))
    axes.margins(y=0.1)
    axes.locator_params(axis="y", nbins=4)
    lines_across(axes, "y")


def _value(row: Row) -> str:
    where = f"{plain(row['lead'])}, launch {row['launch']}, round {row['round']}, {_said(row['what'])}"
    rejected = "" if row["valid"] else f"; rejected: {row['reasons']}"
    return f"{where}: {number(row['relative_rate'], 3)}{rejected}"


def _below(disturbed: pd.DataFrame) -> list[tuple[str, pd.DataFrame, list[str]]]:
    """What stands below the programs: each heading that has anything, its rows, and its causes, the largest first."""
    groups = [(heading, disturbed[disturbed["heading"] == heading]) for heading in (TOOK, WHY)]
    return [(heading, rows, _lanes(rows)) for heading, rows in groups if len(rows)]


def _lanes(rows: pd.DataFrame) -> list[str]:
    sums = rows["share_pct"].fillna(1.0).groupby(rows["cause"]).sum()
    return [str(cause) for cause in sums.sort_values(ascending=False, kind="stable").index[:LANES]]


def _causes(axes: Axes, rows: pd.DataFrame, lanes: Sequence[str]) -> None:
    """A line for each: a mark is as high as the share that was taken, red where the measurement was lost."""
    most = float(rows["share_pct"].max())
    for lane, cause in enumerate(lanes):
        for valid, colour in ((True, GREY), (False, ALARM)):
            own = rows[(rows["cause"] == cause) & (rows["valid"] == valid)]
            if len(own):
                high = 0.8 * (own["share_pct"].fillna(most) / most).clip(lower=0.15) if most > 0 else 0.8
                bottom = lane + 0.4
                marks = axes.vlines(own["minutes"], bottom - high, bottom, color=colour, linewidth=1.1, zorder=3)
                with_value(marks, *map(_took_words, records(own)))
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_yticks(range(len(lanes)), [squeezed(cause, NAME, 1) for cause in lanes], fontsize=SMALL)
    without_axis(axes)


def _took_words(row: Row) -> str:
    share = "" if math.isnan(row["share_pct"]) else f" took {number(row['share_pct'])} % of a processor"
    return f"{row['cause']}{share}" + ("" if row["valid"] else "; the window was rejected")


def chosen_launches(source: pd.DataFrame, started: pd.DataFrame) -> list[tuple[str, int]]:
    """The launches that are drawn, in the order of their start: all, or the first, the last and evenly spaced ones."""
    shown = source[source["relative_rate"].notna()]
    sizes = shown.groupby(LAUNCH).size()
    times = started.drop_duplicates(LAUNCH).set_index(LAUNCH)["started"]
    order = sorted(sizes.index, key=lambda place: (str(times.get(place, "")), place))
    launches = [(str(cohort), int(launch)) for cohort, launch in order]
    most = min(LAUNCHES, max(2, int(MARKS / sizes.mean()))) if launches else 0
    return evenly(launches, most)


def in_a_row(source: pd.DataFrame, launches: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """The rows of these launches with their `minutes`: of measuring, launch after launch, without what lay between."""
    drawn = source[pd.MultiIndex.from_frame(source[LAUNCH]).isin(list(launches))]  # few of thousands
    parts = {place: rows for place, rows in drawn.groupby(LAUNCH, sort=False) if place in set(launches)}
    lasted = {place: float(rows["seconds"].max()) for place, rows in parts.items()}
    pause = PAUSE * sorted(lasted.values())[len(lasted) // 2] if lasted else 0.0
    begin, placed = 0.0, []
    for count, place in enumerate((place for place in launches if place in parts), start=1):
        rows = parts[place]
        placed.append(rows.assign(launch=count, minutes=(begin + rows["seconds"]) / 60))
        begin += lasted[place] + pause
    if not placed:
        return pd.DataFrame(source.assign(launch=0, minutes=math.nan)[:0])
    return pd.DataFrame(pd.concat(placed, ignore_index=True))


def disturbances(results: Results, launches: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """Who took time from the windows of these launches, and why else they were rejected.

    Of who took time the share of a CPU; NaN where only the reason is known.
    """
    windows = results.windows.drop_duplicates(WINDOW)
    windows = windows[pd.MultiIndex.from_frame(windows[LAUNCH]).isin(list(launches))]
    wanted = [*WINDOW, "metric", "value", "note"]
    samples = results.launch_table("samples", list(launches), wanted)
    samples = samples[samples["metric"].isin(["foreign_s", "steal_s"]) & (samples["value"] > 0)]
    who = samples["note"].map(program_of).replace("", NOBODY).where(samples["metric"] == "foreign_s", HYPERVISOR)
    table = samples.assign(cause=who).groupby([*WINDOW, "cause"], as_index=False)["value"].sum()
    table = table.merge(windows[[*WINDOW, "open_s"]], on=WINDOW)
    open_s = table["open_s"].where(table["open_s"] > 0)  # no slice counts: what was taken belongs to no known time
    table = table.assign(share_pct=(100 * table["value"] / open_s).clip(upper=100.0), heading=TOOK)[DISTURBED]
    lost = windows[~windows["valid"]]
    named = [
        (*row[: len(WINDOW)], cause, math.nan, heading)
        for row in lost[[*WINDOW, "reason_kinds", "blamed"]].itertuples(index=False, name=None)
        for cause, heading in causes(*row[len(WINDOW) :])
    ]
    known = set(table[[*WINDOW, "cause"]].itertuples(index=False, name=None))
    counted = set(table[WINDOW].itertuples(index=False, name=None))
    few = ReasonKind.TOO_FEW_CYCLES  # what is left where others took time
    more = [row for row in named if row[:4] not in known and not (row[3] == few and row[:3] in counted)]
    blamed = pd.DataFrame(more, columns=DISTURBED).astype(table.dtypes.to_dict())
    return pd.DataFrame(pd.concat([table, blamed], ignore_index=True))


def causes(kinds: str, blamed: str) -> list[tuple[str, str]]:
    """What the reasons of a window blame, with its heading: programs by their names, or the kinds that blame none."""
    takers = [NOBODY if who == NOT_VISIBLE else program_of(who) for who in listed_in(blamed)]
    takers += [HYPERVISOR] if ReasonKind.STEAL in listed_in(kinds) else []
    others = [kind for kind in listed_in(kinds) if kind not in TAKING]
    return [*((who, TOOK) for who in dict.fromkeys(takers)), *((kind, WHY) for kind in others)]
