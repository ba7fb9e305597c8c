"""What the figure `windows` shows: every program's rate over the time of the study, and what disturbed it."""

import math
from collections.abc import Sequence

import pandas as pd

from castmates.analysis.effects.contrasts import workloads_of
from castmates.analysis.keys import LAUNCH
from castmates.report.once_per_results import once
from castmates.report.results import Results
from castmates.study.reasons import NOT_VISIBLE, ReasonKind, listed_in, program_of
from castmates.study.spec import UNMANAGED

LAUNCHES, MARKS = 60, 1500  # that are drawn at most, and measurements of them, about
PAUSE = 0.15  # between two launches, as a part of the middle one's length
PARTITIONED = ", partitioned"
HYPERVISOR, NOBODY = "hypervisor", "not visible"
TOOK, WHY = "Who else took time", "Why else windows were rejected"  # headings of what disturbed
TAKING = (ReasonKind.FOREIGN_LOAD, ReasonKind.NEIGHBOURS, ReasonKind.STEAL)  # reasons for which somebody took time
WINDOW = [*LAUNCH, "window"]
SHOWN = [
    "study",
    "cohort",
    "launch",
    "lead",
    "round",
    "window",
    "seconds",
    "what",
    "relative_rate",
    "valid",
    "reasons",
]
SHOWN += ["platform"]
DISTURBED = [*WINDOW, "cause", "share_pct", "heading"]


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


@once
def rates(results: Results) -> pd.DataFrame:
    """The rates of the study."""
    return relative_rates(results.windows)


def chosen_launches(source: pd.DataFrame, started: pd.DataFrame) -> list[tuple[str, int]]:
    """The launches that are drawn, in the order of their start: all, or the first, the last and evenly spaced ones."""
    shown = source[source["relative_rate"].notna()]
    sizes = shown.groupby(LAUNCH).size()
    times = started.drop_duplicates(LAUNCH).set_index(LAUNCH)["started"]
    order = sorted(sizes.index, key=lambda place: (str(times.get(place, "")), place))
    launches = [(str(cohort), int(launch)) for cohort, launch in order]
    most = min(LAUNCHES, max(2, int(MARKS / sizes.mean()))) if launches else 0
    if len(launches) <= most:
        return launches
    return [launches[round(index * (len(launches) - 1) / (most - 1))] for index in range(most)]


def in_a_row(source: pd.DataFrame, launches: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """The rows of these launches with their `minutes`: of measuring, launch after launch, without what lay between."""
    drawn = source[pd.MultiIndex.from_frame(source[LAUNCH]).isin(list(launches))]  # few of thousands
    parts = {place: rows for place, rows in drawn.groupby(LAUNCH, sort=False) if place in set(launches)}
    lasted = {place: float(rows["seconds"].max()) for place, rows in parts.items()}
    pause = PAUSE * sorted(lasted.values())[len(lasted) // 2] if lasted else 0.0
    begin, placed = 0.0, []
    for number, place in enumerate((place for place in launches if place in parts), start=1):
        rows = parts[place]
        placed.append(rows.assign(launch=number, minutes=(begin + rows["seconds"]) / 60))
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
