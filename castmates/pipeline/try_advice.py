"""Tries the advice of a finding: writes the study that measures it in fresh launches, and reads what these gave."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from castmates.analysis.findings.findings import Finding, change_for
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.pipeline.followed_study import usual_options
from castmates.project import Project
from castmates.results.plans import with_rounds_of_pilot
from castmates.results.trials import WORKLOADS, TrialRecord, write_trial
from castmates.study.class_names import without_class
from castmates.study.confirmation import FEWEST_LAUNCHES, LONGEST_NAME
from castmates.study.finding_rules import Change, Trial, Word
from castmates.study.model import Study, Workload
from castmates.study.replaying import catalogue_text
from castmates.study.spec import Plan
from castmates.study.trying import CHANGED, changed_lead, mitigating, mixes_of, trial_name, trying

BATCH = "batch"  # what the work of a step is in proportion to, whatever else a rule changes
HEAD = "Written by `castmates advice {study} --try {finding}`: fresh launches that try its advice."


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
    named = {name for rule in (*study.listed_mixes, *study.mitigations) for name in (rule.lead, *rule.antagonists)}
    workloads = {name: project.workloads[name] for name in sorted(named - added.keys())} | dict(added)
    head = HEAD.format(study=project.study_file, finding=record.finding)
    replace_text(folder.trial(record.name) / WORKLOADS, catalogue_text(workloads, head))
    replace_text(folder.trial_study_file(record.name), study.text(head))
    write_trial(folder, record)
    return record
