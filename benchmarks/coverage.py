"""Do printed intervals hold the truth as often as they claim where a machine wanders? Studies simulated by slices.

The machines wander as measured ones do; what is simulated goes through the very functions that print the tables.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import special

from benchmarks import coverage_rules
from benchmarks.common import Report, arguments_of, run
from benchmarks.simulated_cast import LEAD, LONG, SHORT, SPLIT, Slicing, one_partition, three_mixes, two_mixes
from benchmarks.simulated_slices import Antagonist, Machine, Studies, simulate
from castmates.analysis.comparison.comparison import Side, compare
from castmates.analysis.effects.carryover import estimate_carryover
from castmates.analysis.effects.effects import estimate_controls, estimate_effects, margins
from castmates.analysis.effects.system import METRICS, system_metrics
from castmates.analysis.explanations.services import latencies
from castmates.analysis.partitions.attribution import estimate_attribution
from castmates.analysis.partitions.attribution_parts import ALONE, AT_MASK, ISOLATED, PARTS, PLACEBO, TOGETHER
from castmates.analysis.partitions.recommendation import pareto_table
from castmates.analysis.statistics.intervals import Floats

STUDIES = 2000  # for most figures
ROUNDS, MARGIN = 3, 0.02
MANY = 4000  # launches that show the truth where it does not follow from the machine's numbers
WANDERING = Machine(wander=0.1, noise=0.05)
MACHINES: Mapping[str, Machine] = {
    "3 %, 0.3 s": Machine(memory=0.3),
    "3 %, 3 s": Machine(memory=3.0),
    "10 %, 0.3 s": replace(WANDERING, memory=0.3),
    "10 %, 1 s": WANDERING,
    "10 %, 3 s": replace(WANDERING, memory=3.0),
    "10 %, 1 s, carry-over 1 %": replace(WANDERING, carry_over=0.01),
    "10 %, 1 s, much rejected": replace(WANDERING, rejected=0.05, spoilt=0.05),
}
# Few long slices, as of Model Garden leads beside three antagonists:
# two cycles of their rounds count, and three with the last one.
FEW = {"2 cycles": LONG, "3 cycles": replace(LONG, cycles=3)}
FEW_LAUNCHES = (3, 6)
SLOW = {f"{memory:g} s": Machine(effect_memory=memory) for memory in (0.3, 2.0, 5.0, 15.0)}
RARE = dict.fromkeys(("alone", "alone-again", "placebo", "antagonist-alone"), 0.02)
STRUCK = {seen: replace(WANDERING, antagonist=Antagonist(RARE | {"corun": 0.2}, seen=seen))
          for seen in (1.0, 0.9, 0.5, 0.25, 0.1, 0.0)}  # fmt: skip
STRUCK_ALIKE = replace(WANDERING, antagonist=Antagonist(dict.fromkeys((*RARE, "corun"), 0.1)))

LARGER, SMALLER = "lead+first", "lead+second"

Shares = dict[str, float]  # by name, what share of the intervals holds the truth


def main() -> None:
    """Simulate everything, and print the results."""
    parser = arguments_of(__doc__, minutes=0)
    parser.add_argument("--studies", type=int, default=STUDIES, help="simulated studies for each line")
    options = parser.parse_args()
    report = Report("Coverage of the intervals (simulated)", "coverage")
    tell(report, options.studies, options.seed)
    report.print()


def tell(report: Report, studies: int, seed: int) -> None:
    """The tables."""
    error = 100 * (0.95 * 0.05 / studies) ** 0.5
    report.text(
        f"Simulated, not measured: {studies} studies a line. A cohort of seven scenes, slices of 60 ms and 1 ms for a "
        f"switch in the orders of our scheduler, 12 cycles a round, {ROUNDS} rounds a launch with a second between "
        "them, one spare. Rates wander (Ornstein-Uhlenbeck: size and memory as in the line), slices add noise of 2.5 "
        "or 5 %; co-runs lose 20 and 5 % of the rate, which wander by a quarter of themselves with a memory of 2 s and "
        "differ by a tenth of themselves between launches; 2 % of slices are rejected. In per cent, how often the 95 % "
        f"interval contains the truth (binomial error: {error:.1f})."
    )
    between = [*_between_launches(report, studies, seed), *_few_slices(report, studies, seed)]
    _other_tables(report, studies, seed)
    _outside(report, studies, seed)
    rules = {name: MACHINES[name] for name in ("3 %, 3 s", "10 %, 1 s")}
    coverage_rules.tell(report, rules, studies // 2, seed)
    shown = [share for _, shares in between for column, share in shares.items() if column in PRINTED]
    outside = sum(not 0.94 <= share <= 0.96 for share in shown)
    by_chance = 2 * float(special.ndtr(-1 / error)) * len(shown)
    report.text(
        f"**Verdict.** Of the {len(shown)} shares of intervals between launches in the first three tables (without "
        f"`system`), {outside} lie outside 94 to 96 %; the extremes are {100 * min(shown):.1f} and "
        f"{100 * max(shown):.1f}. If all were 95 %, chance would put up to {by_chance:.0f} there."
    )


def _between_launches(report: Report, studies: int, seed: int) -> list[tuple[str, Shares]]:
    found = [
        (f"{name}, {launches} launches", effects(machine, launches, studies, seed + launches))
        for name, machine in MACHINES.items()
        for launches in (3, 5, 8)
    ]
    _table(report, "machine", found)
    report.text(
        "`effects.csv` against each baseline, the A/A control, and the lowest and the highest metric of `system.csv`; "
        "the smaller loss's half-width against alone, in log points."
    )
    parts = [
        (f"{name}, {launches} launches", attribution(machine, launches, studies, seed + launches))
        for name, machine in MACHINES.items()
        if not machine.carry_over
        for launches in (3, 5)
    ]
    _table(report, "machine", parts)
    report.text("`attribution.csv`: parts of a loss; the partition changes between stretches, which lie seconds apart.")
    return [*found, *parts]


def _few_slices(report: Report, studies: int, seed: int) -> list[tuple[str, Shares]]:
    found = [
        (f"{name}, {cut}, {launches} launches", effects(machine, launches, studies, seed + launches, slicing))
        for name, machine in MACHINES.items()
        if not machine.carry_over
        for cut, slicing in FEW.items()
        for launches in FEW_LAUNCHES
    ]
    _table(report, "machine", found)
    report.text(
        f"The same with slices of Model Garden leads beside three antagonists: {1e3 * LONG.slice:.0f} ms, two or "
        "three cycles a round, nine scenes (three co-runs), the scene alone twice in each cycle but the last. A cycle "
        f"takes {10 * LONG.slice:g} s, longer than most of these machines remember. *No interval*: too few launches "
        "have a round left, because a rejected slice costs all scenes a third or a half of their window."
    )
    return found


def _other_tables(report: Report, studies: int, seed: int) -> None:
    lines = [(name, together(machine, 5, studies // 2, seed)) for name, machine in MACHINES.items()]
    _table(report, "machine", lines)
    report.text(
        "`margins.csv`, `comparison.csv` (against 8 launches with twice the noise) and `pareto.csv`, 5 launches."
    )
    names = [name for name in MACHINES if name.startswith("10 %") and not MACHINES[name].carry_over]
    _table(report, "machine", [(name, steps(MACHINES[name], 5, studies // 4, seed)) for name in names])
    report.text(
        "`latency.csv`, 5 launches: p50 and p95 of steps, and their ratios to alone's; the lowest and the highest."
    )
    shares = (0.0, 0.01, 0.03)
    _table(report, "carry-over", [(f"{share:.0%}", carried(share, studies // 4, seed)) for share in shares])
    report.text("`carryover.csv`, 5 launches, and what it does to the smaller loss against alone (bias in log points).")
    counts = (1, 2, 5)
    lines = [(name, within(machine, count, studies, seed)) for name, machine in SLOW.items() for count in counts]
    _table(report, "memory of the effect", lines)
    report.text(
        "The interval within launch, of the larger loss against alone (rates wander by 3 %, 1 s): does it contain what "
        "these launches lose in the long run, what they lost while they were measured, and what launches lose in "
        "general? It should contain the first if effects wander for 2 s or less, the second always; not the third. "
        "With fewer than three launches there is no other interval."
    )


def _outside(report: Report, studies: int, seed: int) -> None:
    lines = [(f"{seen:.0%} of it", struck(machine, studies, seed)) for seen, machine in STRUCK.items()]
    lines.append(("50% of it, all scenes alike", struck(STRUCK_ALIKE, studies, seed)))
    _table(report, "the ledger sees", lines)
    report.text(
        "A program outside slows slices by 30 %: 20 % of those of co-runs, 2 % of all others (last line: 10 % of all). "
        "5 launches, the smaller loss against alone; bias in log points."
    )


PRINTED = ("alone", "placebo", "antagonist alone", "A/A", *PARTS)


def effects(machine: Machine, launches: int, studies: int, seed: int, slicing: Slicing = SHORT) -> Shares:
    """Of the losses' intervals between launches, by baseline; of the controls' and the system's; and how wide."""
    cohort = two_mixes() if slicing is SHORT else three_mixes()
    made = simulate(machine, cohort, studies, launches, ROUNDS, seed, slicing=slicing)
    table = estimate_effects(made.plan, made.windows, MARGIN)
    table["holds"] = covered(table, "slowdown", [slowdown(machine, *row) for row in _who(table)])
    controls = estimate_controls(made.plan, made.windows, MARGIN)
    controls["holds"] = covered(controls, "ratio", 1.0)
    there, again = table[table["slowdown_low"].notna()], controls[controls["ratio_low"].notna()]
    found = there.groupby(_baselines(there))["holds"].mean()
    own = table[(_baselines(table) == "alone") & (table["mix"] == SMALLER)]
    many = simulate(machine, cohort, 1, MANY, ROUNDS, seed + 1, slicing=slicing)
    whole = system(made, many)
    return {name: float(found[name]) for name in PRINTED[:3]} | {
        "A/A": float(again["holds"].mean()),
        "system, lowest": min(whole.values()),
        "system, highest": max(whole.values()),
        "no interval": float(table["slowdown_low"].isna().mean()),
        "falsely flagged": float(table["possibly_biased"].mean()),
        "half-width": float(np.nanmedian(np.log(own["slowdown_high"] / own["slowdown_low"]))) / 2,
    }


def system(made: Studies, many: Studies) -> Shares:
    """Of the system's metrics, against what very many launches show."""
    truth = system_metrics(many.plan, many.windows).set_index(["mix", "metric"])["value"]
    table = system_metrics(made.plan, made.windows)
    table["holds"] = covered(table, "", table.set_index(["mix", "metric"]).index.map(truth.to_dict()))
    there = table[table["low"].notna()]
    return {name: float(there.loc[there["metric"] == name, "holds"].mean()) for name in METRICS}


def attribution(machine: Machine, launches: int, studies: int, seed: int) -> Shares:
    """Of the parts of a loss."""
    made = simulate(machine, one_partition(), studies, launches, ROUNDS, seed)
    table = estimate_attribution(made.plan, made.windows, MARGIN, SPLIT)
    corun = "corun:lead+first"
    links = {ALONE: "alone", PLACEBO: "placebo:1", AT_MASK: f"placebo:1@{SPLIT}", ISOLATED: f"{corun}@{SPLIT}"}
    lost = {link: -np.log1p(-machine.loss(scene)) for link, scene in (links | {TOGETHER: corun}).items()}
    shares = {}
    for part, (start, end) in PARTS.items():
        own = table[table["part"] == part]
        if 2 * len(own) > studies:  # others stand in for parts that a study with few complete rounds cannot separate
            shares[part] = float(covered(own, "log", lost[end] - lost[start]).mean())
    return shares


def together(machine: Machine, launches: int, studies: int, seed: int) -> Shares:
    """Of the margins over mixes, of what members do under a partition, and of the ratio of two studies' losses."""
    made = simulate(machine, two_mixes(), studies, launches, ROUNDS, seed)
    table = margins(made.plan, made.windows)
    truths = {"lead": [LARGER, SMALLER], "first": [LARGER], "second": [SMALLER]}
    cells = {
        (who, base): float(np.mean([np.log(slowdown(machine, mix, base, LEAD)) for mix in mixes]))
        for who, mixes in truths.items()
        for base in ("alone", "placebo")
    }
    true = [np.exp(cells[key]) for key in zip(table["who"], table["baseline"], strict=True)]
    other = simulate(replace(machine, noise=2 * machine.noise), two_mixes(), studies, 8, ROUNDS, seed + 1)
    both = compare(Side(made.plan, made.windows), Side(other.plan, other.windows), MARGIN)
    few, many = (
        simulate(machine, one_partition(), count, of, ROUNDS, own)
        for count, of, own in ((studies, launches, seed), (1, MANY, seed + 1))
    )
    kept, truth = (_pareto(each) for each in (few, many))
    place = ["mix", "partition"]
    kept = kept.merge(truth[[*place, "stp", "kept_pct"]], on=place, suffixes=("", "_true"))
    return {
        "margins": float(covered(table, "slowdown", true).mean()),
        "comparison": float(covered(both, "ratio", 1.0).mean()),
        "pareto, STP": float(covered(kept, "stp", kept["stp_true"]).mean()),
        "pareto, kept": float(covered(kept, "kept", kept["kept_pct_true"]).mean()),
    }


def _pareto(made: Studies) -> pd.DataFrame:
    """What leads lose and what antagonists keep."""
    return pareto_table(made.plan, made.windows, estimate_effects(made.plan, made.windows, MARGIN))


def steps(machine: Machine, launches: int, studies: int, seed: int) -> Shares:
    """Of the quantiles of step times, against what very many launches show."""
    made, many = (simulate(machine, two_mixes(), count, of, ROUNDS, own, also=["beats"])
                  for count, of, own in ((studies, launches, seed), (1, MANY // 4, seed + 1)))  # fmt: skip
    place = ["scene", "mix", "member", "quantile"]
    table, truth = (latencies(each.plan, each.windows, [each.beats]) for each in (made, many))
    table = table[table["ms"].notna()].merge(truth[[*place, "ms", "ratio"]], on=place, suffixes=("", "_true"))
    ms = covered(table, "ms", table["ms_true"]).groupby([table[name] for name in place]).mean()
    paired = table[table["ratio"].notna()]
    ratio = covered(paired, "ratio", paired["ratio_true"]).groupby([paired[name] for name in place]).mean()
    return {
        "ms, lowest": ms.min(),
        "ms, highest": ms.max(),
        "ratio, lowest": ratio.min(),
        "ratio, highest": ratio.max(),
    }


def carried(share: float, studies: int, seed: int) -> Shares:
    """Of the carry-over's interval, and how often it is seen; what it does to a small loss."""
    machine = replace(WANDERING, carry_over=share)
    # Orders are balanced over all slices: the second ones of scenes alone are measured here too.
    every = replace(SHORT, twice=True)
    made = simulate(machine, two_mixes(), studies, 5, ROUNDS, seed, slicing=every, also=["slices"])
    table = estimate_carryover(made.plan, [made.slices])
    lead = table[table["role"] == "lead"]
    own = _against_alone(made, machine, SMALLER)
    return {
        "covers": float(covered(lead, "change", -100 * share).mean()),
        "seen": float((lead["verdict"] == "seen").mean()),
        "the smaller loss: covers": float(own["holds"].mean()),
        "its bias": float(np.log(own["slowdown"]).mean() - np.log(slowdown(machine, SMALLER, "alone", LEAD))),
    }


def within(machine: Machine, launches: int, studies: int, seed: int) -> Shares:
    """Of the interval within launch, against three truths; with fewer than three launches it is the only one."""
    made = simulate(machine, two_mixes(), studies, launches, ROUNDS, seed)
    table, scene = _against_alone(made, machine, LARGER), f"corun:{LARGER}"
    truths: dict[str, Floats | float] = {
        "in the long run": made.lasting[scene].mean(axis=1),
        "while measured": made.shown[scene][..., :ROUNDS].mean(axis=(1, 2)),
        "launches in general": -float(np.log1p(-machine.loss(scene))),
    }
    there = table["within_low"].notna()
    shares = {name: float(covered(table, "within", np.exp(truth))[there].mean()) for name, truth in truths.items()}
    widths = np.log(table["within_high"] / table["within_low"])
    return {"launches": launches} | shares | {"half-width": float(np.nanmedian(widths)) / 2}


def struck(machine: Machine, studies: int, seed: int) -> Shares:
    """A program outside that slows co-runs more often: what is printed, and how often it is flagged."""
    made = simulate(machine, two_mixes(), studies, 5, ROUNDS, seed)
    own = _against_alone(made, machine, SMALLER)
    truth = slowdown(machine, SMALLER, "alone", LEAD)
    return {
        "covers": float(own["holds"].mean()),
        "flagged": float(own["possibly_biased"].mean()),
        "covers or is flagged": float((own["holds"] | own["possibly_biased"]).mean()),
        "bias": float(np.log(own["slowdown"]).mean() - np.log(truth)),
        "rejected": float(own["rejection_rate"].mean()),
        "of its baseline": float(own["baseline_rejection_rate"].mean()),
    }


def _against_alone(made: Studies, machine: Machine, mix: str) -> pd.DataFrame:
    """The loss of the lead in a mix: a row per study."""
    table = estimate_effects(made.plan, made.windows, MARGIN)
    table = table[(table["mix"] == mix) & (_baselines(table) == "alone")].reset_index(drop=True)
    return table.assign(holds=covered(table, "slowdown", slowdown(machine, mix, "alone", LEAD)))


def _baselines(table: pd.DataFrame) -> "pd.Series[str]":
    """The baseline of each row; an antagonist's has a name of its own."""
    return table["baseline"].mask(table["role"] == "antagonist", "antagonist alone")


def slowdown(machine: Machine, mix: str, baseline: str, member: str) -> float:
    """The true one."""
    base = machine.loss("placebo:1") if baseline == "placebo" else 0.0
    return (1 - base) / (1 - machine.loss(f"corun:{mix}", member))


def covered(table: pd.DataFrame, name: str, truth: object) -> pd.Series:
    """Whether the truth lies between the columns `<name>_low` and `<name>_high`."""
    low, high = (table["_".join(filter(None, (name, end)))].to_numpy(dtype=float) for end in ("low", "high"))
    true = np.asarray(truth, dtype=float)
    return pd.Series((low <= true) & (true <= high), index=table.index)


def _who(table: pd.DataFrame) -> Iterable[tuple[str, str, str]]:
    return zip(table["mix"], table["baseline"], table["member"], strict=True)


def _table(report: Report, first: str, rows: Sequence[tuple[str, Shares]]) -> None:
    """A column for each name, a row for each line, in per cent."""
    columns = list(dict.fromkeys(name for _, shares in rows for name in shares))
    report.table([first, *columns], [[name, *(_cell(column, shares) for column in columns)] for name, shares in rows])


def _cell(column: str, shares: Mapping[str, float]) -> str:
    if column not in shares:
        return ""
    return f"{shares[column]:.0f}" if column == "launches" else f"{100 * shares[column]:.1f}".replace("-0.0", "0.0")


if __name__ == "__main__":
    run(main)
