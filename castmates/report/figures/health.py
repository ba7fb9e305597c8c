"""The figure `health`: one glance at whether a study is to be trusted; what was not recorded is marked as missing."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from castmates.analysis.core import once
from castmates.analysis.design.pilot import costs as pooled
from castmates.report.figures.antagonists import antagonists, other_looks, user_first
from castmates.report.figures.antagonists import looks as looks_of
from castmates.report.figures.marks import WITHIN_LAUNCH, bar, dot
from castmates.report.figures.sheet import UNDER, Sheet, drawing, evenly, without_axis
from castmates.report.figures.style import ALARM, GREY, INK, PAGE, SMALL, squeezed
from castmates.report.launch_record import Response
from castmates.report.results import Results, records
from castmates.report.text import costs
from castmates.report.text.words import Quantity, counted, listed, number, plain, units
from castmates.study.reasons import listed_in

FIGURE = {"title": "Health", "part": "health", "place": 300}
ROW, HEAD = 0.22, 0.3  # inches: of a line, above a panel
NAME, LEFT, RIGHT = 24, 1.45, 0.2  # letters and inches of a line's name
NOTHING = "not recorded"
ALL_THE_TIME = 99.95  # per cent
Row = dict[str, Any]
REJECTED, LAUNCHES = "Rejected, by reason", "By launch"
COUNTED, COSTS, SETTLING = "Counters", "Cost of collectors", "After a switch"
PANELS = (REJECTED, LAUNCHES, SETTLING, COSTS, COUNTED)
CURVES = (LAUNCHES, SETTLING)  # panels that have a point for each place
COLUMNS = [
    "study",
    "panel",
    "what",
    "place",
    "value",
    "low",
    "high",
    "within_launch",
    "verdict",
    "launches",
    "platform",
]
MOST = 8  # lines of a panel
MOST_PARTS = 96  # of the time after a switch
LOOKED_AT = 100  # launches whose samples are read
ALL, LOST, STOLEN, TAKEN, HOT = "any reason", "rejected", "stolen", "others", "throttled"
KINDS = {  # of what happened to a launch: colour and marker
    LOST: (INK, "o"),
    STOLEN: (ALARM, "s"),
    TAKEN: (GREY, "^"),
    HOT: ("#9a9a9a", "D"),
}
LEFT_OUT = "left out"  # of every slice
INSIDE: Any = {  # a legend in its axes
    "loc": "upper left", "ncols": 2, "fontsize": SMALL, "handletextpad": 0.1, "columnspacing": 0.8, "borderpad": 0.1,
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """A member's rate against the time since a change of scene, in slices of one length of one launch."""

    watched: float  # seconds that it covers
    slices: int
    logs: Sequence[float | None]  # of its parts

    @classmethod
    def of(cls, seen: Response, member: str) -> "Curve | None":
        """A member's curve, where it has one."""
        logs = seen.response.get(member)
        return cls(seen.watched, max(1, seen.curves.get(member, 1)), logs) if logs else None

    def at(self, seconds: float) -> float | None:
        """The log rate at a time; None beyond its end, and where nothing was seen."""
        part = math.floor(seconds / self.watched * len(self.logs))
        return self.logs[part] if part < len(self.logs) else None


def draw(results: Results) -> tuple[Figure, pd.DataFrame]:
    source = rows(results)
    return drawing(results, source, lacking, lambda: _figure(source, results))


def lacking(results: Results) -> str:
    source = rows(results)
    if source.empty:
        why = f": {failed}" if (failed := _failed(results)) else ""
        return f"Nothing of the study {results.name} was measured{why}."
    return "" if _telling(source) else f"No disturbance of the study {results.name} was recorded."


def caption(results: Results) -> str:
    looked = looked_at(results)
    marks = rows(results)
    shown = _telling(marks)
    priced = marks[marks["panel"] == COSTS]
    launches = int((results.launches["status"] == "measured").sum())
    some = f"all {counted(launches, 'launch')}" if len(looked) == launches else f"{len(looked)} of {launches} launches"
    said = {
        REJECTED: "the share of all windows that each reason spoiled",
        LAUNCHES: f"of {some}, what was rejected, and the share of a processor's time that others took",
        SETTLING: "the lead's rate against its later rate; hollow marks are left out",
        COSTS: "what each collector does to the lead's rate, in pairs with and without it, with 95 % t "
        f"intervals between launches ({units(priced['launches'])})",
        COUNTED: "the share of the time for which events were counted",
    }
    parts = [f"{panel}: {words}." for panel, words in said.items() if panel in shown]
    failed = f" {failed}." if (failed := _failed(results)) else ""
    return f"{' '.join(parts)}{failed} "


def _telling(source: pd.DataFrame) -> list[str]:
    """The panels that show something: no bar of nothing, and not that counters ran all the time."""
    known = source.dropna(subset=["value"])
    values = {str(panel): rows["value"] for panel, rows in known.groupby("panel", sort=False)}
    nothing = {name for name, own in values.items() if name == REJECTED and (own == 0).all()}
    nothing |= {name for name, own in values.items() if name == COUNTED and (own >= ALL_THE_TIME).all()}
    return [name for name in PANELS if name in values and name not in nothing]


def alternative(results: Results) -> str:
    source = rows(results)
    parts = []
    for panel in PANELS:
        own = source[source["panel"] == panel].dropna(subset=["value"])
        if panel in CURVES:
            own = own.sort_values("value", key=abs, ascending=False, kind="stable").drop_duplicates("what")
        marks = [f"{row['what']} {number(row['value'], 2)}" for row in own.head(6).to_dict("records")]
        parts.append(f"{panel}: {listed(marks) if marks else NOTHING}")
    return f"Health of the study. {'; '.join(filter(None, [_failed(results), *parts]))}."


def _failed(results: Results) -> str:
    """How many launches failed; nothing where none did."""
    failed = int((results.launches["status"] == "failed").sum())
    return f"{failed} of {counted(len(results.launches), 'launch')} failed" if failed else ""


def _figure(source: pd.DataFrame, results: Results) -> Figure:
    paints: dict[str, Callable[[Axes, pd.DataFrame, Results], None]] = {
        REJECTED: _bars, LAUNCHES: _launches, SETTLING: _settling, COSTS: _costs, COUNTED: _bars,
    }  # fmt: skip
    known, telling = source.dropna(subset=["value"]), _telling(source)
    own = {panel: known[known["panel"] == panel] for panel in telling}
    lines = {panel: 5 if panel in CURVES else max(3, min(MOST, rows["what"].nunique())) for panel, rows in own.items()}
    sheet, half = Sheet(results), PAGE / 2
    for begin in range(0, len(telling), 2):
        pair = telling[begin : begin + 2]
        columns = [(column * half + LEFT, half - LEFT - RIGHT) for column in range(len(pair))]
        high = ROW * max(lines[panel] for panel in pair)
        for axes, panel in zip(sheet.beside(high, *columns, above=HEAD), pair, strict=True):
            axes.set_title(panel, loc="left", pad=4, fontweight="bold")
            paints[panel](axes, own[panel], results)
        sheet.skip(UNDER)
    sizes = {panel: int((source["panel"] == panel).sum()) for panel in PANELS if panel not in CURVES}
    hidden = sum(max(0, size - MOST) for size in sizes.values())
    there = set(known["panel"])
    missing = [panel.lower() for panel in PANELS if panel not in there]
    parts = [*filter(None, [_failed(results)])]
    parts += ["no window was rejected"] if {REJECTED} & there - set(telling) else []
    parts += ["all events were counted all the time"] if {COUNTED} & there - set(telling) else []
    parts += [f"{NOTHING}: {listed(missing)}"] if missing else []
    parts += [f"{counted(hidden, 'more line')} in the CSV, the worst are drawn"] if hidden else []
    return sheet.finish("; ".join(parts))


def _bars(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    """Shares of windows or, of counters, of the time."""
    shown, counters = own.head(MOST), own["panel"].iloc[0] == COUNTED
    axes.barh(range(len(shown)), shown["value"], height=0.6, color=[INK, *[GREY] * (len(shown) - 1)])
    for y, value in enumerate(shown["value"]):
        axes.text(value, y, f" {number(value)}", va="center", ha="left", fontsize=SMALL)
    axes.set_xlim(0, 115 if counters else max(5.0, 1.18 * shown["value"].max()))
    _names(axes, shown)
    axes.set_xlabel("time for which they counted (%)" if counters else "share of all windows (%)", labelpad=1)


def _launches(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    for what, rows in own.groupby("what", sort=False):
        colour, marker = KINDS[str(what)]
        style: Any = {"marker": marker, "markersize": 2.6, "color": colour, "linestyle": "", "clip_on": False}
        axes.plot(rows["place"], rows["value"], label=str(what), **style)
    axes.set_ylim(0, max(5.0, 1.6 * own["value"].max()))  # with room for the legend
    axes.set_yticks([tick for tick in axes.get_yticks() if tick <= min(100.0, axes.get_ylim()[1])])
    axes.set_xlabel("launches, in the order of their start", labelpad=1)
    axes.set_ylabel("%", labelpad=1)
    axes.locator_params(axis="x", integer=True)
    axes.legend(**INSIDE)


def _settling(axes: Axes, own: pd.DataFrame, results: Results) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6, zorder=1)
    leads = user_first(results, own["what"])
    known = set(antagonists(results))
    looks = other_looks(results, [lead for lead in leads if lead not in known])
    looks |= looks_of(results, [lead for lead in leads if lead in known])
    for lead in leads:
        rows, (colour, marker) = own[own["what"] == lead], looks[lead]
        axes.plot(rows["place"], rows["value"], color=colour, linewidth=0.8, zorder=2)
        style: Any = {"marker": marker, "markersize": 2.8, "color": colour, "linestyle": "", "markeredgewidth": 0.7}
        for verdict, fill in ((LEFT_OUT, "white"), ("", colour)):
            part, label = rows[rows["verdict"] == verdict], None if verdict else str(lead)
            axes.plot(part["place"], part["value"], markerfacecolor=fill, label=label, zorder=3, **style)
    reach = max(2.0, 1.15 * own["value"].abs().max())
    axes.set_ylim(-reach, 1.6 * reach)  # with room for the legend
    axes.set_xlim(left=0)
    axes.set_xlabel("ms since the change", labelpad=1)
    axes.set_ylabel("% of later rate", labelpad=1)
    axes.legend(**INSIDE)


def _costs(axes: Axes, own: pd.DataFrame, _: Results) -> None:
    axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
    shown = own.head(MOST)
    for y, row in enumerate(records(shown)):
        ends = row["low"], row["high"]
        bar(axes, y, *ends, INK, width=1.4, line=WITHIN_LAUNCH if row["within_launch"] else "-", zorder=2)
        words = f"{row['what']}: {Quantity(row['value'], *ends, '%', 2).whole}"
        dot(axes, row["value"], y, (INK, "o"), words)
    _names(axes, shown)
    axes.set_xlabel("change of the lead's rate (%)", labelpad=1)


def _names(axes: Axes, rows: pd.DataFrame) -> None:
    names = [squeezed(name, NAME, 2) for name in rows["what"].astype(str)]
    axes.set_yticks(range(len(rows)), names, fontsize=SMALL, linespacing=0.9)
    axes.set_ylim(max(3, len(rows)) - 0.5, -0.6)
    without_axis(axes)


@once
def rows(results: Results) -> pd.DataFrame:
    """All marks of all panels; `value` is NaN where there is none."""
    if not len(results.windows):
        return pd.DataFrame(columns=COLUMNS)
    marks = [*_rejected(results), *_by_launch(results), *_rates_since_a_switch(results), *_costs_of_collectors(results)]
    common = {"study": results.name, "platform": ", ".join(results.platforms), "within_launch": False, "verdict": ""}
    empty = {"place": math.nan, "low": math.nan, "high": math.nan, "launches": math.nan}
    return pd.DataFrame([common | empty | row for row in marks], columns=COLUMNS)


def looked_at(results: Results) -> list[tuple[str, int]]:
    """The launches whose samples are read: all, or evenly spaced ones in the order of their start."""
    measured = results.launches[results.launches["status"] == "measured"].sort_values("started", kind="stable")
    launches = list(zip(measured["cohort"], measured["launch"].astype(int), strict=True))
    return evenly(launches, LOOKED_AT)


def _rejected(results: Results) -> list[Row]:
    windows = results.windows.drop_duplicates(["cohort", "launch", "window"])
    reasons = windows.loc[~windows["valid"], "reason_kinds"]
    counts = reasons.map(listed_in).explode().value_counts()
    shares = {ALL: len(reasons), **{str(kind): int(count) for kind, count in counts.items()}}
    return [{"panel": REJECTED, "what": what, "value": 100 * count / len(windows)} for what, count in shares.items()]


def _by_launch(results: Results) -> list[Row]:
    """Rejected windows of every launch; what was taken from those that are looked at, and how long counters ran."""
    measured = results.launches[(results.launches["status"] == "measured") & (results.launches["windows"] > 0)]
    measured = measured.sort_values("started", kind="stable").reset_index(drop=True)
    shares = (100 * measured["windows_rejected"] / measured["windows"]).tolist()
    marks = [{"panel": LAUNCHES, "what": LOST, "place": place, "value": share} for place, share in enumerate(shares, 1)]
    places = {(row["cohort"], int(row["launch"])): place + 1 for place, row in enumerate(measured.to_dict("records"))}
    wanted = ["cohort", "launch", "window", "subject", "metric", "value"]
    samples = results.launch_table("samples", looked_at(results), wanted)
    return marks + _taken(samples, results.windows, places) + _ran(samples)


def _taken(samples: pd.DataFrame, windows: pd.DataFrame, places: dict[tuple[str, int], int]) -> list[Row]:
    """What was stolen of a CPU's time on average, what others took of one, and how often heat held it back."""
    launch = ["cohort", "launch"]
    once = windows.drop_duplicates([*launch, "window"])
    once = once[once["open_s"] > 0]  # of a window without a slice that counts, what was read belongs to no time
    seconds = once.groupby(launch)["open_s"].sum()
    known = samples[samples["value"].notna()]
    own = {metric: known[known["metric"] == metric] for metric in ("steal_s", "foreign_s", "coolers")}
    own |= {
        name: own[name].merge(once[[*launch, "window"]], on=[*launch, "window"]) for name in ("steal_s", "foreign_s")
    }
    stolen = (
        own["steal_s"].groupby(launch)["value"].sum() / own["steal_s"].groupby(launch)["subject"].nunique() / seconds
    )
    taken = own["foreign_s"].groupby(launch)["value"].sum() / seconds
    hot = own["coolers"].assign(hot=own["coolers"]["value"] > 0).groupby(launch)["hot"].mean()
    return [
        {"panel": LAUNCHES, "what": what, "place": places[key], "value": 100 * float(value)}
        for what, shares in ((STOLEN, stolen), (TAKEN, taken), (HOT, hot))
        for key, value in shares.dropna().items()
        if key in places
    ]


def _ran(samples: pd.DataFrame) -> list[Row]:
    shares = samples.loc[samples["metric"] == "running_share", "value"].dropna()
    if shares.empty:
        return []
    return [
        {"panel": COUNTED, "what": "the least", "value": 100 * float(shares.min())},
        {"panel": COUNTED, "what": "the median", "value": 100 * float(shares.median())},
    ]


def _rates_since_a_switch(results: Results) -> list[Row]:
    """Each lead's rate against the time since the last change of scene, averaged over its launches."""
    found: dict[str, list[Curve]] = {}
    waited: dict[str, list[float]] = {}
    for record in results.records:
        if settled := record.settled:
            for member in (member.name for member in record.members if member.role == "lead"):
                own = [curve for seen in (*settled.earlier, settled) if (curve := Curve.of(seen, member)) is not None]
                if own:
                    found.setdefault(plain(member), []).extend(own)
                    waited.setdefault(plain(member), []).append(settled.seconds)
    return [mark for lead, curves in found.items() for mark in _marks(lead, curves, waited[lead])]


def _marks(lead: str, curves: Sequence[Curve], waited: Sequence[float]) -> Iterator[Row]:
    """The mean of curves at each time, by slices: those of launches that settle slowly cover more of it."""
    longest = max(curve.watched for curve in curves)
    width = max(min(curve.watched / len(curve.logs) for curve in curves), longest / MOST_PARTS)
    left_out = 1000 * fmean(waited)
    for part in range(round(longest / width)):
        seen = [(log, curve.slices) for curve in curves if (log := curve.at((part + 0.5) * width)) is not None]
        place = 1000 * (part + 0.5) * width
        value = 100 * math.expm1(fmean(*zip(*seen, strict=True))) if seen else math.nan
        verdict = LEFT_OUT if place < left_out else ""
        yield {
            "panel": SETTLING, "what": lead, "place": place, "value": value, "verdict": verdict, "launches": len(waited)
        }  # fmt: skip


def _costs_of_collectors(results: Results) -> list[Row]:
    pairs = costs.pairs_of(results)
    if not len(pairs):
        return []
    return [
        {"panel": COSTS, "what": row["collector"], "value": row["change_pct"], "low": row["low"], "high": row["high"],
         "within_launch": not row["between_launches"], "launches": row["launches"]}
        for row in records(pooled(pairs))
    ]  # fmt: skip
