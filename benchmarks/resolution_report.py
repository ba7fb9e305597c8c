"""The report of the resolution benchmark."""

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks import launches
from benchmarks.campaign import OURS, ROUGH, TARGET, Campaign, Known, every_choice, known_ways, without_controls
from benchmarks.common import Report, percent
from benchmarks.precision import DRAWS, Floats, Mean, Paired, Way, equivalence, interval, minus, points
from benchmarks.usual import Choice
from benchmarks.verdicts import Aim, Finding
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES
from castmates.study.budget_keys import CONFIRMED_AFTER
from castmates.workloads.environments import NATIVE

MARGIN = 1.0  # percentage points within which two ways agree
AIM_NATIVE, AIM_SLOW_START = 3.0, 10.0  # times fewer machine-seconds
BARE = f"{OURS}, without our controls"


def tell(campaign: Campaign, seed: int, aim: float | None, report: Report) -> None:
    """Turn what was measured into tables and sentences."""
    windows, design = campaign.windows, campaign.plan.launches[0].design
    report.text(
        f"Ours: launches with {design.rounds} rounds, windows of {design.window:g} s in slices{_lengths(campaign)}, "
        "their whole command counted (interpreter, launch, settling, rejected slices, clean-up, writing; not the "
        "time of Snakemake). The same seconds also buy the A/A control and what else the study asks for, "
        "which the usual way's runs do not give. `Without our controls` leaves the slices of these scenes out of the "
        "charge: a cohort without them was not measured. The study's positive and negative control are off in these "
        "launches.",
        f"Usual way: fresh processes for every run, until ready, a warm-up, one window, kill; it has no limits, so "
        f"nothing is rejected. Warm-ups of {_list(one.warm_up for one in windows.choices)} s and windows of "
        f"{_list(one.length for one in windows.choices)} s are cut from the same recording, each charged only what a "
        "run that ends with it takes, and the cheapest combination is the one in the tables: chosen with the figures "
        "in hand, which favours the usual way. `Interleaved` takes turns between alone and the mixes, each in a random "
        "order (Welch's interval, with the runs of a turn that was not finished too; or paired, by complete turns). "
        "All ways took turns in time.",
    )
    if campaign.apart:
        report.text("`Alone first` does all runs alone, then the co-runs of each mix (Welch's interval).")
    ways = known_ways(campaign)
    names = [mix.name for mix in campaign.plan.mixes]
    if len(ways) < 2 or ways[0].name != OURS:
        report.text(f"Too little was measured to compare the ways ({_counts(campaign)}): give it more minutes.")
        return
    lead = campaign.plan.launches[0].cohort.lead
    _tell_effects(ways, names, report)
    aim = aim or (AIM_NATIVE if lead.environment == NATIVE else AIM_SLOW_START)
    _tell_seconds(ways, without_controls(campaign), seed, aim, report)
    every = every_choice(campaign)
    _tell_choices(every, report)
    _tell_agreement([ways[0], *_longest(every[1:])], names, report)
    if campaign.alone:
        _tell_sharing(campaign, names, seed, report)
    report.text(*launches.doubts([*campaign.ours, *(one for measured in campaign.alone.values() for one in measured)]))


def _counts(campaign: Campaign) -> str:
    usable = len(launches.losses(campaign.plan, campaign.ours)[1])
    return f"{usable} of {len(campaign.ours)} launches usable, {len(campaign.turns)} complete turns of the usual way"


def _tell_effects(ways: Sequence[Known], names: Sequence[str], report: Report) -> None:
    rows = []
    for known in ways:
        needed = known.way.needed(TARGET)[0]
        for mix, name in enumerate(names):
            loss = known.way.effect(mix)
            rows.append(
                [known.name, _choice(known), known.units, name, _plus_minus(points(loss)), f"{needed[mix]:.0f}"]
            )
    report.table(["way", "warm-up + window", "measured", "mix", "loss, points", "units needed"], rows)
    report.text(
        f"± is half of the 95 % interval. `units needed`: launches, runs of each kind, or turns until the half-width "
        f"is {percent(TARGET, 0)} of the slowdown, from the variance of the measured ones, Student's t included, never "
        f"fewer than {FEWEST_LAUNCHES}."
    )


def _tell_seconds(ways: Sequence[Known], bare: Way, seed: int, aim: float, report: Report) -> None:
    """The machine-seconds for all mixes together, and how many times ours each usual way takes."""
    rng = np.random.default_rng(seed)
    rows, ratios = [], {}
    ours = _seconds(ways[0].way, seed)
    for name, choice, way in [
        (OURS, None, ways[0].way),
        (BARE, None, bare),
        *((k.name, k.choice, k.way) for k in ways[1:]),
    ]:
        theirs = _seconds(way, seed) if name in (OURS, BARE) else way.seconds(TARGET, rng, DRAWS)
        point = float(way.seconds(TARGET)[0])
        ratios[name] = point / float(ways[0].way.seconds(TARGET)[0]), interval(theirs / ours)
        rough = _rounded(float(way.seconds(ROUGH)[0]))
        row = [name, _words(choice), _with_interval(point, *interval(theirs)), rough]
        rows.append([*row, "1" if name == OURS else _with_interval(ratios[name][0], *ratios[name][1])])
    header = [
        "way, all mixes",
        "warm-up + window",
        *(f"machine-seconds to ±{percent(one, 0)}" for one in (TARGET, ROUGH)),
    ]
    report.table([*header, f"times ours, to ±{percent(TARGET, 0)}"], rows)
    report.text(
        "Extrapolated from the measured variance, as if both ways were stopped by an oracle that knows it: neither "
        "way was continued to that width. The stopping rule of a study knows "
        f"no variance: it needs {CONFIRMED_AFTER} more launches after the first look with a narrow interval, which is "
        "not counted here. In brackets: 95 %, from the number of launches, runs or turns, for normal scatter."
    )
    cheapest = min((known.name for known in ways[1:]), key=lambda name: ratios[name][0])
    (times, (low, high)), share = ratios[cheapest], ratios[BARE][0]
    known = next(known for known in ways if known.name == cheapest)
    report.text(f"The cheapest usual way is `{cheapest}`; fewest units: ours {ways[0].units}, it {known.units}.")
    found = Finding(
        what=f"the cheapest usual way's machine-seconds to ±{percent(TARGET, 0)}, times ours",
        value=times, unit="×", low=low, high=high, count=min(ways[0].count, known.count), of="units",
        aim=Aim(least=aim),
    )  # fmt: skip
    what = f"{found.what}, our controls not charged"
    changed = {"what": what, "value": times / share, "low": low / share, "high": high / share, "aim": None}
    report.found(found, found.model_copy(update=changed))


def _seconds(way: Way, seed: int) -> Floats:
    """Our seconds for the variances there may be; the same ones with and without controls."""
    return way.seconds(TARGET, np.random.default_rng(seed + 1), DRAWS)


def _tell_choices(ways: Sequence[Known], report: Report) -> None:
    """The cost of every warm-up and window: the cheapest is not known when a study is planned."""
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
    report.text("The longest warm-up and window represent the usual way here: the cheapest was chosen by its variance.")
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
        "too wide)."
    )


def _tell_sharing(campaign: Campaign, names: Sequence[str], seed: int, report: Report) -> None:
    """The same mix in a cohort and in a separate one."""
    shared, shared_costs = launches.losses(campaign.plan, campaign.ours)
    together, rows, apart = Paired(shared, shared_costs), [], []
    for mix, name in enumerate(names):
        alone, costs = launches.losses(campaign.single[mix], campaign.alone[mix])
        if len(costs) < FEWEST_LAUNCHES:
            report.text("Too few launches were measured to show what sharing a launch saves: give it more minutes.")
            return
        apart.append(Paired(alone, costs))
        here, there = points(together.effect(mix)), points(apart[-1].effect(0))
        rows.append([name, _plus_minus(here), _plus_minus(there), f"{len(costs)}", *_equivalent(minus(here, there))])
    header = ["mix", "in a cohort, points", "alone in a launch, points", "launches alone"]
    report.table([*header, "difference (90 %)", "p (TOST)", f"within ±{MARGIN:g} point"], rows)
    report.text(f"**Verdict.** {_saving(together, apart, seed)} {_agreement(rows)}")


def _saving(together: Paired, apart: Sequence[Paired], seed: int) -> str:
    """What sharing a launch saves on the way to the wanted half-width of every mix."""
    shared, alone = float(together.seconds(TARGET)[0]), sum(float(one.seconds(TARGET)[0]) for one in apart)
    said = (
        f"Until all {len(apart)} mixes have ±{percent(TARGET, 0)}, sharing a launch takes {_rounded(shared)} "
        f"machine-seconds and a launch for each mix {_rounded(alone)}, by the variance measured"
    )
    rng = np.random.default_rng(seed)
    samples = sum((one.seconds(TARGET, rng, DRAWS) for one in apart), np.zeros(DRAWS))
    low, high = interval(1 - together.seconds(TARGET, rng, DRAWS) / samples)
    word = "a saving is shown" if low > 0 else "a loss is shown" if high < 0 else "a saving is not shown"
    return f"{said}: {percent(1 - shared / alone, 0)} less (95 %: {percent(low, 0)} to {percent(high, 0)}); {word}."


def _plus_minus(value: Mean) -> str:
    return f"{value.value:.2f} ± {value.half_width:.2f}"


def _with_interval(value: float, low: float, high: float, digits: int | None = None) -> str:
    if digits is None:
        digits = _digits(value)
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _rounded(value: float) -> str:
    return f"{value:.{_digits(value)}f}"


def _digits(value: float) -> int:
    return 0 if abs(value) >= 100 else 1


def _choice(known: Known) -> str:
    return _words(known.choice)


def _words(choice: Choice | None) -> str:
    return f"{choice.warm_up:g} s + {choice.length:g} s" if choice else "-"


def _place(choice: Choice | None) -> tuple[float, float]:
    return (choice.warm_up, choice.length) if choice else (0.0, 0.0)


def _lengths(campaign: Campaign) -> str:
    """How long the slices were."""
    lengths = [1e3 * float(one.record["pace"]["slice"]) for one in campaign.ours]
    return f" of {min(lengths):.0f} to {max(lengths):.0f} ms" if lengths else ""


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{one:g}" for one in sorted(set(values)))
