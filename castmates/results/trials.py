"""The trials of advice: what `castmates advice --try` wrote, and their launches; light, because the Snakefile asks."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from castmates.files import mapping_of, replace_text, understanding
from castmates.results.columns.launch import RECORD, table_file
from castmates.results.folder import StudyFolder

TRIAL = "trial.json"
WORKLOADS = "workloads/tried.yaml"  # beside the study of a trial


@dataclass(frozen=True)
class TrialRecord:
    """What a trial is about."""

    name: str  # of its study
    finding: str  # that it tries the advice of
    lead: str
    changed: str  # the changed lead's name; "" where mitigations are tried
    mix: str  # that mitigations are tried on; "" where the lead is changed
    differences: tuple[tuple[str, str, str], ...]  # what, as it was, as it is
    work: float  # how many times the work of a step that it was
    shows: str  # what a gain shows


def write_trial(folder: StudyFolder, trial: TrialRecord) -> None:
    """Put down what a trial is about, beside its study."""
    replace_text(folder.trial(trial.name) / TRIAL, json.dumps(asdict(trial), indent=2) + "\n")


def trials_of(folder: StudyFolder) -> Iterator[TrialRecord]:
    """The trials of these results, in the order of their names."""
    for file in sorted(folder.trial("*").parent.glob(f"*/{TRIAL}")):
        yield _read(file)


def _read(file: Path) -> TrialRecord:
    with understanding(file, "what `castmates advice --try` writes", "remove its folder, and try again"):
        content = mapping_of(file)
        known = {each.name: content[each.name] for each in fields(TrialRecord)}
        differences = tuple((str(what), str(before), str(after)) for what, before, after in known["differences"])
        return TrialRecord(**{**known, "differences": differences, "work": float(known["work"])})


def results_of(trial: TrialRecord, folder: StudyFolder) -> StudyFolder:
    """Where the results of a trial lie: beside those that it belongs to."""
    return StudyFolder(folder.path.parent / trial.name)


def launch_files(folder: StudyFolder) -> list[str]:
    """The files of the trials' measured launches that the report shows the gains of."""
    records = [record for trial in trials_of(folder) for record in results_of(trial, folder).record_files()]
    return [str(record.with_name(name)) for record in records for name in (RECORD, table_file("windows"))]
