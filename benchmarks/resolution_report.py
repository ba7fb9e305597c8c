"""What the resolution benchmark says of its measurements."""

from collections.abc import Sequence

import numpy as np

from benchmarks import blocks, coverage
from benchmarks.campaign import TARGET, Campaign, Known, known_ways
from benchmarks.common import Report, percent
from benchmarks.coverage import B_PAIRED, OURS, A, B
from benchmarks.precision import Mean, Paired, equivalence, interval, minus, points
from castmates.analysis.intervals import FEWEST_BLOCKS
from castmates.workloads.environments import NATIVE

MARGIN = 1.0  # percentage points within which two ways agree
AIM_NATIVE, AIM_SLOW_START = 5.0, 10.0  # times fewer machine-seconds
BOOTSTRAPS = 2000
STUDIES = 2000  # simulated


def tell(campaign: Campaign, seed: int, aim: float | None, report: Report) -> None:
    """Turn what was measured into tables and sentences."""
    windows, rounds = campaign.windows, campaign.plan.blocks[0].design.rounds
    report.text(
        f"Ours: blocks of {rounds} rounds, windows of {windows.short:g} s, their whole command counted (interpreter, "
        "launch, settling, rejected windows, clean-up, writing; not Snakemake's own time). The same seconds also buy "
        "the A/A control, the placebo and the antagonists' own losses, which the usual way's runs do not give.",
        f"Usual way: fresh processes for every run, until ready, {windows.warm_up:g} s of warm-up, one window, kill; "
        f"it has no limits, so nothing is rejected. Its windows are of {windows.short:g} s or {windows.long:g} s, "
        "whichever needs fewer machine-seconds. `solos first` does all solo runs, then the co-runs of each mix "
        "(Welch's interval); `interleaved` takes turns (Welch; or paired by turn). All ways took turns in time.",
    )
    ways = known_ways(campaign)
    names = [mix.name for mix in campaign.plan.mixes]
    if len(ways) < 2 or ways[0].name != OURS:
        report.text(f"Too little was measured to compare the ways ({_counts(campaign)}): give it more minutes.")
        return
    lead = campaign.plan.blocks[0].company.lead
    _tell_effects(ways, names, report)
    _tell_seconds(ways, seed, aim or (AIM_NATIVE if lead.environment == NATIVE else AIM_SLOW_START), report)
    _tell_agreement(ways, names, report)
    if campaign.alone:
        _tell_sharing(campaign, names, report)
    report.text(*blocks.doubts([*campaign.ours, *(one for measured in campaign.alone.values() for one in measured)]))


def _counts(campaign: Campaign) -> str:
    usable = len(blocks.losses(campaign.plan, campaign.ours)[1])
    return f"{usable} of {len(campaign.ours)} blocks usable, {len(campaign.cycles)} turns of the usual way"


def _tell_effects(ways: Sequence[Known], names: Sequence[str], report: Report) -> None:
    rows = []
    for known in ways:
        needed = known.way.needed(TARGET)[0]
        for mix, name in enumerate(names):
            loss = known.way.effect(mix)
            rows.append(
                [known.name, f"{known.window:g} s", known.units, name, _plus_minus(points(loss)), f"{needed[mix]:.0f}"]
            )
    report.table(["way", "window", "measured", "mix", "degradation, points", "units needed"], rows)
    report.text(
        f"± is half of the 95 % interval. `units needed`: blocks, runs of each kind, or turns until the half-width is "
        f"{percent(TARGET, 0)} of the slowdown, from the variance of the measured ones, Student's t included, never "
        f"fewer than {FEWEST_BLOCKS}."
    )


def _tell_seconds(ways: Sequence[Known], seed: int, aim: float, report: Report) -> None:
    """The machine-seconds for all mixes together, and how many times ours each usual way takes."""
    rng = np.random.default_rng(seed)
    point = {known.name: float(known.way.seconds(TARGET)[0]) for known in ways}
    samples = {known.name: known.way.seconds(TARGET, rng, BOOTSTRAPS) for known in ways}
    ratios = {name: (point[name] / point[OURS], *interval(samples[name] / samples[OURS])) for name in point}
    rows = [
        [
            name,
            _with_interval(seconds, *interval(samples[name])),
            "1" if name == OURS else _with_interval(*ratios[name]),
        ]
        for name, seconds in point.items()
    ]
    report.table([f"way, all mixes to ±{percent(TARGET, 0)}", "machine-seconds", "times ours"], rows)
    report.text("In brackets: 95 % by bootstrap over blocks, runs or turns.")
    cheapest = min((known.name for known in ways[1:]), key=lambda name: point[name])
    report.text(f"**Verdict.** {_verdict(cheapest, *ratios[cheapest], aim)}")


def _verdict(name: str, times: float, low: float, high: float, aim: float) -> str:
    said = (
        f"The cheapest usual way ({name}) needs {times:.1f} times our machine-seconds (95 %: {low:.1f} to {high:.1f})"
    )
    if low >= aim:
        return f"{said}: the aim of {aim:g} is met."
    if times >= aim:
        return f"{said}: the aim of {aim:g} is met by the estimate, but the interval reaches below it."
    return f"{said}: the aim of {aim:g} is {'missed' if high < aim else 'not met, though the interval reaches it'}."


def _tell_agreement(ways: Sequence[Known], names: Sequence[str], report: Report) -> None:
    """Each usual way's effects against ours."""
    rows = []
    for known in ways[1:]:
        for mix, name in enumerate(names):
            difference = minus(points(known.way.effect(mix)), points(ways[0].way.effect(mix)))
            rows.append([f"{known.name} - ours", name, *_equivalent(difference)])
    report.table(["difference of effects", "mix", "points (90 %)", "p (TOST)", f"within ±{MARGIN:g} point"], rows)
    report.text(f"**Verdict.** {_agreement(rows)}")


def _equivalent(difference: Mean) -> list[str]:
    test = equivalence(difference, MARGIN)
    return [_with_interval(test.difference, test.low, test.high, 2), f"{test.p_value:.3g}", test.verdict]


def _agreement(rows: Sequence[Sequence[str]]) -> str:
    verdicts = [row[-1] for row in rows]
    if set(verdicts) == {"agree"}:
        return f"All effects agree within ±{MARGIN:g} point."
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in ("agree", "not shown", "differ") if one in verdicts)
    return (
        f"Agreement within ±{MARGIN:g} point of the {len(rows)} comparisons: {counts} (`not shown`: the interval is "
        "too wide to say)."
    )


def _tell_sharing(campaign: Campaign, names: Sequence[str], report: Report) -> None:
    """The same mix in a company and in one of its own."""
    shared, shared_costs = blocks.losses(campaign.plan, campaign.ours)
    rows, alone_costs = [], []
    for mix, name in enumerate(names):
        alone, costs = blocks.losses(campaign.single[mix], campaign.alone[mix])
        if len(costs) < FEWEST_BLOCKS:
            report.text("Too few blocks were measured to say what sharing a launch saves: give it more minutes.")
            return
        alone_costs.append(float(costs.mean()))
        here, there = points(Paired(shared, shared_costs).effect(mix)), points(Paired(alone, costs).effect(0))
        rows.append([name, _plus_minus(here), _plus_minus(there), f"{len(costs)}", *_equivalent(minus(here, there))])
    header = ["mix", "in a company, points", "alone in a launch, points", "blocks alone"]
    report.table([*header, "difference (90 %)", "p (TOST)", f"within ±{MARGIN:g} point"], rows)
    each, each_alone = float(shared_costs.mean()) / len(names), sum(alone_costs) / len(names)
    report.text(
        f"**Verdict.** A block of all {len(names)} mixes takes {each:.1f} s for each mix; alone in a launch a mix "
        f"takes {each_alone:.1f} s: sharing a launch saves {percent(1 - each / each_alone, 0)} of the machine-seconds. "
        f"{_agreement(rows)}"
    )


def simulate(report: Report, seed: int) -> None:
    """The intervals' coverage against a known truth."""
    ways = [OURS, A, B, B_PAIRED]
    rows, worst = [], []
    for machine, truth in coverage.MACHINES.items():
        for count in (4, 8, 16):
            found = coverage.coverage(truth, count, STUDIES, seed + count)
            rows.append([machine, str(count), *(f"{100 * found[way]:.1f}" for way in ways)])
            worst.append(min(found[OURS] - min(found[way], 0.95) for way in ways[1:]))
    report.table(["machine", "blocks", *ways], rows)
    error = (0.95 * 0.05 / STUDIES) ** 0.5
    word = "no worse" if min(worst) > -3 * error else "WORSE"
    report.text(
        f"Per cent of {STUDIES} simulated campaigns whose 95 % interval holds the true loss (binomial error "
        f"{100 * error:.1f}); {coverage.RUNS_PER_BLOCK} runs of each kind stand for a block, all ways have the same "
        "length of campaign, over which the machine drifts by 5 %.",
        f"**Verdict.** Our coverage is {word} than the usual way's (more than 95 % counts as 95 %).",
    )


def _plus_minus(value: Mean) -> str:
    return f"{value.value:.2f} ± {value.half_width:.2f}"


def _with_interval(value: float, low: float, high: float, digits: int | None = None) -> str:
    if digits is None:
        digits = 0 if abs(value) >= 100 else 1
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
