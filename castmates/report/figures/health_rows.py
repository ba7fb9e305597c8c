"""What the figure `health` shows: a row per mark, from the tables and from what the collectors left."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd

from castmates.analysis.design.costs import costs as pooled_costs
from castmates.report.launch_facts import Response
from castmates.report.once_per_results import once
from castmates.report.results import Results, records
from castmates.report.text import costs
from castmates.report.text.words import plain
from castmates.study.reasons import listed_in

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
LEFT_OUT = "left out"  # of every slice
Row = dict[str, Any]


@once
def rows(results: Results) -> pd.DataFrame:
    """All marks of all panels; `value` is NaN where there is none."""
    if not len(results.windows):
        return pd.DataFrame(columns=COLUMNS)
    marks = [*_rejected(results), *_by_launch(results), *_settling(results), *_costs(results)]
    common = {"study": results.name, "platform": ", ".join(results.platforms), "within_launch": False, "verdict": ""}
    empty = {"place": math.nan, "low": math.nan, "high": math.nan, "launches": math.nan}
    return pd.DataFrame([common | empty | row for row in marks], columns=COLUMNS)


def looked_at(results: Results) -> list[tuple[str, int]]:
    """The launches whose samples are read: all, or evenly spaced ones in the order of their start."""
    measured = results.launches[results.launches["status"] == "measured"].sort_values("started", kind="stable")
    launches = list(zip(measured["cohort"], measured["launch"].astype(int), strict=True))
    if len(launches) <= LOOKED_AT:
        return launches
    return [launches[round(place * (len(launches) - 1) / (LOOKED_AT - 1))] for place in range(LOOKED_AT)]


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


def _settling(results: Results) -> list[Row]:
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


def _costs(results: Results) -> list[Row]:
    pairs = costs.pairs_of(results)
    if not len(pairs):
        return []
    return [
        {"panel": COSTS, "what": row["collector"], "value": row["change_pct"], "low": row["low"], "high": row["high"],
         "within_launch": not row["between_launches"], "launches": row["launches"]}
        for row in records(pooled_costs(pairs))
    ]  # fmt: skip
