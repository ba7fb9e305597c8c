"""What is worth knowing of a study: the rules that hold for it, and what they find in its tables."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from castmates.analysis.findings.findings import Finding, findings, gains
from castmates.report.results import NO_PLAN, Results
from castmates.results.columns.findings import GAINS
from castmates.results.columns.registry import TABLES
from castmates.results.columns.study import EFFECTS, MITIGATIONS, frame
from castmates.results.find import read_measured
from castmates.results.finding_rules import rules_of
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables
from castmates.results.trials import TrialRecord, results_of, trials_of
from castmates.study.class_names import plain_workload_of, without_class
from castmates.study.mitigations import with_place
from castmates.study.spec import UNMANAGED

FOUND = "_findings"  # where results keep them, as they keep each table that was read


def findings_of(results: Results) -> list[Finding]:
    """Every rule on tables that the study asks for, and how it came out of each lead and mix; the surest first.

    Found once, and kept by the results.
    """
    held = vars(results)
    if FOUND not in held:
        file = Path(results.study_file) if results.study_file else None
        rules = rules_of(results.study, file, {table.stem for table in results.folder.tables.glob("*.parquet")})
        asked = {
            name: rule
            for name, rule in rules.items()
            if all(each.table not in TABLES or table_of(results, each.table) is not None for each in rule.when)
        }
        held[FOUND] = findings(asked, lambda name: table_of(results, name))
    found: list[Finding] = held[FOUND]
    return found


def table_of(results: Results, name: str) -> pd.DataFrame | str | None:
    """A table of the study by its name, or why it is not there yet; None where the study does not ask for it."""
    file = results.folder.table_file(name)
    if name not in TABLES or not TABLES[name].rule:
        return pd.read_parquet(file) if file.is_file() else None
    if not len(results.tables.get(name, ())) and not file.is_file():
        if results.plan is NO_PLAN:
            return f"there is no table {name}, as this study has traces alone"
        return f"there is no table {name} yet" if results.has(name) else None
    table: pd.DataFrame = getattr(results, name)
    if table.empty and TABLES[name].rule == "analyse" and results.only_traced:
        return f"the table {name} is empty, as no losses were measured"
    return table if results.has(name) or len(table) else None


# What the trials of findings' advice gave: gains of a changed lead, or of what mitigates, in fresh launches.


@dataclass(frozen=True)
class Tried:
    """A trial and what is measured of it; both tables are empty as long as nothing is."""

    trial: TrialRecord
    gains: pd.DataFrame  # of a changed lead
    losses: pd.DataFrame  # rows of effects: what the lead loses as it is, and changed
    mitigations: pd.DataFrame  # of what was tried against a loss


def tried(folder: StudyFolder, finding: str = "") -> Iterator[Tried]:
    """The trials of a study's findings, or of one of them."""
    for trial in trials_of(folder):
        if finding in ("", trial.finding):
            yield read_trial(trial, folder)


def read_trial(trial: TrialRecord, folder: StudyFolder) -> Tried:
    """What the launches of a trial have shown so far."""
    own = results_of(trial, folder)
    found, against = frame([], GAINS), frame([], MITIGATIONS)
    if not own.plan_file.is_file() or not own.record_files():
        return Tried(trial, found, frame([], EFFECTS), against)
    tables = Tables(own, folder.trial_study_file(trial.name))
    if trial.changed:
        measured = read_measured(own.path)
        beside = {
            mix.name: with_place("+".join(plain_workload_of(name) for name in mix.antagonists), mix.name)
            for mix in measured.plan.mixes
        }
        margin = measured.study.margin if measured.study else 0.0
        table = measured.windows.assign(study=trial.name)
        found = gains(table, trial.lead, trial.changed, trial.work, beside, margin)
    else:
        against = tables.read(MITIGATIONS)
    effects = tables.read(EFFECTS)
    mine = (effects["role"] == "lead") & (effects["baseline"] == "alone") & (effects["partition"] == UNMANAGED)
    return Tried(trial, found, effects[mine], against)


def loss_of(tried: Tried, lead: str, beside: str) -> tuple[float, float, float]:
    """The loss of a lead beside antagonists, in per cent, with its interval; NaN where it is not known."""
    names = {column: tried.losses[column].map(without_class) for column in ("lead", "antagonists")}
    rows = tried.losses[(names["lead"] == lead) & (names["antagonists"] == beside)]
    if rows.empty:
        return math.nan, math.nan, math.nan
    row = rows.iloc[0]
    return float(row["loss_pct"]), float(row["loss_low"]), float(row["loss_high"])
