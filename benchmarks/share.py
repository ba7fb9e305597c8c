"""How much of a block's time is inside valid windows, by default and with long windows, and where the rest goes."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import blocks, usual
from benchmarks.common import Report, TimeBox, arguments_of, percent, run, say, scratch
from castmates.study.spec import Design, Plan

AIM_DEFAULT, AIM_LONG = 0.80, 0.95
WAYS = ("ours", "usual way")
PARTS = {
    "valid": "valid windows",
    "rejected": "rejected windows",
    "settle": "settle time",
    "waiting": "longer settling (a step owed) and opening edges",
    "between": "between windows: closing edges, ledger, freeze and thaw",
    "rounds": "between rounds",
    "around": "before the first scene and after the last window",
    "ending": "setting up and ending (members end by themselves, clean-up)",
}


@dataclass(frozen=True)
class Shares:
    """What the windows are of a way's time."""

    after_barrier: float
    whole: float


def breakdown(record: Mapping[str, Any], windows: pd.DataFrame) -> dict[str, float]:
    """Where a block's seconds after the barrier went, by part, from its own records."""
    each = windows.drop_duplicates("window").sort_values("open_ns")
    opened, closed = each["open_ns"].to_numpy(), each["close_ns"].to_numpy()
    switched, valid = each["switch_ns"].to_numpy(dtype="int64"), each["valid"].to_numpy(dtype=bool)
    inside, settled = (closed - opened) / 1e9, (opened - switched) / 1e9
    gaps = (switched[1:] - closed[:-1]) / 1e9
    same_round = each["round"].to_numpy()[1:] == each["round"].to_numpy()[:-1]
    # The settle time may have been raised meanwhile: rounds before that waited less than is charged to it here.
    asked = settled.clip(max=record["settle"]["seconds"])
    seconds = record["seconds"]
    return {
        "valid": float(inside[valid].sum()),
        "rejected": float(inside[~valid].sum()),
        "settle": float(asked.sum()),
        "waiting": float((settled - asked).sum()),
        "between": float(gaps[same_round].sum()),
        "rounds": float(gaps[~same_round].sum()),
        "around": seconds["measure"] - (closed[-1] - switched[0]) / 1e9,
        "ending": seconds["total"] - seconds["launch"] - seconds["measure"],
    }


def main() -> None:
    """Measure blocks of both kinds and runs of the usual way in turns; print their shares and the breakdown."""
    options = _options()
    study = blocks.study_of(options.study, options.seed)
    lead = options.lead or next(iter(study.leads))
    antagonists = options.antagonists or study.antagonists
    report = Report(f"Share of the time inside windows: {lead} beside {', '.join(antagonists)}", "share")
    with scratch() as folder:
        by_default = blocks.company_plan(study, lead, antagonists, folder)
        patient = blocks.study_of(
            options.study,
            options.seed,
            window=options.long_window,
            longest_window=max(study.budget.longest_window, options.long_window),
            rounds=options.long_rounds,
        )
        with_long = blocks.company_plan(patient, lead, antagonists, folder)
        ours: dict[str, list[blocks.Measured]] = {"default": [], "long": []}
        runs: list[usual.Run] = []
        for number in TimeBox(options.minutes).portions():
            ours["default"].append(blocks.measure(by_default, number + 1, folder / "default"))
            if number == 0:
                ours["long"].append(blocks.measure(with_long, 1, folder / "long"))
            runs += _usual_runs(by_default, options.long_window)
        _tell(report, by_default.blocks[0].design, with_long.blocks[0].design, ours, runs)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=3)
    parser.add_argument("--study", type=Path, default=Path("config/config.yaml"), help="study whose budget is used")
    parser.add_argument("--lead", help="the study's first lead if left out")
    parser.add_argument("--antagonists", nargs="+", help="the study's antagonists if left out")
    parser.add_argument("--long-window", type=float, default=5.0, help="seconds")
    parser.add_argument("--long-rounds", type=int, default=1, help="of the block with long windows")
    return parser.parse_args()


def _usual_runs(plan: Plan, long_window: float) -> list[usual.Run]:
    """One run of every kind; each gives both lengths of window."""
    design, company = plan.blocks[0].design, plan.blocks[0].company
    choices = tuple(usual.Choice(design.settle, length) for length in (design.window, long_window))
    windows = usual.Windows(choices, design.steps, design.longest_window)
    say("usual way: one run of each kind")
    return [usual.measure(company, mix, windows) for mix in (None, *plan.mixes)]


def _tell(
    report: Report, design: Design, long: Design, ours: Mapping[str, Sequence[blocks.Measured]], runs: list[usual.Run]
) -> None:
    parts = {kind: _sum([breakdown(one.record, one.windows) for one in measured]) for kind, measured in ours.items()}
    ours_default, ours_long = (_ours(parts[kind], ours[kind]) for kind in ("default", "long"))
    usual_short, usual_long = (_usual(runs, length) for length in (0, 1))
    rows: list[tuple[str, Callable[[Shares], float]]] = [
        ("after the barrier", lambda shares: shares.after_barrier),
        ("of the whole command or run", lambda shares: shares.whole),
    ]
    columns = (ours_default, usual_short, ours_long, usual_long)
    report.text(
        f"Ours: {len(ours['default'])} blocks by the study's budget, and one with long windows. `After the barrier` is "
        "everything from `all ready` to the end of the block, clean-up included; the whole is the command, from the "
        f"start of its interpreter. Usual way: {len(runs)} runs, from their start until they are killed, a warm-up as "
        "long as our settle time."
    )
    header = ["inside valid windows", *(f"{way}, {w:g} s" for w in (design.window, long.window) for way in WAYS)]
    report.table(header, [[name, *(percent(share(one)) for one in columns)] for name, share in rows])
    totals = {kind: sum(part.values()) for kind, part in parts.items()}
    counts = {kind: sum(one.record["windows"] for one in measured) for kind, measured in ours.items()}
    report.table(
        ["our time after the barrier", "default", "ms for each window", "long windows", "ms for each window"],
        [
            [label, *(cell for kind in parts for cell in _cells(parts[kind][part], totals[kind], counts[kind]))]
            for part, label in PARTS.items()
        ],
    )
    report.text(
        f"**Verdict.** By default {_verdict(ours_default.after_barrier, AIM_DEFAULT, design)} "
        f"With long windows {_verdict(ours_long.after_barrier, AIM_LONG, long)}"
    )
    report.text(*blocks.doubts([*ours["default"], *ours["long"]]))


def _cells(seconds: float, total: float, windows: int) -> list[str]:
    return [percent(seconds / total), f"{1000 * seconds / windows:.1f}"]


def _sum(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {part: sum(one[part] for one in parts) for part in PARTS}


def _ours(parts: Mapping[str, float], measured: Sequence[blocks.Measured]) -> Shares:
    return Shares(parts["valid"] / sum(parts.values()), parts["valid"] / sum(one.seconds for one in measured))


def _usual(runs: Sequence[usual.Run], length: int) -> Shares:
    inside = sum(one.inside[length] for one in runs)
    whole = sum(one.seconds[length] for one in runs)
    return Shares(inside / (whole - sum(one.start_up for one in runs)), inside / whole)


def _verdict(share: float, aim: float, design: Design) -> str:
    most = design.window / (design.window + design.settle)
    said = f"{percent(share)} of the time after the barrier is inside valid windows"
    if share >= aim:
        return f"{said}: the aim of {percent(aim, 0)} is met."
    return (
        f"{said}: the aim of {percent(aim, 0)} is missed (a window of {design.window:g} s after {design.settle:g} s of "
        f"settling could give {percent(most)} at best; the table shows where the rest goes)."
    )


if __name__ == "__main__":
    run(main)
