"""Adaptive sweeps against the full grid: windows saved, errors of the curves, wrong answers.

Modelled: many adaptive studies of config/studies/modelled-adaptive.yaml, whose truth is known, with several limits, by
the code that takes looks in a sweep. With `--results`, a full grid that was really measured (an adaptive study without
`adaptive`, with `launches` as many as `most_launches`): adaptive studies are played on its launches, in random orders.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import castmates
from benchmarks import verdicts
from benchmarks.common import Report, percent, run, say
from benchmarks.verdicts import Aim, Finding
from castmates import project
from castmates.analysis.design.pilot import against_alone
from castmates.analysis.keys import ROW
from castmates.analysis.statistics.intervals import Floats, per_launch
from castmates.analysis.statistics.pairs import pair, planned
from castmates.results.plans import analysed, read_plan
from castmates.study.curves import measured_later
from castmates.study.spec import UNMANAGED
from tests.unit.modelled.adaptive_studies import TOGETHER, Setting, play
from tests.unit.modelled.test_adaptive_oracle import Outcome, outcome_of

STUDY = Path("config/studies/modelled-adaptive.yaml")
LIMITS = (None, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)  # per cent
SAVED, ERROR = Aim(least=60.0), Aim(most=1.0)  # per cent of the windows, points
COLUMNS = ["saved", "mean error", "largest", "to the truth", "interpolated", "bounds hold", "intervals cover", "wrong"]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=500, help="of each limit and lead; or orders of launches")
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--results", type=Path, help="results/STUDY of a full grid that was measured")
    parser.add_argument("--limit", type=float, help="with --results: what the lead may lose, in per cent")
    parser.add_argument("--first", type=int, default=4, help="with --results: launches before the first look")
    parser.add_argument("--batch", type=int, default=2, help="with --results: launches between two looks")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    if given.results:
        _measured(given, rng)
    else:
        _modelled(given.studies, rng)


def _modelled(studies: int, rng: np.random.Generator) -> None:
    report = Report("Adaptive sweeps against the full grid (modelled)", "adaptive")
    loaded = project.load(STUDY)
    plan = loaded.plan()
    found: dict[str, Outcome] = {}
    for lead in dict.fromkeys(mix.lead for mix in plan.mixes):
        setting = Setting.of_lead(loaded.study, plan, plan.launches[0].design.rounds, lead)
        for limit in LIMITS:
            name = f"{lead.partition('@')[0]}, {'no limit' if limit is None else f'limit {limit:g} %'}"
            say(name)
            values = (each for _ in range(0, studies, TOGETHER) for each in setting.drawn(rng, TOGETHER))
            found[name] = _played(replace(setting, limit=limit), list(values)[:studies])
    report.text(
        f"{studies} modelled studies a line, of {STUDY}: looks after {loaded.study.budget.looks} launches; the full "
        f"grid has {loaded.study.budget.looks[-1]} launches of every cell. Errors in points of loss, over all cells of "
        "curves, against the full grid of the same launches, and against the model's truth."
    )
    _shown(report, found, with_truth=True)


def _measured(given: argparse.Namespace, rng: np.random.Generator) -> None:
    report = Report("Adaptive sweeps, played on a full grid of launches", "adaptive")
    known, studies = castmates.load(given.results), given.studies
    plan = analysed(read_plan(known.folder.plan_file), known.folder)
    plan = plan.model_copy(update={"later": measured_later(plan.mixes)})
    found: dict[str, Outcome] = {}
    for lead in dict.fromkeys(mix.lead for mix in plan.mixes):
        setting = Setting.of_plan(plan, plan.launches[0].design.rounds, lead)
        values = _values(setting, known.windows)
        setting.looks, setting.limit = [*range(given.first, len(values), given.batch), len(values)], given.limit
        setting.true = np.nanmean(values, axis=0)
        orders = [rng.permutation(len(values)) for _ in range(studies)]
        found[lead.partition("@")[0]] = _played(setting, [values[order] for order in orders])
    report.text(
        f"A full grid ({', '.join(sorted(set(known.windows['platform'])))}) of {', '.join(found)}; {studies} orders of "
        f"its launches, {'no limit' if given.limit is None else f'limit {given.limit:g} %'}. "
        "The estimates of the full grid stand for the truth; intervals of parts of the same launches cover nothing."
    )
    _shown(report, found, with_truth=False)


def _values(setting: Setting, windows: object) -> Floats:
    """By launch and cell, the lead's log slowdown against alone; NaN where no round has both windows."""
    plan = setting.plan
    contrasts = against_alone(plan)
    table = per_launch(pair(planned(windows, plan), contrasts), ROW).reset_index()  # type: ignore[arg-type]
    identities = {(m.name, m.partitions[0].name if m.partitions else UNMANAGED): m.identity for m in plan.mixes}
    rows = contrasts.drop_duplicates("row").set_index("row")
    places = {identity: at for at, identity in enumerate(setting.cells)}
    launches = sorted(table["launch"].unique())
    values = np.full((len(launches), len(places)), np.nan)
    for row, launch, value in zip(table["row"], table["launch"], table["value"], strict=True):
        at = places[identities[rows.loc[row, "mix"], rows.loc[row, "partition"]]]
        values[launches.index(launch), at] = value
    return values


def _played(setting: Setting, drawn: list[Floats]) -> Outcome:
    return outcome_of(setting, [play(setting, values) for values in drawn], drawn)


def _shown(report: Report, found: dict[str, Outcome], with_truth: bool) -> None:
    report.table(["study", *COLUMNS], [[name, *_line(one, with_truth)] for name, one in found.items()])
    for name, attribute, unit, scale, aim in (
        ("windows saved of the full grid", "saved_by", "%", 100.0, SAVED),
        ("mean error of curves against the full grid", "error_by", "points", 1.0, ERROR),
    ):
        values = scale * np.concatenate([getattr(one, attribute) for one in found.values()])
        if with_truth:
            report.found(verdicts.mean(name, values, unit, "studies", aim))
        else:  # orders of the same launches are no sample
            mean = float(values.mean())
            report.found(Finding(what=name, value=mean, unit=unit, count=1, of="measured grids", aim=aim))
    report.print()


def _line(one: Outcome, with_truth: bool) -> Iterator[str]:
    yield percent(one.saved, 0)
    yield from (f"{points:.2f}" for points in (one.against_full, one.largest))
    yield f"{one.against_truth:.2f}" if with_truth else "–"
    yield from (percent(one.interpolated, 0), percent(one.bounds))
    yield percent(one.coverage) if with_truth else "–"
    yield percent(one.wrong, 2)


if __name__ == "__main__":
    run(main)
