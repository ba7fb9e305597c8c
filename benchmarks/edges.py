"""What an edge costs: from the end of a slice until the next one runs, with signals and with control groups, in turns.

Also how much CPU time the runner takes while slices are open.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import launches, verdicts
from benchmarks.common import Report, TimeBox, arguments_of, run, say, scratch
from benchmarks.machine import ROOT
from benchmarks.precision import Floats
from benchmarks.verdicts import Aim
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.linux import cgroups
from castmates.study.plan_text import plan_text
from castmates.study.spec import Plan

AIM_EDGE, AIM_CPU = Aim(most=3.0), Aim(most=1.0)  # ms, per cent of a CPU
SIGNALS, CGROUP = "signals", "cgroup"
SETTLE = 0.0  # so that the first step after a switch is seen


@dataclass(frozen=True)
class Launch:
    """The results of one launch."""

    edges: Floats  # ms from the end of a slice until the next scene is let go
    between: Floats  # those of them that lie between two cycles, where everyone is looked after
    first_steps: Floats  # ms from then to the first heartbeat of the lead
    steps: Floats  # ms that a step of the lead takes
    slice: float  # seconds
    beyond: float  # the runner's CPU time while slices are open, as a share of a CPU
    whole: float  # its CPU time in all of the stretches, edges included


Figure = Callable[[Launch], float]


def main() -> None:
    """Measure launches with each freezer in turns, then print the tables."""
    options = _options()
    study = launches.study_of(
        options.study, options.seed, rounds=options.rounds, settle=SETTLE, longest_settle=SETTLE, spare_rounds=0
    )
    title = f"{options.lead} beside {', '.join(options.antagonists)}"
    report = Report(f"Edges: from the end of a slice to the next one, {title}", "edges")
    kinds = [SIGNALS, *([CGROUP] if cgroups.find_home() else [])]
    found: dict[str, list[Launch]] = {kind: [] for kind in kinds}
    with scratch() as folder:
        plan = launches.cohort_plan(study, options.lead, options.antagonists, folder)
        for number in TimeBox(options.minutes).portions():
            for kind in random.Random(f"{options.seed}/{number}").sample(kinds, len(kinds)):
                found[kind].append(_measure(plan, number + 1, kind, folder / kind))
    _tell(found, report)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=3)
    parser.add_argument("--lead", default="chase")
    parser.add_argument("--antagonists", nargs="+", default=["stream"])
    parser.add_argument("--study", type=Path, default=Path("config/config.yaml"), help="study that provides the budget")
    parser.add_argument("--rounds", type=int, default=4, help="of each launch")
    return parser.parse_args()


def _measure(plan: Plan, number: int, kind: str, folder: Path) -> Launch:
    launch = launches.numbered(plan, number)
    place = folder / launch.path
    place.mkdir(parents=True)
    replace_text(place / "plan.json", plan_text(launches.only(plan, launch)))
    words = [str(ROOT / "benchmarks" / "edge_parts.py"), kind, str(place / "plan.json"), launch.path, str(place)]
    done = subprocess.run(
        [sys.executable, "-P", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=launches.environment_of(ROOT), check=False,
    )  # fmt: skip
    if done.returncode != 0 or not (place / "parts.json").is_file():
        said = done.stderr.strip().splitlines() or ["no message"]
        raise CastmatesError(f"launch {launch.path} could not be measured: {said[-1].removeprefix('castmates: ')}")
    record, parts = (json.loads((place / name).read_text()) for name in ("launch.json", "parts.json"))
    if record["status"] != "measured" or record["freezer"] != kind:
        raise CastmatesError(f"launch {launch.path} failed ({record['reason'] or record['freezer']}).")
    slices = pd.read_parquet(place / "slices.parquet")
    seconds, own = parts["stretches"]
    lead = launch.cohort.lead.name
    measured = Launch(
        edges=edges(slices),
        between=edges(slices, between_cycles=True),
        first_steps=first_steps(slices, lead),
        steps=steps(slices, lead),
        slice=float(record["pace"]["slice"]),
        beyond=parts["open"][1] / parts["open"][0],
        whole=own / seconds,
    )
    say(f"{kind}, launch {number}: {len(measured.edges)} edges, {np.median(measured.edges):.2f} ms in the middle")
    return measured


def edges(slices: pd.DataFrame, between_cycles: bool = False) -> Floats:
    """Milliseconds between two slices of a stretch of which neither is watched; or those between two cycles alone."""
    each = slices.drop_duplicates("slice").sort_values("switch_ns")
    before = each.groupby(["round", "stretch"])[["close_ns", "watched", "cycle"]].shift(1)
    usual = ~each["watched"].to_numpy(dtype=bool) & (before["watched"] == False).to_numpy(dtype=bool)  # noqa: E712
    if between_cycles:
        usual &= (each["cycle"] != before["cycle"]).to_numpy(dtype=bool)
    return np.asarray((each["switch_ns"] - before["close_ns"])[usual].to_numpy(dtype=float) / 1e6)


def first_steps(slices: pd.DataFrame, lead: str) -> Floats:
    """Milliseconds from the switch to the lead's first heartbeat in slices that are not watched."""
    own = slices[(slices["member"] == lead) & ~slices["watched"] & slices["first_ns"].notna()]
    return np.asarray((own["first_ns"] - own["switch_ns"]).to_numpy(dtype=float) / 1e6)


def steps(slices: pd.DataFrame, lead: str) -> Floats:
    """Milliseconds that a step of the lead takes, by slice that is not watched; in slices that do not count, too."""
    own = slices[(slices["member"] == lead) & ~slices["watched"] & (slices["beats"] > 1)]
    return np.asarray(((own["last_ns"] - own["first_ns"]) / (own["beats"] - 1)).to_numpy(dtype=float) / 1e6)


def _tell(found: dict[str, list[Launch]], report: Report) -> None:
    lengths = [1e3 * one.slice for launches in found.values() for one in launches]
    report.text(
        f"Launches per freezer in turns, slices of {min(lengths):.0f} to {max(lengths):.0f} ms. An edge lasts from "
        "the moment at which a slice is closed until the members of the next one are released, by the runner's own "
        "records of two slices of a stretch that are not watched. When a released member really runs is not "
        "recorded; the lead's first heartbeat after it is an upper bound, which includes the rest of an interrupted "
        "step. Between two cycles the runner also checks all members. Each launch gives its median and "
        "percentile, which are averaged."
    )
    if CGROUP not in found:
        report.text("No control group can be frozen here, so that signals alone were measured.")
    figures: list[tuple[str, str, Figure, Aim | None]] = [
        ("edge, median", "ms", lambda one: _middle(one.edges), AIM_EDGE),
        ("edge, 99th percentile", "ms", lambda one: float(np.quantile(one.edges, 0.99)), AIM_EDGE),
        ("edge between two cycles, median", "ms", lambda one: _middle(one.between), None),
        ("the runner's CPU time while slices are open", "% of a CPU", lambda one: 100 * one.beyond, AIM_CPU),
        ("the runner's CPU time in all, edges included", "% of a CPU", lambda one: 100 * one.whole, None),
        ("first heartbeat of the lead after an edge, median", "ms", lambda one: _middle(one.first_steps), None),
        ("a step of the lead, median", "ms", lambda one: _middle(one.steps), None),
    ]
    for kind, measured in found.items():
        for what, unit, figure, aim in figures:
            values = [figure(one) for one in measured]
            report.found(verdicts.mean(f"{kind}: {what}", values, unit, "launches", aim))


def _middle(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


if __name__ == "__main__":
    run(main)
