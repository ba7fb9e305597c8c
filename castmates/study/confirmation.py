"""A study and one of its partitions -> the study that confirms it: one mix, this partition alone, fresh launches.

Its members sit on the same CPUs under the same shares, so that the mix has the identity that it has in the first study:
equal identity, same measurement. Its seed is another, and its results lie in a separate folder.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from castmates.errors import CastmatesError
from castmates.study.cache import Cache
from castmates.study.mitigations import overcommits, sweeps
from castmates.study.mix_keys import PERIOD, ArrangedMix, CpuShare
from castmates.study.model import Placement, Study
from castmates.study.node_classes import cache_of
from castmates.study.partition_keys import RecommendKeys, Sweep
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.sweeps import cuts
from castmates.study.placement_keys import PlaceKeys
from castmates.study.spec import Member, Mix, Partition, Plan
from castmates.study.written import Written

FEWEST_LAUNCHES = 3  # below it there is no interval between launches
LONGEST_NAME = 64
MOST_NAMED = 12  # partitions in a refusal


def confirmation_name(study: str, mix: Mix) -> str:
    """What the confirming study of this mix under its partition is called; another identity is another study."""
    tail = f"-confirm-{mix.identity[:8]}"
    return study[: LONGEST_NAME - len(tail)] + tail


def mix_under(plan: Plan, mix: str, partition: str) -> Mix:
    """The mix of a plan under one partition."""
    beside = [planned for planned in plan.mixes if planned.antagonists]
    namesakes = [planned for planned in beside if planned.name == mix]
    for planned in namesakes:
        if any(tried.name == partition for tried in planned.partitions):
            return planned
    if not namesakes:
        mixes = ", ".join(dict.fromkeys(planned.name for planned in beside)) or "none"
        raise CastmatesError(f"the study '{plan.study}' has no mix '{mix}'; there are: {mixes}.")
    names = list(dict.fromkeys(tried.name for planned in namesakes for tried in planned.partitions))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    raise CastmatesError(
        f"the mix '{mix}' of the study '{plan.study}' has no partition '{partition}'; there are: "
        f"{', '.join(names[:MOST_NAMED]) or 'none'}{more}."
    )


def members_of(plan: Plan, mix: Mix) -> list[Member]:
    """Everybody in a mix, on the CPUs that the plan gave them."""
    for launch in plan.launches:
        if mix.identity in (own.identity for own in launch.cohort.mixes):
            members = {member.name: member for member in launch.cohort.members}
            return [members[name] for name in (mix.lead, *mix.antagonists)]
    raise CastmatesError(f"no launch of the study '{plan.study}' has the mix '{mix.name}'.")


def confirming(study: Study, plan: Plan, mix: Mix, launches: int) -> Study:
    """The study that measures this mix under its one partition again."""
    if launches < FEWEST_LAUNCHES:
        raise CastmatesError(f"{launches} launches cannot confirm anything; ask for at least {FEWEST_LAUNCHES}.")
    lead, *others = members_of(plan, mix)
    partition = mix.partitions[0].name
    name = confirmation_name(study.name, mix)
    return study.model_copy(
        update={
            "name": name,
            "machines": {each: keys for each, keys in study.machines.items() if each == mix.machine},
            "title": f"{study.title or study.name}: {mix.name} under {partition}, confirmed",
            "question": f"Does {partition} keep what the study {study.name} found for it?",
            "leads": [],
            "antagonists": [],
            "mixes": [
                ArrangedMix(
                    lead=lead.workload, antagonists=[member.workload for member in others], share=_share_of(mix)
                )
            ],
            "mitigations": [],
            "placement": _seats(study.placement, lead, [] if overcommits(mix.name) else others),
            "budget": study.budget.without_looks(launches),
            "cache": study.cache.model_copy(update=_cache_keys(study, cache_of(plan, mix.machine), mix.partitions[0])),
            "recommend": RecommendKeys(),
            "controls": None,
            "seed": int(
                hashlib.sha256(f"{study.seed}/{study.name}/{mix.name}/{partition}".encode()).hexdigest()[:7], 16
            ),
            **at_defaults(study, "attribution", "place", "predict", "variants", "profile", "findings", "trace"),
        }
    )


def at_defaults(keys_of: Written, *keys: str) -> Mapping[str, object]:
    """These keys at their defaults, as far as there are some of these names."""
    fields = type(keys_of).model_fields
    return {key: fields[key].get_default(call_default_factory=True) for key in keys if key in fields}


def _seats(placement: Placement, lead: Member, others: list[Member]) -> Placement:
    """The CPUs that everybody had; those on the lead's CPUs need no list."""
    theirs = [cpu for member in others for cpu in member.cpus]
    return placement.model_copy(update={"lead": _list(lead.cpus)} | ({"antagonists": _list(theirs)} if theirs else {}))


def _share_of(mix: Mix) -> CpuShare:
    """What the antagonists take of the CPUs."""
    cpus: Literal["lead"] | None = "lead" if overcommits(mix.name) else None
    for share in mix.partitions[0].shares:
        if share.quota is not None:
            return CpuShare.model_construct(cpus=cpus, quota=(share.quota,), period=share.period or PERIOD)
    return CpuShare(cpus=cpus) if cpus else CpuShare()


def _cache_keys(study: Study, cache: Cache | None, partition: Partition) -> Mapping[str, object]:
    """The one sweep that makes the partition; none for a quota, which the mix itself has."""
    if not partition.of_cache:
        return {"sweeps": [], "only": []}
    if cache is None:
        raise CastmatesError(f"the plan of the study '{study.name}' knows no cache; run its sweep again.")
    return {"sweeps": [_sweep_of(study, cache, partition.name)], "only": [partition.name]}


def _list(cpus: tuple[int, ...] | list[int]) -> str:
    return ",".join(map(str, cpus))


def _sweep_of(study: Study, cache: Cache, partition: str) -> Sweep:
    """The sweep that makes this partition."""
    keys = study.cache
    against = [sweep for rule in study.mitigations for sweep in sweeps(rule).values()]
    for sweep in [*keys.sweeps, *against]:
        only = keys.model_copy(update={"sweeps": [sweep], "only": []})
        if any(cut.name == partition for cut in cuts(only, cache, "", Notes())):
            return sweep
    raise CastmatesError(f"no sweep of the study makes the partition '{partition}' any more.")


# Groups of jobs -> the study that measures them afresh: each group is a mix around one last-level cache.
#
# The first job of a group is the lead, and all others are its antagonists; a mix shows the losses of all of them.
# Groups whose members have separate ways are a study each, because the partitions of a study are tried on all of its
# mixes.

SWEEP = "place"  # what the partition of such a study is called
Together = tuple[tuple[str, ...], tuple[int, ...]]  # the members of a group, and the mask of each; () for none


def group_study_name(study: str, groups: Sequence[Together], machine: str = "") -> str:
    """What the study of these groups is called; other groups are another study."""
    text = json.dumps([machine, sorted([list(members), list(masks)] for members, masks in groups)])
    tail = f"-place-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return study[: LONGEST_NAME - len(tail)] + tail


def studies_of(groups: Sequence[Together]) -> list[list[Together]]:
    """The groups by the studies that measure them; a job that is alone loses nothing, and is not measured."""
    several = [group for group in dict.fromkeys(groups) if len(group[0]) > 1]
    together = [group for group in several if not group[1]]
    return [*([together] if together else []), *([group] for group in several if group[1])]


def group_study(study: Study, groups: Sequence[Together], launches: int, machine: str = "") -> Study:
    """The study that measures these groups."""
    if launches < FEWEST_LAUNCHES:
        raise CastmatesError(f"{launches} launches cannot confirm anything; ask for at least {FEWEST_LAUNCHES}.")
    name, fields = group_study_name(study.name, groups, machine), type(study).model_fields
    masks = [_sweep(*group) for group in groups if group[1]]
    return study.model_copy(
        update={
            "name": name,
            "title": f"{study.title or study.name}: groups of jobs, measured afresh",
            "question": f"Do these jobs lose beside each other what the study {study.name} led to expect?",
            "machines": {each: keys for each, keys in study.machines.items() if each == machine},
            "leads": [],
            "antagonists": [],
            "mixes": [ArrangedMix(lead=lead, antagonists=list(others)) for (lead, *others), _ in groups],
            "mitigations": [],
            "placement": _around_one_cache(study.placement),
            "budget": study.budget.without_looks(launches, antagonists_alone=True, placebo=True),  # the losses of all
            "cache": study.cache.model_copy(update={"sweeps": masks, "only": []}),
            "attribution": fields["attribution"].get_default(call_default_factory=True),
            "recommend": RecommendKeys(),
            "place": PlaceKeys(),
            "predict": None,
            "variants": {},
            "trace": None,
            "profile": None,  # losses alone are compared
            "findings": fields["findings"].get_default(call_default_factory=True),
            "controls": None,
            "seed": int(hashlib.sha256(f"{study.seed}/{name}".encode()).hexdigest()[:7], 16),
        }
    )


def _around_one_cache(placement: Placement) -> Placement:
    """All members of a mix around one last-level cache, wherever that is: groups may be larger than the mixes were."""
    return placement.model_copy(update={"lead": None, "antagonists": None, "llc": "shared"})


def _sweep(members: Sequence[str], masks: Sequence[int]) -> Sweep:
    """The masks of one group, as a study has them: by role, or by workload where the others differ from each other."""
    lead, *others = members
    if len(others) > 1 and len({lead, *others}) < len(members):
        raise CastmatesError(
            f"{' and '.join(members)} cannot be measured under separate ways: a study gives masks by role and by "
            "workload, and not to each of several jobs of one workload; write `masks: false`."
        )
    names = ["lead", "antagonists"] if len(others) == 1 else ["lead", *others]
    written = {name: f"0x{mask:x}" for name, mask in zip(names, masks, strict=True)}
    return Sweep.model_validate({"name": SWEEP, "masks": written})
