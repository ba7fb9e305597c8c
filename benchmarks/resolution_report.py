"""What the resolution benchmark says of its measurements."""

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks import blocks
from benchmarks.campaign import OURS, TARGET, Campaign, Known, every_choice, known_ways
from benchmarks.common import Report, percent
from benchmarks.precision import Mean, Paired, equivalence, interval, minus, points
from benchmarks.usual import Choice
from castmates.analysis.statistics.intervals import FEWEST_BLOCKS
from castmates.study.budget_keys import CONFIRMED_AFTER
from castmates.workloads.environments import NATIVE

MARGIN = 1.0  # percentage points within which two ways agree
AIM_NATIVE, AIM_SLOW_START = 5.0, 10.0  # times fewer machine-seconds
FEWEST_FOR_BRACKETS = 10  # units; the bootstrap of a variance from fewer is too narrow
BOOTSTRAPS = 2000


def tell(campaign: Campaign, seed: int, aim: float | None, report: Report) -> None:
    """Turn what was measured into tables and sentences."""
    windows, design = campaign.windows, campaign.plan.blocks[0].design
    report.text(
        f"Ours: blocks of {design.rounds} rounds, windows of {design.window:g} s, their whole command counted "
        "(interpreter, launch, settling, rejected windows, clean-up, writing; not Snakemake's own time). The same "
        "seconds also buy the A/A control, the placebo and the antagonists' own losses, which the usual way's runs do "
        "not give. The study's positive and negative control are off in these blocks.",
        f"Usual way: fresh processes for every run, until ready, a warm-up, one window, kill; it has no limits, so "
        f"nothing is rejected. Warm-ups of {_list(one.warm_up for one in windows.choices)} s and windows of "
        f"{_list(one.length for one in windows.choices)} s are cut from the same recording, each charged only what a "
        "run that ends with it takes, and the cheapest combination is the one in the tables: chosen with the figures "
        "in hand, which favours the usual way. `Interleaved` takes turns between solo and the mixes (Welch's interval; "
        "or paired by turn). All ways took turns in time.",
    )
    if campaign.apart:
        report.text("`Solos first` does all solo runs, then the co-runs of each mix (Welch's interval).")
    ways = known_ways(campaign)
    names = [mix.name for mix in campaign.plan.mixes]
    if len(ways) < 2 or ways[0].name != OURS:
        report.text(f"Too little was measured to compare the ways ({_counts(campaign)}): give it more minutes.")
        return
    lead = campaign.plan.blocks[0].company.lead
    _tell_effects(ways, names, report)
    _tell_seconds(ways, seed, aim or (AIM_NATIVE if lead.environment == NATIVE else AIM_SLOW_START), report)
    every = every_choice(campaign)
    _tell_choices(every, report)
    _tell_agreement([ways[0], *_longest(every[1:])], names, report)
    if campaign.alone:
        _tell_sharing(campaign, names, seed, report)
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
                [known.name, _choice(known), known.units, name, _plus_minus(points(loss)), f"{needed[mix]:.0f}"]
            )
    report.table(["way", "warm-up + window", "measured", "mix", "degradation, points", "units needed"], rows)
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
    enough = {known.name: min(known.count, ways[0].count) >= FEWEST_FOR_BRACKETS for known in ways}
    ratios = {
        name: (point[name] / point[OURS], interval(samples[name] / samples[OURS]) if enough[name] else None)
        for name in point
    }
    rows = [
        [
            known.name,
            _choice(known),
            _with_interval(point[known.name], *interval(samples[known.name]))
            if known.count >= FEWEST_FOR_BRACKETS
            else _rounded(point[known.name]),
            "1" if known.name == OURS else _bracketed(*ratios[known.name]),
        ]
        for known in ways
    ]
    header = [f"way, all mixes to ±{percent(TARGET, 0)}", "warm-up + window", "machine-seconds", "times ours"]
    report.table(header, rows)
    report.text(
        "By the variance measured, both ways stopped by an oracle that knows it. The stopping rule that we ship knows "
        f"no variance: it wants {CONFIRMED_AFTER} more blocks after the first look with a narrow interval, which is "
        f"not counted here. In brackets: 95 % by bootstrap over blocks, runs or turns, where there are at least "
        f"{FEWEST_FOR_BRACKETS} of them."
    )
    cheapest = min((known.name for known in ways[1:]), key=lambda name: point[name])
    report.text(f"**Verdict.** {verdict(cheapest, *ratios[cheapest], aim)}")


def _tell_choices(ways: Sequence[Known], report: Report) -> None:
    """What every warm-up and window would have cost: who plans a study does not know the cheapest beforehand."""
    ours = float(ways[0].way.seconds(TARGET)[0])
    seconds = {(known.name, known.choice): float(known.way.seconds(TARGET)[0]) for known in ways[1:]}
    names, choices = list(dict.fromkeys(name for name, _ in seconds)), sorted({one for _, one in seconds}, key=_place)
    rows = [
        [
            _words(choice),
            *(_rounded(seconds[name, choice] / ours) if (name, choice) in seconds else "-" for name in names),
        ]
        for choice in choices
    ]
    report.table(["warm-up + window", *(f"{name}, times ours" for name in names)], rows)


def verdict(name: str, times: float, bracket: tuple[float, float] | None, aim: float) -> str:
    """What may be said of the ratio against the aim."""
    said = f"The cheapest usual way ({name}) needs {times:.1f} times our machine-seconds"
    if bracket is None:
        word = "met" if times >= aim else "missed"
        return f"{said}: the aim of {aim:g} is {word} by the point estimate; too few units for an interval."
    low, high = bracket
    said += f" (95 %: {low:.1f} to {high:.1f})"
    if low >= aim:
        return f"{said}: the aim of {aim:g} is met."
    if times >= aim:
        return f"{said}: the aim of {aim:g} is met by the estimate, but the interval reaches below it."
    return f"{said}: the aim of {aim:g} is {'missed' if high < aim else 'not met, though the interval reaches it'}."


def _longest(ways: Iterable[Known]) -> list[Known]:
    """Each usual way with its longest warm-up and window: the cheapest was chosen with its figures in hand."""
    return list({known.name: known for known in sorted(ways, key=lambda known: _place(known.choice))}.values())


def _tell_agreement(ways: Sequence[Known], names: Sequence[str], report: Report) -> None:
    """Each usual way's effects against ours."""
    rows = []
    for known in ways[1:]:
        for mix, name in enumerate(names):
            difference = minus(points(known.way.effect(mix)), points(ways[0].way.effect(mix)))
            rows.append([f"{known.name} - ours", _choice(known), name, *_equivalent(difference)])
    header = ["difference of effects", "warm-up + window", "mix", "points (90 %)", "p (TOST)"]
    report.table([*header, f"within ±{MARGIN:g} point"], rows)
    report.text("The longest warm-up and window stand for the usual way here: the cheapest was chosen by its variance.")
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


def _tell_sharing(campaign: Campaign, names: Sequence[str], seed: int, report: Report) -> None:
    """The same mix in a company and in one of its own."""
    shared, shared_costs = blocks.losses(campaign.plan, campaign.ours)
    together, rows, apart = Paired(shared, shared_costs), [], []
    for mix, name in enumerate(names):
        alone, costs = blocks.losses(campaign.single[mix], campaign.alone[mix])
        if len(costs) < FEWEST_BLOCKS:
            report.text("Too few blocks were measured to say what sharing a launch saves: give it more minutes.")
            return
        apart.append(Paired(alone, costs))
        here, there = points(together.effect(mix)), points(apart[-1].effect(0))
        rows.append([name, _plus_minus(here), _plus_minus(there), f"{len(costs)}", *_equivalent(minus(here, there))])
    header = ["mix", "in a company, points", "alone in a launch, points", "blocks alone"]
    report.table([*header, "difference (90 %)", "p (TOST)", f"within ±{MARGIN:g} point"], rows)
    report.text(f"**Verdict.** {_saving(together, apart, seed)} {_agreement(rows)}")


def _saving(together: Paired, apart: Sequence[Paired], seed: int) -> str:
    """What sharing a launch saves on the way to the wanted half-width of every mix."""
    shared, alone = float(together.seconds(TARGET)[0]), sum(float(one.seconds(TARGET)[0]) for one in apart)
    said = (
        f"Until all {len(apart)} mixes have ±{percent(TARGET, 0)}, sharing a launch takes {_rounded(shared)} "
        f"machine-seconds and a launch for each mix {_rounded(alone)}, by the variance measured"
    )
    if (fewest := min(len(one.costs) for one in (together, *apart))) < FEWEST_FOR_BRACKETS:
        return f"{said}: a saving is not shown ({fewest} blocks are too few for an interval)."
    rng = np.random.default_rng(seed)
    samples = sum((one.seconds(TARGET, rng, BOOTSTRAPS) for one in apart), np.zeros(BOOTSTRAPS))
    low, high = interval(1 - together.seconds(TARGET, rng, BOOTSTRAPS) / samples)
    word = "a saving is shown" if low > 0 else "a loss is shown" if high < 0 else "a saving is not shown"
    return f"{said}: {percent(1 - shared / alone, 0)} less (95 %: {percent(low, 0)} to {percent(high, 0)}); {word}."


def _plus_minus(value: Mean) -> str:
    return f"{value.value:.2f} ± {value.half_width:.2f}"


def _with_interval(value: float, low: float, high: float, digits: int | None = None) -> str:
    if digits is None:
        digits = _digits(value)
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _bracketed(value: float, bracket: tuple[float, float] | None) -> str:
    return _rounded(value) if bracket is None else _with_interval(value, *bracket)


def _rounded(value: float) -> str:
    return f"{value:.{_digits(value)}f}"


def _digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1


def _choice(known: Known) -> str:
    return _words(known.choice)


def _words(choice: Choice) -> str:
    return f"{choice.warm_up:g} s + {choice.length:g} s"


def _place(choice: Choice) -> tuple[float, float]:
    return choice.warm_up, choice.length


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{one:g}" for one in sorted(set(values)))
