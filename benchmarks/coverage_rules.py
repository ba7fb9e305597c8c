"""Intervals after the rules that look at the data: `rounds: auto`, and the stopping rule of `precision`; simulated."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from benchmarks.common import Report
from benchmarks.simulated_cast import LEAD, SHORT, Counts, two_mixes
from benchmarks.simulated_slices import GAP, SWITCH, Machine, Studies, simulate
from castmates.analysis.core import Contrast
from castmates.analysis.design.pilot import Width, against_alone, best_rounds, is_precise_enough, spread_of, widths_of
from castmates.analysis.keys import LAUNCH
from castmates.analysis.statistics.intervals import estimate
from castmates.analysis.statistics.pairs import pair
from castmates.study.budget_keys import Budget
from castmates.study.rounds import FIRST_LAUNCHES, Cost, cautious_rounds, part_of

ROUND = 7 * SHORT.cycles * (SHORT.slice + SWITCH) + GAP  # seconds
LAUNCHES = {"native": 2.0, "Model Garden": 15.0}  # seconds
MOST_ROUNDS = 10  # what the rule gives at most at these costs
LONG = 10_000.0
COUNTS = (3, 5, 10)  # launches
PRECISIONS = (0.02, 0.03, 0.05)
FIXED_ROUNDS = 3


def tell(report: Report, machines: Mapping[str, Machine], studies: int, seed: int) -> None:
    """Both tables."""
    lines = []
    for name, machine in machines.items():
        for kind, seconds in LAUNCHES.items():
            shares, decided = after_decision(machine, seconds, studies, seed)
            low, middle, high = np.quantile(decided, [0.1, 0.5, 0.9], method="nearest")
            cells = [f"{100 * shares[count]:.1f}" for count in COUNTS]
            lines.append([name, f"{kind}, {seconds:g} s", f"{middle} ({low} to {high})", *cells])
    report.table(["machine", "a launch", "rounds decided", *(f"{count} launches" for count in COUNTS)], lines)
    report.text(
        f"`rounds: auto`, both mixes against alone, the first launches included; {studies} studies a line, a round "
        f"takes {ROUND:.1f} s (binomial error of one mix: {100 * (0.95 * 0.05 / studies) ** 0.5:.1f})."
    )
    lines = []
    for name, machine in machines.items():
        widths = looked_at(machine, studies, seed)
        for wanted in PRECISIONS:
            held, launches, narrow = stopped(widths, wanted)
            lines.append([name, f"{100 * wanted:g} %", f"{100 * held:.1f}", f"{launches:.1f}", f"{100 * narrow:.1f}"])
    report.table(["machine", "precision", "covers", "launches", "narrow enough"], lines)
    report.text(
        "`precision`: both mixes against alone at the end, how many launches there are then, and in how many studies "
        "both are known as well as was wanted before the budget of 20 launches ends."
    )


def after_decision(machine: Machine, launch: float, studies: int, seed: int) -> tuple[dict[int, float], Counts]:
    """How often the intervals hold the truth after so many launches, and the rounds that each study decided on."""
    cost = Cost(launch, ROUND)
    made = simulate(machine, two_mixes(), studies, COUNTS[-1], MOST_ROUNDS, seed)
    first = _pairs(made, _with_rounds(made.windows, cautious_rounds(cost, LONG), launches=FIRST_LAUNCHES))
    decided = {}
    for study, own in first.groupby("platform", observed=True):
        spreads = [
            spread_of(str(mix), [launch["difference"] for _, launch in each.groupby(LAUNCH)])
            for mix, each in own.groupby("row")
        ]
        decided[study] = best_rounds([spread for spread in spreads if spread is not None], [cost], LONG)
    wanted = made.windows["platform"].map(decided).astype(int)
    wanted = wanted.where(made.windows["launch"] > FIRST_LAUNCHES, cautious_rounds(cost, LONG))
    pairs, truths = _pairs(made, _with_rounds(made.windows, wanted)), _truths(made, machine)
    shares = {}
    for count in COUNTS:
        table = estimate(pairs[pairs["launch"] <= count], by=["platform", "row"]).reset_index()
        true = table["row"].map(truths)
        shares[count] = float(((table["low"] <= true) & (true <= table["high"])).mean())
    return shares, np.array(list(decided.values()))


Looks = dict[str, dict[str, list[tuple[Width, bool]]]]  # study -> mix -> what each look sees, and whether it holds


def looked_at(machine: Machine, studies: int, seed: int) -> Looks:
    """What every look at each study would show of its mixes."""
    counts = Budget(precision=PRECISIONS[0]).looks
    made = simulate(machine, two_mixes(), studies, counts[-1], FIXED_ROUNDS, seed)
    seen: Looks = {}
    for count in counts:
        now = part_of(made.plan, {launch.path for launch in made.plan.launches if launch.number <= count})
        table = Contrast(made.windows[made.windows["launch"] <= count], against_alone(now)).rows()
        for study, own in table.groupby("platform", observed=True):
            widths = {mix: width for (mix, _), width in widths_of(own).items()}
            for row in own.itertuples():
                true = -np.log1p(-machine.loss(f"corun:{row.mix}", LEAD))
                holds = bool(row.low <= true <= row.high)
                seen.setdefault(str(study), {}).setdefault(str(row.mix), []).append((widths[str(row.mix)], holds))
    return seen


def stopped(seen: Looks, wanted: float) -> tuple[float, float, float]:
    """How often intervals hold at the end, after how many launches, and how many studies are precise then."""
    held, launches, narrow = [], [], []
    for mixes in seen.values():
        histories = [[width for width, _ in looks] for looks in mixes.values()]
        ends = range(1, len(histories[0]) + 1)
        end = next((at for at in ends if all(is_precise_enough(each[:at], wanted) for each in histories)), ends[-1])
        held += [looks[end - 1][1] for looks in mixes.values()]
        launches.append(histories[0][end - 1].launches)
        narrow.append(all(each[end - 1].half <= wanted for each in histories))
    return float(np.mean(held)), float(np.mean(launches)), float(np.mean(narrow))


def _with_rounds(windows: pd.DataFrame, rounds: int | pd.Series, launches: int | None = None) -> pd.DataFrame:
    """The windows that there would be with so many rounds in each launch."""
    place = [*LAUNCH, "platform", "round"]
    clean = windows.groupby(place, observed=True)["valid"].all().rename("clean").astype(int)
    before = (clean.groupby(level=[0, 1, 2], observed=True).cumsum() - clean).rename("before")
    numbers = windows[place].join(before, on=place)["before"]
    there = (numbers < rounds) & ((windows["launch"] <= launches) if launches else True)
    return windows[there]


def _pairs(made: Studies, windows: pd.DataFrame) -> pd.DataFrame:
    return pair(windows, against_alone(made.plan))


def _truths(made: Studies, machine: Machine) -> dict[int, float]:
    contrasts = against_alone(made.plan)
    mixes = zip(contrasts["row"], contrasts["mix"], strict=True)
    return {int(row): -float(np.log1p(-machine.loss(f"corun:{mix}"))) for row, mix in mixes}
