"""How much of a launch's time after the barrier is in slices that count, and where the rest goes, for each lead."""

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import launches, verdicts
from benchmarks.common import Report, TimeBox, arguments_of, percent, run, scratch
from benchmarks.launch_cost import launched
from benchmarks.machine import ROOT
from benchmarks.verdicts import Aim
from castmates.study.spec import Plan

AIM = Aim(least=80.0)  # per cent
PARTS = {
    "counted": "**slices that count, once they have settled**",
    "settle": "settle time of these",
    "rejected": "slices that were rejected",
    "dropped": "slices that were dropped with their cycle, or with their whole window",
    "watched": "watched cycles, where they are additional",
    "edges": "edges: from the end of a slice to the next one",
    "stretches": "between stretches: masks, eviction, lead-in",
    "rounds": "between rounds: judging, learning to settle",
    "warm-up": "before the first slice: every scene warms up; after the last one",
    "cost windows": "windows that show what watching costs",
    "dismissal": "members end by themselves",
    "clean-up": "clean-up",
}


def breakdown(slices: pd.DataFrame, after: Mapping[str, float]) -> dict[str, float]:
    """Where a launch's seconds after the barrier went, by part.

    `after` has the seconds of its rounds, and of what came after them.
    """
    each = slices.sort_values(["slice", "role"], ascending=[True, False]).drop_duplicates("slice")  # who ends it
    switched, closed, counted, watched = (
        each[name].to_numpy() for name in ("switch_ns", "close_ns", "counted", "watched")
    )
    begun = (switched + 1e9 * each["steady_s"].to_numpy()).clip(each["open_ns"].to_numpy(), closed)
    gaps, rounds, stretches = (switched[1:] - closed[:-1]) / 1e9, each["round"].to_numpy(), each["stretch"].to_numpy()
    same_round = rounds[1:] == rounds[:-1]
    same_stretch = same_round & (stretches[1:] == stretches[:-1])
    whole, lost, disturbed = (closed - switched) / 1e9, ~counted & ~watched, (each["reasons"] != "").to_numpy()
    parts = {
        "counted": float((closed - begun)[counted].sum() / 1e9),
        "settle": float((begun - switched)[counted].sum() / 1e9),
        "rejected": float(whole[lost & disturbed].sum()),
        "dropped": float(whole[lost & ~disturbed].sum()),
        "watched": float(whole[~counted & watched].sum()),
        "edges": float(gaps[same_stretch].sum()),
        "stretches": float(gaps[same_round & ~same_stretch].sum()),
        "rounds": float(gaps[~same_round].sum()),
        "warm-up": after["rounds"] - float(closed[-1] - switched[0]) / 1e9,
    }
    return parts | {part: after.get(part, 0.0) for part in PARTS if part not in parts}


def main() -> None:
    """Measure launches of every lead in turns; print their shares and the breakdown."""
    options = _options()
    study = launches.study_of(options.study, options.seed)
    antagonists = options.antagonists or study.antagonists
    report = Report("Share of the time in slices that count", "share")
    found: dict[str, list[tuple[dict[str, float], dict[str, Any]]]] = {lead: [] for lead in options.leads}
    with scratch() as folder:
        plans = {lead: launches.cohort_plan(study, lead, antagonists, folder) for lead in options.leads}
        for number in TimeBox(options.minutes).portions():
            for lead in random.Random(f"{options.seed}/{number}").sample(options.leads, len(options.leads)):
                found[lead].append(_measure(plans[lead], number + 1, folder))
    _tell(found, antagonists, plans, report)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=8)
    parser.add_argument("--study", type=Path, default=Path("config/config.yaml"), help="study that provides the budget")
    parser.add_argument("--leads", nargs="+", default=["dlrm-train", "mobilenetv2-infer", "chase"])
    parser.add_argument("--antagonists", nargs="+", help="the study's antagonists if left out")
    return parser.parse_args()


def _measure(plan: Plan, number: int, folder: Path) -> tuple[dict[str, float], dict[str, Any]]:
    """A launch's seconds by part, and its record."""
    launch = launched(ROOT, plan, number, folder)
    place = folder / ROOT.name / launches.numbered(plan, number).path
    record = json.loads((place / "launch.json").read_text())
    return breakdown(pd.read_parquet(place / "slices.parquet"), launch.seconds), record


def _tell(
    found: Mapping[str, Sequence[tuple[dict[str, float], dict[str, Any]]]],
    antagonists: Sequence[str],
    plans: Mapping[str, Plan],
    report: Report,
) -> None:
    design = next(iter(plans.values())).launches[0].design
    report.text(
        f"Launches of {design.rounds} rounds with windows of {design.window:g} s, beside {', '.join(antagonists)}, a "
        "launch of each lead in turns. The time after the barrier is everything from `all ready` to the end of the "
        "launch, clean-up included; writing the tables is not in it."
    )
    records = {lead: [record for _, record in launches_] for lead, launches_ in found.items()}
    sums = {lead: _sum([parts for parts, _ in launches_]) for lead, launches_ in found.items()}
    rows = [
        ["launches", *(str(len(one)) for one in found.values())],
        ["slice, ms", *(_lengths(records[lead]) for lead in found)],
        [
            "time after the barrier, s a launch",
            *(f"{sum(sums[lead].values()) / len(found[lead]):.1f}" for lead in found),
        ],
    ]
    rows += [
        [label, *(percent(sums[lead][part] / sum(sums[lead].values())) for lead in found)]
        for part, label in PARTS.items()
    ]
    report.table(["", *found], rows)
    for lead, launches_ in found.items():
        shares = [100 * parts["counted"] / sum(parts.values()) for parts, _ in launches_]
        report.found(
            verdicts.mean(f"{lead}: time after the barrier in slices that count", shares, "%", "launches", AIM)
        )


def _lengths(records: Sequence[Mapping[str, Any]]) -> str:
    lengths = [1e3 * float(record["pace"]["slice"]) for record in records]
    return f"{min(lengths):.0f}" if max(lengths) - min(lengths) < 1 else f"{min(lengths):.0f} to {max(lengths):.0f}"


def _sum(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {part: sum(one[part] for one in parts) for part in PARTS}


if __name__ == "__main__":
    run(main)
