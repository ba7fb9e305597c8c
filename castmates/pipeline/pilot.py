"""A pilot of a study: a few launches of each cohort, and the design that follows from them."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from castmates.analysis.design import pilot as estimates
from castmates.analysis.prediction.pairs import RATE
from castmates.analysis.prediction.table import GRID, KnownGrid, estimate_predictions, name_on, never_pooled
from castmates.analysis.statistics.power import launches_for
from castmates.errors import CastmatesError
from castmates.files import cache_folder, replace_text
from castmates.pipeline.measure_launch import measure_launch
from castmates.pipeline.snakemake import hold_sweep_lock
from castmates.project import ENVIRONMENTS, Project
from castmates.results.columns.prediction import PREDICTIONS
from castmates.results.columns.study import EFFECTS, frame
from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.plans import pilot_folder, pilot_name, read_plan
from castmates.results.records import Record, read_record, useless
from castmates.results.tables import Tables
from castmates.study.budget_keys import CONFIRMED_AFTER
from castmates.study.class_names import without_class
from castmates.study.dials import dials_of
from castmates.study.model import Study
from castmates.study.placement_keys import FEWEST_PAIRS
from castmates.study.rounds import Cost, Spread
from castmates.study.schedule import launch_priority
from castmates.study.spec import UNMANAGED, Launch, Plan, Prediction
from castmates.workloads import environments

ROUNDS = 4  # of a pilot's launch: enough to see how rounds differ
PRECISION = 0.01  # the proposed number of launches reaches it where the study wants no other
FEWEST_LAUNCHES, MOST_LAUNCHES = 5, 200  # that are proposed
MORE = f"more than {MOST_LAUNCHES}"


@dataclass(frozen=True)
class Proposal:
    """The design that follows from a pilot, and what it follows from; times in seconds."""

    rounds: int
    window: float
    settle: float
    noise_of_a_window: float | None = None
    mixes: Mapping[str, Spread] = field(default_factory=dict)  # by identity
    cohorts: Mapping[str, Cost] = field(default_factory=dict)  # by id


def measure(project: Project, launches: int) -> Plan:
    """Measure what is missing of the pilot; what was measured before is kept, unless it gave nothing."""
    pilot = pilot_of(project, launches)
    plan = pilot.plan()
    hold_sweep_lock(pilot.results)
    for name in sorted(_environments(plan.launches)):
        environments.build(name, ENVIRONMENTS, cache_folder())
    for launch in sorted(plan.launches, key=lambda launch: -launch_priority(launch.seed, launch.number)):
        record = pilot.results.record_file(launch)
        if not record.is_file() or useless(read_record(record)):
            measure_launch(plan, launch.path, record.parent, cache_folder())
    return plan


def pilot_of(project: Project, launches: int) -> Project:
    """The pilot as a separate study: the same mixes, few launches, no controls."""
    study = project.study
    budget = study.budget.without_looks(launches, rounds=ROUNDS, spare_rounds=0)
    return replace(
        project, study=study.model_copy(update={"name": pilot_name(study), "budget": budget, "controls": None})
    )


def propose(study: Study, plan: Plan) -> str:
    """Estimate from the pilot's launches, leave the proposal where `budget.rounds: pilot` finds it, and describe it."""
    folder = pilot_folder(study)
    proposal = _proposal(study, plan, folder)
    replace_text(folder.pilot_file, json.dumps(asdict(proposal), indent=1) + "\n")
    return _words(study, proposal)


def _proposal(study: Study, plan: Plan, folder: StudyFolder) -> Proposal:
    windows = read_windows(folder.places(plan))
    spreads = estimates.spreads(plan, windows)
    records = _records(folder, plan)
    costs = {cohort: cost for cohort, launches in records.items() if (cost := estimates.cost_of(launches))}
    if not spreads or not costs:
        raise CastmatesError(f"no mix has two launches with valid windows in {folder}; the logs there show why.")
    budget = study.budget
    settle = max([budget.settle, *_settle_times(records.values())])
    return Proposal(
        rounds=estimates.best_rounds(spreads.values(), costs.values(), budget.longest_launch),
        window=estimates.window_for(windows, budget.steps, budget.window, budget.longest_window, settle),
        settle=round(settle, 3),
        noise_of_a_window=estimates.window_noise(windows),
        mixes=spreads,
        cohorts=costs,
    )


def _environments(launches: Iterable[Launch]) -> set[str]:
    members = [member for launch in launches for member in launch.cohort.members]
    return {environments.NATIVE, *(member.environment for member in members if member.environment)}


def _records(folder: StudyFolder, plan: Plan) -> dict[str, list[Record]]:
    """The records of the launches, cohort by cohort."""
    records: dict[str, list[Record]] = {}
    for launch in plan.launches:
        records.setdefault(launch.cohort.id, []).append(read_record(folder.record_file(launch)))
    return records


def _settle_times(cohorts: Iterable[Sequence[Record]]) -> list[float]:
    """The settle times that the launches came to."""
    settled: Iterable[Any] = (record.get("settle") for records in cohorts for record in records)
    return [float(settling["seconds"]) for settling in settled if settling]


def _words(study: Study, proposal: Proposal) -> str:
    """The spread of each mix, the cost of each cohort, and the lines to paste, as text for a terminal."""
    wanted, spreads = study.budget.precision or PRECISION, proposal.mixes.values()
    needs = [launches_for(each.of_launches(proposal.rounds), wanted, MOST_LAUNCHES, each.log) for each in spreads]
    mixes = Table("mix", box=None, title="Spread of the loss against alone", title_justify="left")
    for name in ("between launches", "between rounds", "launches"):
        mixes.add_column(name, justify="right")
    for spread, need in zip(spreads, needs, strict=True):
        launches = f"about {need}" if need else MORE
        mixes.add_row(spread.mix, f"{_deviation(spread.between)} %", f"{_deviation(spread.within)} %", launches)
    cohorts = Table("cohort", box=None, title="Cost", title_justify="left")
    for name in ("launch", "round"):
        cohorts.add_column(name, justify="right")
    for cohort, cost in proposal.cohorts.items():
        cohorts.add_row(cohort, f"{cost.launch:.1f} s", f"{cost.round:.1f} s")
    text = StringIO()
    console = Console(file=text, width=100, highlight=False, color_system=None)
    console.print(mixes)
    console.print()
    console.print(cohorts)
    if (noise := proposal.noise_of_a_window) is not None:
        console.print(f"\nNoise of a window: {100 * noise:.2g} %.")
    console.print("\nProposed, to be put into the study:\n\nbudget:")
    console.print(yaml_lines(study, proposal, needs, wanted), end="", soft_wrap=True)
    return text.getvalue()


def yaml_lines(study: Study, proposal: Proposal, needs: Sequence[int | None], wanted: float) -> str:
    """The lines to paste; few launches show only roughly how many are needed, hence the larger limit."""
    known = [need for need in needs if need is not None]
    about = max(FEWEST_LAUNCHES, *known) if len(known) == len(needs) else None
    aim = f"±{100 * wanted:g} % of every lead's time alone"
    launches = f"about {about} launches" if about else f"{MORE} launches, and so no number is proposed,"
    lines = [f"# {launches} for {aim}"]
    if study.budget.precision is None:
        lines += [f"launches: {about}"] if about else []
    else:
        lines.append(f"precision: {100 * wanted:g}%")
        limit = max(about + about // 2, study.budget.launches) + CONFIRMED_AFTER if about else None
        lines += [f"most_launches: {limit}"] if limit else []
    lines += [f"rounds: {proposal.rounds}", f"window: {proposal.window}", f"settle: {proposal.settle}"]
    return "".join(f"  {line}\n" for line in lines)


def _deviation(variance: float) -> str:
    return f"{100 * variance**0.5:.2g}"


# A measured study -> what its pairs lose that were not measured.


@dataclass(frozen=True)
class Asked:
    """A combination that somebody wants to know: a job and all that runs beside it."""

    lead: str
    beside: Sequence[str]


@dataclass(frozen=True)
class Predicting:
    """A study with its effects and the grid that is predicted."""

    project: Project
    plan: Plan
    effects: pd.DataFrame

    @classmethod
    def of(cls, project: Project) -> "Predicting":
        """Of a study with tables. Without the key `predict` its grid is all that has been a lead or an antagonist."""
        plan = read_plan(project.results.plan_file)
        effects = Tables(project.results, project.study_file).read(EFFECTS)
        if plan.prediction is None:
            plan = plan.model_copy(update={"prediction": _everything(effects, dials_of(plan))})
        return cls(project, plan, effects)

    def predictions(self) -> pd.DataFrame:
        """The table of the whole grid."""
        table = estimate_predictions(self.plan, self.effects)["predictions"]
        if table["without_pct"].isna().all() and (table["source"] != "predicted").all():
            mixes = self.effects.loc[_pairs(self.effects), "mix"].nunique()
            raise CastmatesError(
                f"{self.project.study_file}: {mixes} mixes of two programs were measured, and {FEWEST_PAIRS} are the "
                "fewest from which others are predicted; add pairs, or the key `predict` (castmates help prediction)."
            )
        return table

    def one(self, asked: Asked) -> pd.DataFrame:
        """The rows of one combination: of each class of nodes and platform."""
        rows, grid = [], self.plan.prediction or _everything(self.effects, ())
        for platform, machine, own in never_pooled(self.effects):
            row = KnownGrid(own, grid, self.plan).row((asked.lead, tuple(sorted(asked.beside))), GRID)
            about = {"study": self.plan.study, "platform": platform, "machine": machine}
            if row["source"]:
                rows.append(row | about | {"lead": name_on(self.plan, machine)(asked.lead)})
        if not rows:
            known = sorted({*map(without_class, self.effects["lead"]), *grid.leads, *grid.antagonists})
            raise CastmatesError(
                f"{self.project.study_file}: nothing was measured from which the loss of {asked.lead} beside "
                f"{' and '.join(asked.beside)} follows; programs of this study are {', '.join(known)}."
            )
        return frame(rows, PREDICTIONS)


def _pairs(effects: pd.DataFrame) -> "pd.Series[bool]":
    plain = (effects["partition"] == UNMANAGED) & (effects["role"] == "lead") & effects["slowdown"].notna()
    return (
        plain
        & (effects["metric"] == RATE)
        & (effects["antagonists"] != "")
        & ~effects["antagonists"].str.contains(r"[+:]")
    )


def _everything(effects: pd.DataFrame, dials: Collection[str]) -> Prediction:
    """A grid of all that has been a lead, without those that hold their rate, or an antagonist."""
    pairs = effects[_pairs(effects)]
    leads = [name for name in dict.fromkeys(map(without_class, pairs["lead"])) if name not in dials]
    return Prediction(leads=tuple(leads), antagonists=tuple(dict.fromkeys(map(without_class, pairs["antagonists"]))))
