"""A finding's advice -> the study that tries it in fresh launches: the lead as it is, and changed, or what mitigates.

It runs beside the same antagonists, or alone where there are none, with the same windows, under another seed; its
results lie in a separate folder, and nothing of what led to the finding is in them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castmates.errors import CastmatesError
from castmates.study.class_names import plain_workload_of, workload_of
from castmates.study.confirmation import FEWEST_LAUNCHES, LONGEST_NAME, at_defaults
from castmates.study.finding_rules import Change, Scaled, Value, Word
from castmates.study.mitigations import overcommits, place_of
from castmates.study.mix_keys import DISTANCES, ArrangedMix, CpuShare, Kind, Mitigated
from castmates.study.model import Study, Workload
from castmates.study.spec import Mix, Plan

MOST_MIXES = 3  # of a lead, beside which its change is tried
CHANGED = "-changed"


@dataclass(frozen=True)
class ChangedLead:
    """A lead after its change."""

    workload: Workload
    differences: tuple[tuple[str, str, str], ...]  # what, as it was, as it is
    work: float  # how many times the work of a step that it was


def option_of(words: Sequence[str], name: str) -> str | None:
    """What a command line has for `--name`: the last word behind it; None where it is not there."""
    places = [at + 1 for at, word in enumerate(words) if word == f"--{name}" and at + 1 < len(words)]
    return words[places[-1]] if places else None


def trial_name(study: str, finding: str, change: str) -> str:
    """What the study of a trial is called; another change is another study."""
    tail = f"-try-{hashlib.sha256(f'{finding} {change}'.encode()).hexdigest()[:8]}"
    return study[: LONGEST_NAME - len(tail)] + tail


def changed_lead(name: str, workload: Workload, change: Change, usual: Mapping[str, Word]) -> ChangedLead:
    """The lead with its change; `usual` are the options and variables that its program takes where none are set."""
    differences: list[tuple[str, str, str]] = []
    options, work = dict(workload.options), 1.0
    for option, asked in change.options.items():
        written = option_of(workload.words, option)
        before = written if written is not None else workload.options.get(option, usual.get(option))
        options[option] = value = _value(name, f"--{option}", asked, before, workload.cores)
        if str(value) == str(before):  # it is written nonetheless: what is usual may follow from the number of CPUs
            continue
        differences.append((f"--{option}", "not set" if before is None else str(before), str(value)))
        if option == change.work:
            work = _ratio(name, option, before, value)
    variables = dict(workload.variables)
    for variable, wanted in change.variables.items():
        before = variables.get(variable)
        usually = usual.get(variable, before) if before in (None, "", "0") else before
        variables[variable] = text = str(_value(name, variable, wanted, usually, workload.cores))
        if before != text:
            differences.append((variable, before or "not set", text))
    cores = (
        workload.cores
        if change.cores is None
        else int(_value(name, "its CPUs", change.cores, workload.cores, workload.cores))
    )
    if cores != workload.cores:
        differences.append(("CPUs", str(workload.cores), str(cores)))
    if not differences:
        raise CastmatesError(f"{name} is already as the advice has it, so there is nothing to try; choose with --set.")
    new = workload.model_copy(update={"options": options, "variables": variables, "cores": cores})
    return ChangedLead(new, tuple(differences), work)


def _value(name: str, what: str, asked: Value, before: Word | None, cores: int) -> Word:
    if not isinstance(asked, Scaled):
        return asked
    if asked.of_cpus is not None:
        return max(1, round(cores * asked.of_cpus))
    try:
        return max(1, round(float(str(before)) * (asked.times or 1.0)))
    except ValueError:
        known = "has none" if before is None else f"has {before}"
        raise CastmatesError(
            f"the advice multiplies {what}, but {name} {known}; give a value by --set or --variable."
        ) from None


def _ratio(name: str, option: str, before: Word | None, value: Word) -> float:
    try:
        return float(str(value)) / float(str(before))
    except (ValueError, ZeroDivisionError):
        raise CastmatesError(
            f"the work of a step of {name} follows from --{option}, which is {before} now and would be {value}; "
            "both have to be numbers."
        ) from None


def mixes_of(plan: Plan, lead: str, mix: str) -> list[Mix]:
    """The mix that a finding is about, or the first mixes of its lead, or the lead alone; without partitions."""
    mine = [each for each in plan.mixes if workload_of(each.lead) == lead]
    named = [each for each in mine if not each.partitions and mix in ("", each.name)]
    if not mix and not named:
        named = [each for each in mine if not each.antagonists][:1]  # planned under partitions only
    if not named:
        raise CastmatesError(f"the plan of the study '{plan.study}' has no mix {mix or f'of {lead}'} to try it beside.")
    return [each for each in named if each.antagonists][:MOST_MIXES] or named


def trying(study: Study, name: str, mixes: Sequence[Mix], leads: Sequence[str], launches: int, title: str) -> Study:
    """The study that measures these leads beside the antagonists of these mixes, or alone where there are none."""
    rules = [_beside(lead, mix) for mix in mixes if mix.antagonists for lead in leads]
    changes = {"mixes": rules, "leads": [] if rules else list(leads)}
    return _fresh(study, name, mixes, launches, title).model_copy(update=changes)


def _beside(lead: str, mix: Mix) -> ArrangedMix:
    """This lead in place of the mix's own."""
    place = next(([each] for each in DISTANCES if each == place_of(mix.name)), None)
    where: dict[str, object] = {"distance": place} if place else {}
    where |= {"share": CpuShare(cpus="lead")} if overcommits(mix.name) else {}
    others = [plain_workload_of(member) for member in mix.antagonists]
    return ArrangedMix.model_validate({"lead": lead, "antagonists": others, **where})


def mitigating(study: Study, name: str, mix: Mix, kinds: Sequence[Kind], launches: int, title: str) -> Study:
    """The study that measures what is tried against the loss of a mix, beside the mix as it is."""
    if overcommits(mix.name):
        raise CastmatesError(f"the antagonists of {mix.name} run on the lead's CPUs, where mitigations are not tried.")
    rule = Mitigated(
        lead=plain_workload_of(mix.lead),
        antagonists=[plain_workload_of(member) for member in mix.antagonists],
        distance=next((each for each in DISTANCES if each == place_of(mix.name)), None),
        kinds=list(kinds),
    )
    fresh = _fresh(study, name, [mix], launches, title)
    budget = fresh.budget.model_copy(update={"antagonists_alone": True, "placebo": True})  # whose loss, and why
    return fresh.model_copy(update={"mitigations": [rule], "budget": budget})


def _fresh(study: Study, name: str, mixes: Sequence[Mix], launches: int, title: str) -> Study:
    """The study without anything that it measures, under another name and seed."""
    if launches < FEWEST_LAUNCHES:
        raise CastmatesError(f"{launches} launches show no gain; ask for at least {FEWEST_LAUNCHES}.")
    classes = {mix.machine for mix in mixes}
    nothing = at_defaults(
        study, "leads", "antagonists", "mixes", "mitigations", "workloads", "catalogue", "attribution", "place",
        "predict", "profile", "recommend", "findings", "variants", "trace",
    )  # fmt: skip
    return study.model_copy(
        update={
            **nothing,
            "name": name,
            "machines": {each: keys for each, keys in study.machines.items() if each in classes},
            "title": f"{study.title or study.name}: {title}",
            "question": title,
            "budget": study.budget.without_looks(launches),
            "cache": study.cache.model_copy(update=at_defaults(study.cache, "sweeps", "only", "prefetchers")),
            "controls": None,
            "seed": int(hashlib.sha256(f"{study.seed}/{name}".encode()).hexdigest()[:7], 16),
        }
    )
