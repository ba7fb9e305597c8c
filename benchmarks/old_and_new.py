"""Machine-seconds to a half-width of ±1 point: the tree before slices against this one, in turns, same cohort."""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.campaign import TARGET
from benchmarks.common import Report, TimeBox, arguments_of, percent, run, scratch
from benchmarks.machine import ROOT
from benchmarks.precision import (
    DRAWS,
    equivalence,
    interval,
    minus,
    points,
    simultaneous,
    units_needed,
    variance_ratio,
)
from benchmarks.trees import Shown, Tree, export, refuse_other_cohorts
from benchmarks.verdicts import Aim, Finding
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES
from castmates.errors import CastmatesError

BEFORE = "67070db"  # the last commit that measured in single windows
AIM = Aim(least=4.0)  # times fewer machine-seconds
MARGIN = 1.0  # points within which effects agree


def main() -> None:
    """Measure a launch each way until the time is over, then print the results."""
    options = _options()
    title = f"{options.lead} beside {', '.join(options.antagonists)}"
    report = Report(f"Old against new: {title}", "old_and_new")
    with scratch() as folder:
        old = Tree("old", export(options.before, folder / "tree"), folder / "old")
        new = Tree("new", ROOT, folder / "new")
        _plan(old, new, options)
        for number in TimeBox(options.minutes).portions():
            trees = [old, new]
            random.Random(f"{options.seed}/{number}").shuffle(trees)
            for tree in trees:
                tree.measure()
            if number + 1 >= options.launches:
                break
        _tell_design(old, new, options, report)
        _tell(old.shown(), new.shown(), new.about["mixes"], options, report)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=15)
    parser.add_argument("--lead", default="dlrm-train", help="the lead")
    parser.add_argument("--antagonists", nargs="+", default=["stream", "chase", "compute"], help="a mix with each")
    parser.add_argument("--study", type=Path, default=Path("config/config.yaml"), help="in both trees; its budgets")
    parser.add_argument("--rounds", type=int, help="of the new way, where its study leaves them to the first launches")
    parser.add_argument("--launches", type=int, default=60, help="of each way, at most")
    parser.add_argument("--before", default=BEFORE, help="commit of the old tree")
    return parser.parse_args()


def _plan(old: Tree, new: Tree, options: argparse.Namespace) -> None:
    asked = {
        "study": str(options.study),
        "lead": options.lead,
        "antagonists": options.antagonists,
        "seed": options.seed,
        "launches": options.launches,
    }
    old.plan(asked | {"budget": {}})
    new.plan(asked | {"budget": {"rounds": options.rounds}})
    refuse_other_cohorts([old, new])
    if not isinstance(new.about["rounds"], int):
        raise CastmatesError(
            f"the study leaves the number of rounds to the first launches ('{new.about['rounds']}'), but all launches "
            "here have to be alike: give --rounds, the number that `castmates plan` shows for the later ones."
        )


def _tell_design(old: Tree, new: Tree, options: argparse.Namespace, report: Report) -> None:
    said = []
    for tree in (old, new):
        design = tree.about["design"]
        said.append(
            f"{tree.name}: {design['rounds']} rounds, windows of {design['window']:g} s, settle time of at least "
            f"{1e3 * design['settle']:g} ms"
        )
    waited = old.waited + new.waited
    report.text(
        f"Old is the tree of commit {options.before}, new is this one; each measures by its own command, code and "
        f"budget of `{options.study}` ({'; '.join(said)}), the same {len(new.about['scenes'])} scenes, a launch each "
        "way in turns, in random order within each turn. The number of rounds is fixed for all launches. Charged is "
        "the whole command, from the start of its interpreter to its end."
    )
    if waited:
        report.text(f"**{waited} launches waited for another measurement: their seconds are too many.**")


def _tell(old: Shown, new: Shown, mixes: Sequence[str], options: argparse.Namespace, report: Report) -> None:
    report.text(
        *(
            f"{one.name.capitalize()}: protocol {'/'.join(map(str, one.about['protocols']))}, "
            f"{one.about['launches']} launches, {len(one.losses)} of them with every mix; of their "
            f"{one.about['windows']} windows {one.about['rejected']} were rejected."
            for one in (old, new)
        )
    )
    if min(len(old.losses), len(new.losses)) < FEWEST_LAUNCHES:
        report.text(f"Fewer than {FEWEST_LAUNCHES} launches each way: no variance between launches, and no verdict.")
        return
    _tell_launches(old, new, mixes, report)
    _tell_parts(old, new, mixes, report)
    _tell_ratios(old, new, mixes, options.seed, report)
    _tell_effects(old, new, mixes, report)


def _tell_launches(old: Shown, new: Shown, mixes: Sequence[str], report: Report) -> None:
    rows = []
    for mix, name in enumerate(mixes):
        for one in (old, new):
            loss, needed = points(one.way.effect(mix)), float(one.way.needed(TARGET)[0, mix])
            spread = float(np.std(one.losses[:, mix], ddof=1))
            seconds = float(one.way.costs.mean())
            found = [str(len(one.losses)), f"{loss.value:.2f} ± {loss.half_width:.2f}", f"{100 * spread:.2f}"]
            rows.append([name, one.name, *found, f"{needed:.0f}", f"{seconds:.1f}", f"{needed * seconds:.0f}"])
    header = ["mix", "way", "launches", "loss, points", "scatter of launches, %"]
    target = percent(TARGET, 0)
    header += [f"launches to ±{target}", "s a launch", f"machine-seconds to ±{target}"]
    report.table(header, rows)
    report.text(
        "± is half of the 95 % interval over launches (Student's). Scatter is the standard deviation of the launches' "
        f"mean log ratios. Launches to ±{target} are extrapolated from it, Student's t included, never fewer than "
        f"{FEWEST_LAUNCHES}."
    )


def _tell_parts(old: Shown, new: Shown, mixes: Sequence[str], report: Report) -> None:
    """Which part of the scatter of launches more rounds could remove."""
    rows = []
    for mix, name in enumerate(mixes):
        for one in (old, new):
            within = one.variance_due_to_rounds()[mix]
            between = max(0.0, float(np.var(one.losses[:, mix], ddof=1)) - within)
            alone = units_needed(np.array([between]), TARGET)[0]
            scatters = [f"{100 * variance**0.5:.2f}" for variance in (one.variance_of_round()[mix], within, between)]
            rows.append([name, one.name, *scatters, f"{alone:.0f}"])
    header = ["mix", "way", "scatter of a round, %", "of a launch: due to its rounds, %", "beyond that, %"]
    target = percent(TARGET, 0)
    report.table([*header, f"launches to ±{target} if only that were left"], rows)
    report.text(
        "Two parts of a launch's scatter: what its rounds account for, and what is left. More rounds or "
        "shorter slices make the first smaller; the second takes more launches, whichever way they are measured."
    )


def _tell_ratios(old: Shown, new: Shown, mixes: Sequence[str], seed: int, report: Report) -> None:
    """How many times fewer machine-seconds the new way needs, with what so few launches allow."""
    cost = float(old.way.costs.mean() / new.way.costs.mean())
    rows = []
    for mix, name in enumerate(mixes):
        ratio, low, high = variance_ratio(old.losses[:, mix], new.losses[:, mix])
        rows.append(
            [name, _bracketed(ratio, low, high), f"{cost:.2f}", _bracketed(*(cost * np.array([ratio, low, high])))]
        )
    rng = np.random.default_rng(seed)
    both = [float(one.way.seconds(TARGET)[0]) for one in (old, new)]
    drawn = [one.way.seconds(TARGET, rng, DRAWS) for one in (old, new)]
    times, (low, high) = both[0] / both[1], interval(drawn[0] / drawn[1])
    rows.append([f"**all to ±{percent(TARGET, 0)}**", "", "", _bracketed(times, low, high)])
    report.table(["mix", "variance, old / new", "seconds a launch, old / new", "machine-seconds, old / new"], rows)
    report.text(
        "In brackets: 95 %, for normal scatter of launches (Fisher's distribution for a mix; for all mixes, of which "
        f"the worst decides, by simulation, in whole launches and at least {FEWEST_LAUNCHES} of them)."
    )
    what = f"machine-seconds to ±{percent(TARGET, 0)} for all mixes, old / new"
    count = min(len(old.losses), len(new.losses))
    report.found(
        Finding(what=what, value=times, unit="×", low=low, high=high, count=count, of="launches each way", aim=AIM)
    )


def _tell_effects(old: Shown, new: Shown, mixes: Sequence[str], report: Report) -> None:
    """Whether both ways show the same losses."""
    rows, agreed, joint = [], [], []
    for mix, name in enumerate(mixes):
        difference = minus(points(new.way.effect(mix)), points(old.way.effect(mix)))
        test, half = equivalence(difference, MARGIN), simultaneous(difference, len(mixes))
        agreed.append(test.verdict)
        joint.append(abs(difference.value) <= half)
        row = [name, f"{difference.value:+.2f} ± {half:.2f}", "yes" if joint[-1] else "no"]
        rows.append([*row, f"{test.low:+.2f} to {test.high:+.2f}", f"{test.p_value:.3g}", test.verdict])
    header = ["mix", "new - old, points (joint 95 %)", "0 within", "90 %", "p (TOST)", f"within ±{MARGIN:g} point"]
    report.table(header, rows)
    counts = ", ".join(f"{agreed.count(word)} {word}" for word in dict.fromkeys(agreed))
    report.text(
        f"**Verdict.** Within ±{MARGIN:g} point (TOST at 5 %): {counts}. No difference is seen in {sum(joint)} of "
        f"{len(joint)} mixes by intervals that hold all differences together 95 times in 100; as wide as they are, "
        "that is no proof that there is none."
    )


def _bracketed(value: float, low: float, high: float) -> str:
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    run(main)
