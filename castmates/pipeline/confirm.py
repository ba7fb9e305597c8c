"""Fresh launches for recommended partitions: writes the studies that measure them, and reads what they found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.verdicts import TOO_FEW
from castmates.analysis.findings.findings import Finding, change_for
from castmates.analysis.partitions.held import as_held, held_by, states
from castmates.analysis.partitions.recommendation import (
    ADVISED,
    CONFIRMED,
    NO_SWEEP,
    NOT_MET,
    NOT_NEEDED,
    OPEN,
    Searched,
    advice,
    other_design,
    pareto_table,
    refusal,
)
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.pipeline.followed_study import usual_options
from castmates.project import Project
from castmates.results.columns.partitions import KNEES, PARETO
from castmates.results.columns.study import EFFECTS, frame
from castmates.results.confirming import folder_of, study_files
from castmates.results.folder import StudyFolder
from castmates.results.launch_tables import read_windows
from castmates.results.plans import with_rounds_of_pilot
from castmates.results.records import read_record
from castmates.results.tables import Tables
from castmates.results.trials import WORKLOADS, TrialRecord, write_trial
from castmates.study.capabilities import PARTITIONS
from castmates.study.class_names import without_class, workload_of
from castmates.study.confirmation import FEWEST_LAUNCHES, LONGEST_NAME, confirmation_name, confirming, mix_under
from castmates.study.finding_rules import Change, Trial, Word
from castmates.study.mitigations import with_place
from castmates.study.model import Study, Workload
from castmates.study.replaying import catalogue_text
from castmates.study.spec import Launch, Mix, Plan
from castmates.study.trying import CHANGED, changed_lead, mitigating, mixes_of, trial_name, trying

HEAD = "Written by `castmates sweep {study} --confirm`: fresh launches for a partition that it recommends."


def write_study(project: Project, plan: Plan, mix: str, partition: str, launches: int | None) -> Path:
    """Write the study that confirms this partition; its file."""
    chosen = mix_under(plan, mix, partition)
    study = with_rounds_of_pilot(project.study, project.study_file)
    count = max(FEWEST_LAUNCHES, study.budget.launches) if launches is None else launches
    file = project.results.confirming_file(confirmation_name(study.name, chosen))
    head = HEAD.format(study=project.study_file)
    replace_text(file, confirming(study, plan, chosen, count).text(head))
    return file


def confirmed_rows(plan: Plan, folder: StudyFolder) -> pd.DataFrame:
    """What the fresh launches found: a row of the Pareto table for each study that confirms a partition of it."""
    mixes = {confirmation_name(plan.study, mix): mix for mix in plan.mixes if mix.partitions and mix.antagonists}
    rows = [
        _confirmed(plan, mix, folder_of(file, folder), _searched(plan, mix, folder))
        for file in study_files(folder)
        if (mix := mixes.get(file.stem)) is not None
    ]
    return pd.concat([frame([], PARETO), *rows], ignore_index=True).astype(dict(PARETO))


def _confirmed(plan: Plan, mix: Mix, fresh: StudyFolder, searched: Searched) -> pd.DataFrame:
    """The row of one confirming study."""
    counted: list[tuple[Path, Launch]] = []
    reasons: list[str] = []
    held: list[dict[str, Any]] = []  # the records of those counted
    for file in fresh.record_files():
        record = read_record(file)
        if why := refusal(record, searched):
            reasons.append(why)
        else:
            counted.append((file.parent, Launch.model_validate(record["spec"])))
            held.append(record)
    study, launches = fresh.path.name, tuple(launch for _, launch in counted)
    changes = {"study": study, "mixes": (mix,), "controls": (), "looks": (), "launches": launches}
    asked = plan.model_copy(update=changes)
    found = held_by(held)
    fresh_plan = as_held(asked, found)
    windows = read_windows([place for place, _ in counted])
    effects = estimate_effects(fresh_plan, windows, margin=0.0, held=states(asked, found))
    table = pareto_table(fresh_plan, windows, effects, CONFIRMED)
    if table.empty:
        table = frame([_nothing(plan, mix, searched.platform, study)], PARETO)
    why = "; ".join(dict.fromkeys(reasons))
    design = other_design((launch.design for launch in launches), (launch.design for launch in plan.launches))
    return table.assign(study=plan.study, frontier=False, refused=len(reasons), why_refused=why, design=design)


def _nothing(plan: Plan, mix: Mix, platform: str, source: str) -> dict[str, Any]:
    """A confirming study of which no launch counts."""
    lead, *others = map(workload_of, (mix.lead, *mix.antagonists))
    (partition,) = mix.partitions
    return {
        "mix": mix.name, "lead": lead, "antagonists": with_place("+".join(others), mix.name),
        "partition": partition.name, "curve": partition.curve, "stage": CONFIRMED, "source": source, "launches": 0,
        "refused": 0,
        "frontier": False, "platform": platform, "machine": plan.machine,
    }  # fmt: skip


def _searched(plan: Plan, mix: Mix, folder: StudyFolder) -> Searched:
    """What is known of the search, from the records of its launches with this mix."""
    having = [launch for launch in plan.launches if any(each.identity == mix.identity for each in launch.cohort.mixes)]
    files = [folder.record_file(launch) for launch in sorted(having, key=lambda launch: launch.path)]
    records = [read_record(file) for file in files if file.is_file()]
    return Searched(
        study=plan.study,
        mix=mix,
        platform=next((str(record.get("platform")) for record in records), ""),
        seeds={launch.seed for launch in plan.launches},
        hosts={str(record.get("host")) for record in records},
    )


def wanted(study: Study, plan: Plan, advice: pd.DataFrame, mix: str) -> list[tuple[str, str]]:
    """Mix and partition of everything that is recommended, or of what is recommended for this mix."""
    if mix and mix not in (names := {each.name for each in plan.mixes if each.antagonists}):
        raise CastmatesError(f"the study '{study.name}' has no mix '{mix}'; there are: {', '.join(sorted(names))}.")
    asked = advice[(advice["mix"] == mix) | (mix == "")]
    met = asked[asked["verdict"].isin(ADVISED)]
    if met.empty:
        which = f"the mix '{mix}' of the study '{study.name}'" if mix else f"the study '{study.name}'"
        raise CastmatesError(
            f"{which} has nothing to confirm: {_why_not(asked)}; --mix with --partition measures any partition again."
        )
    return list(dict.fromkeys(zip(met["mix"].astype(str), met["partition"].astype(str), strict=True)))


def _why_not(advice: pd.DataFrame) -> str:
    """What stands in the way of a recommendation, of most mixes first."""
    limit = f"{advice['limit_pct'].iloc[0]:g} %"
    words = {
        NOT_NEEDED: f"without a partition, the loss is at most {limit}",
        OPEN: f"a loss beyond {limit} without a partition, or a gain under one, is not proven",
        NOT_MET: f"no lead mask is shown to keep the limit of {limit}, and `castmates show "
        "--partitions` shows what comes nearest",
        TOO_FEW: "fewer than three launches do not show which lead mask keeps the limit, so measure more launches",
        NO_SWEEP: "no partition that gives the lead its own ways was measured, so add a sweep such as `split: all`",
    }
    counts = advice["verdict"].value_counts()
    if len(counts) == 1:
        return words[str(counts.index[0])]
    return "; ".join(f"{count} mix{'es' * (count > 1)}: {words[str(verdict)]}" for verdict, count in counts.items())


# What a study advises for a limit, from its tables.


def advised(project: Project, plan: Plan, limit_pct: float | None) -> pd.DataFrame:
    """What is advised for a limit, for the study's own or, without any, at the knees."""
    tables = Tables(project.results, project.study_file)
    limit = project.study.recommend.lead_loss if limit_pct is None else limit_pct
    if PARTITIONS.asked(plan):
        found = advice(plan, tables.read(PARETO), tables.read(KNEES), tables.read(EFFECTS), limit)
        if len(found):
            return found
    raise CastmatesError(
        f"{project.study_file}: no partition was measured, so none can be recommended; add `cache.sweeps`, such as "
        "`split: all`, and run the sweep (castmates help partitions)."
    )


# Tries the advice of a finding: writes the study that measures it in fresh launches, and reads what these gave.

BATCH = "batch"  # what the work of a step is in proportion to, whatever else a rule changes
_TRY_ADVICE_HEAD = "Written by `castmates advice {study} --try {finding}`: fresh launches that try its advice."


@dataclass(frozen=True)
class Asked:
    """What is to be tried."""

    finding: Finding
    options: Mapping[str, Word]  # of the lead, in place of what the rule has
    launches: int | None
    variables: Mapping[str, str] = field(default_factory=dict)  # likewise
    cpus: int | None = None  # likewise

    @property
    def change(self) -> Change | None:
        """The change that was asked for in place of the rule's; None where none was."""
        if not (self.options or self.variables or self.cpus):
            return None
        return Change(options=dict(self.options), variables=dict(self.variables), cores=self.cpus)


def write_trial_study(project: Project, plan: Plan, asked: Asked) -> TrialRecord:
    """Write the study of a trial, its workloads, and what it is about."""
    finding, trial = asked.finding, asked.finding.rule.trial
    if project.modelled:
        raise CastmatesError(f"{project.study_file}: its platform is modelled, so nothing runs that could be tried.")
    if trial is None:
        advice = finding.rule.advice
        raise CastmatesError(f"the rule '{finding.name}' has no 'try', so its advice is tried by hand: {advice}")
    study = with_rounds_of_pilot(project.study, project.study_file)
    launches = max(FEWEST_LAUNCHES, study.budget.launches) if asked.launches is None else asked.launches
    lead = without_class(finding.subject.lead)
    mixes = mixes_of(plan, finding.subject.lead, finding.subject.mix)
    if trial.mitigate:
        name = trial_name(study.name, finding.id, " ".join(trial.mitigate))
        written = mitigating(study, name, mixes[0], trial.mitigate, launches, f"{finding.rule.title}: mitigations")
        record = TrialRecord(name, finding.id, lead, "", mixes[0].name, (), 1.0, trial.shows)
        return _write(project, written, record, {})
    workload = project.workloads[lead]
    if workload.requests:
        raise CastmatesError(f"{lead} is an open-loop service, which is judged by its latency; trials compare rates.")
    new = changed_lead(lead, workload, _change(trial, workload, lead, asked.change), _usual(workload))
    other = lead[: LONGEST_NAME - len(CHANGED)] + CHANGED
    name = trial_name(study.name, finding.id, str(new.differences))
    title = f"{lead} with {', '.join(f'{what} {after}' for what, _, after in new.differences)}"
    written = trying(study, name, mixes, [lead, other], launches, title)
    record = TrialRecord(name, finding.id, lead, other, "", new.differences, new.work, trial.shows)
    titled = new.workload.model_copy(update={"title": f"{workload.title or lead}, changed", "tags": []})
    return _write(project, written, record, {other: titled})


def _change(trial: Trial, workload: Workload, lead: str, asked: Change | None) -> Change:
    """The change that was asked for, or else the one that fits the lead."""
    change = change_for(trial, workload.words)
    if asked is None:
        if change is None:
            raise CastmatesError(
                f"no change of this rule fits the program of {lead}; choose one by --set, --variable or --cpus."
            )
        return change
    work = (change.work if change else None) or next((name for name in asked.options if name == BATCH), None)
    return asked.model_copy(update={"work": work if asked.options else None})


def _usual(workload: Workload) -> Mapping[str, Word]:
    return usual_options(workload.words, workload.cores)


def _write(project: Project, study: Study, record: TrialRecord, added: Mapping[str, Workload]) -> TrialRecord:
    """The files of a trial."""
    folder = project.results
    rules = (*study.listed_mixes, *study.mitigations)
    named = {*study.leads, *(name for rule in rules for name in (rule.lead, *rule.antagonists))}
    workloads = {name: project.workloads[name] for name in sorted(named - added.keys())} | dict(added)
    head = _TRY_ADVICE_HEAD.format(study=project.study_file, finding=record.finding)
    replace_text(folder.trial(record.name) / WORKLOADS, catalogue_text(workloads, head))
    replace_text(folder.trial_study_file(record.name), study.text(head))
    write_trial(folder, record)
    return record
