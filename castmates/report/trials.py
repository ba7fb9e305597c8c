"""What the trials of findings' advice gave: gains of a changed lead, or of what mitigates, in fresh launches."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from castmates.analysis.findings.gains import gains
from castmates.results.columns.findings import GAINS
from castmates.results.columns.study import EFFECTS, MITIGATIONS, frame
from castmates.results.find import read_measured
from castmates.results.folder import StudyFolder
from castmates.results.tables import Tables
from castmates.results.trials import TrialRecord, results_of, trials_of
from castmates.study.class_names import plain_workload_of, without_class
from castmates.study.spec import UNMANAGED
from castmates.study.wanted import with_place


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
