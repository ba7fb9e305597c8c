"""A study and its plan -> the study as others can measure it, and the study that measures it again; both as text.

What other files and commands decided is written into it: rounds that a pilot found, launches that were asked for. Its
workloads come from the catalogue of whoever published it, so that another catalogue changes nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from castmates.study.confirmation import at_defaults
from castmates.study.mitigations import SAME_CPUS, WantedMix, unmanaged, wanted_mixes
from castmates.study.mix_keys import PERIOD, ArrangedMix, CpuShare
from castmates.study.model import Attribution, Study, Workload
from castmates.study.partition_keys import RecommendKeys
from castmates.study.placement_keys import PlaceKeys
from castmates.study.spec import Cohort, Launch, Plan

FEWEST_LAUNCHES = 3  # below it there is no interval between launches, and no effect can agree
LONGEST_NAME = 64


@dataclass(frozen=True)
class ReplayedPart:
    """What of a published study is measured again."""

    lead: str = ""  # of all leads: this one
    cohort: Cohort | None = None  # of all cohorts: this one
    rounds: int | None = None  # of each launch; the study's if left out

    @property
    def tail(self) -> str:
        """What the name of the replay ends with."""
        if self.cohort is not None:
            return f"-replay-{self.cohort.id.rpartition('-')[2]}"
        return f"-replay-{self.lead}" if self.lead else "-replay"


def replay_name(study: str, part: ReplayedPart) -> str:
    """What the replay of a study is called."""
    tail = part.tail[-LONGEST_NAME + 8 :]
    return study[: LONGEST_NAME - len(tail)].rstrip("._-") + tail


def self_contained(study: Study, plan: Plan) -> Study:
    """The study with what lies outside its file written into it; its workloads come with a catalogue."""
    rounds = {"rounds": _rounds(plan)} if study.budget.rounds == "pilot" else {}
    budget = study.budget.without_looks(max(study.budget.launches, _launches(plan)), **rounds)
    nothing: dict[str, object] = {"workloads": {}, "catalogue": None, "findings": ()}  # no file of these is published
    return study.model_copy(update={**nothing, "budget": budget})


def workloads_of(plan: Plan, workloads: Mapping[str, Workload]) -> dict[str, Workload]:
    """The workloads that the plan names, each finished.

    Programs that lie somewhere in one machine's file system, such as an installed suite, are those of the catalogue
    of whoever measures them again.
    """
    names = {member.workload for cohort in plan.cohorts for member in cohort.members}
    names |= {name for left_out in plan.left_out for name in (left_out.lead, *left_out.antagonists)}
    return {
        name: workload
        for name, workload in workloads.items()
        if name in names and not (workload.words and workload.words[0].startswith("/"))
    }


def part_of(plan: Plan, part: ReplayedPart) -> Plan:
    """The plan of what is measured again: its mixes, and their launches."""
    if part.cohort is not None:
        chosen = {mix.identity for mix in part.cohort.mixes}
    else:
        leads = {member.name for cohort in plan.cohorts for member in cohort.members if _is(member.workload, part)}
        chosen = {mix.identity for mix in plan.mixes if mix.lead in leads}
    return plan.model_copy(
        update={
            "mixes": tuple(mix for mix in plan.mixes if mix.identity in chosen),
            "launches": tuple(
                launch for launch in plan.launches if any(mix.identity in chosen for mix in launch.cohort.mixes)
            ),
        }
    )


def replaying(study: Study, plan: Plan, part: ReplayedPart, launches: int | None, keeps_cpus: bool) -> Study:
    """The study that measures this part of a published one again: the same mixes and design, fresh seeds.

    CPU lists are those of one machine: elsewhere the rules of placement alone decide.
    """
    ours = part_of(plan, part)
    name = replay_name(study.name, part)
    count = max(FEWEST_LAUNCHES, _launches(ours)) if launches is None else launches
    rounds = {} if part.rounds is None else {"rounds": part.rounds}
    lists = {} if keeps_cpus else {"lead": None, "antagonists": None}
    return study.model_copy(
        update={
            "name": name,
            "title": f"{study.title or study.name}: measured again",
            "budget": study.budget.without_looks(count, **rounds),
            "placement": study.placement.model_copy(update=lists),
            "leave_out": [],
            **at_defaults(study, "profile", "findings", "trace"),  # losses alone are compared
            "place": PlaceKeys(),  # nothing is placed, and its jobs may be none of the workloads that were published
            "seed": int(hashlib.sha256(f"{study.seed}/{name}".encode()).hexdigest()[:7], 16),
            **(_only(study, ours, part) if part.tail != "-replay" or study.predict else {}),
        }
    )


def catalogue_text(workloads: Mapping[str, Workload], head: str) -> str:
    """A file of the catalogue."""
    content = {name: workload.as_written() for name, workload in workloads.items()}
    return f"# {head}\n" + yaml.safe_dump({"workloads": content}, sort_keys=False, allow_unicode=True)


def _is(workload: str, part: ReplayedPart) -> bool:
    return part.lead in ("", workload)


def _only(study: Study, plan: Plan, part: ReplayedPart) -> dict[str, Any]:
    """The keys of the study that ask for these mixes alone."""
    names = {mix.name for mix in plan.mixes}
    asked = [each for each in wanted_mixes(study) if each.name in names]
    beside = {each.lead for each in asked}
    alone = [mix.name for mix in plan.mixes if not mix.antagonists and mix.name not in beside]
    rules = [rule for rule in study.mitigations if unmanaged(rule).name in names]
    keys: dict[str, Any] = {
        "leads": list(dict.fromkeys(alone)),
        "antagonists": [],
        "mixes": [rule for each in asked for rule in _rules(each)],
        "mitigations": rules,
        "predict": None,  # another seed would have other pairs measured
        "variants": {},  # their leads are named, and their workloads published
    }
    if part.cohort is not None:
        tried = [each.name for mix in part.cohort.mixes for each in mix.partitions if each.of_cache]
        kept = {"only": list(dict.fromkeys(tried))} if tried else {"sweeps": [], "only": []}
        keys |= {"controls": None, "cache": study.cache.model_copy(update=kept)}
        keys |= {"recommend": RecommendKeys(), "attribution": Attribution()}
    return keys


def _rules(each: WantedMix) -> Iterable[ArrangedMix]:
    """A mix as a study writes it, once for each period of its quotas."""
    place: dict[str, Any] = {} if each.place in ("", SAME_CPUS) else {"distance": [each.place]}
    cpus: Literal["lead"] | None = "lead" if each.place == SAME_CPUS else None
    by_period: dict[int, tuple[int, ...]] = {}
    for quota in each.quotas:
        by_period[quota.period] = (*by_period.get(quota.period, ()), quota.percent)
    for period, percents in (by_period or {PERIOD: ()}).items():
        share = CpuShare.model_construct(cpus=cpus, quota=percents, period=period) if cpus or percents else CpuShare()
        yield ArrangedMix(lead=each.lead, antagonists=list(each.antagonists), share=share, **place)


def _launches(plan: Plan) -> int:
    """How many launches the mix has that has most; controls are no results."""
    counts = Counter(mix.identity for launch in plan.launches for mix in launch.cohort.mixes)
    return max((counts[mix.identity] for mix in plan.mixes), default=0)


def _rounds(plan: Plan) -> int:
    """The rounds of most launches."""
    counts = Counter(launch.design.rounds for launch in _with_results(plan))
    return counts.most_common(1)[0][0] if counts else 1


def _with_results(plan: Plan) -> list[Launch]:
    results = {mix.identity for mix in plan.mixes}
    return [launch for launch in plan.launches if any(mix.identity in results for mix in launch.cohort.mixes)]
