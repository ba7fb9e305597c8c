"""A study and the CPUs there are -> mixes with every member on its CPUs."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castmates.errors import CastmatesError
from castmates.study import cpus
from castmates.study.catalogue import Workloads
from castmates.study.model import MixRule, Study, Workload
from castmates.study.spec import PROTOCOL, Control, Member, Mix, Prepared, Role


@dataclass(frozen=True)
class Cast:
    """Everything that a study puts on stage."""

    mixes: list[Mix]
    controls: list[Control]
    members: dict[str, Member]  # by name, shared by the mixes that have them


def rules(study: Study) -> list[MixRule]:
    """Every lead beside every antagonist, then the mixes written out; each once."""
    crossed = [MixRule(lead=lead, antagonists=[one]) for lead in study.leads for one in study.antagonists]
    unique: dict[tuple[str, ...], MixRule] = {}
    for rule in [*crossed, *study.mixes]:
        unique.setdefault((rule.lead, *sorted(rule.antagonists)), rule)
    return list(unique.values())


def resolve(
    study: Study,
    workloads: Workloads,
    allowed: Sequence[int],
    prepared: Mapping[str, Prepared],
    placebo: str,
    study_file: str,
) -> Cast:
    """Place every mix on these CPUs (best first).

    `prepared` says for each workload what it finds when it starts, `placebo` is the content of the placebo.
    """
    members: dict[str, Member] = {}

    def place(rule: MixRule) -> Mix:
        names = [rule.lead, *rule.antagonists]
        roles: list[Role] = ["lead", *["antagonist"] * len(rule.antagonists)]  # type: ignore[list-item]
        places = _place(study, workloads, rule, allowed, study_file)
        cast = [
            _member(name, role, place, workloads[name], prepared[name])
            for name, role, place in zip(names, roles, places, strict=True)
        ]
        members.update({member.name: member for member in cast})
        return Mix(
            name="+".join([rule.lead, *sorted(rule.antagonists)]),
            identity=_identity(cast, placebo),
            lead=cast[0].name,
            antagonists=tuple(member.name for member in cast[1:]),
        )

    mixes = [place(rule) for rule in rules(study)]
    controls = [Control(kind=kind, mix=place(rule)) for kind, rule in study.control_rules]
    return Cast(mixes, controls, members)


def _place(
    study: Study, workloads: Workloads, rule: MixRule, allowed: Sequence[int], study_file: str
) -> list[tuple[int, ...]]:
    """Hand out CPUs in order: the lead first, then each antagonist; no CPU twice within a mix."""
    mix = "+".join([rule.lead, *rule.antagonists])
    needs = [workloads[name].cores for name in (rule.lead, *rule.antagonists)]
    ours = _listed(study.placement.lead, allowed, f"{study_file}: 'placement.lead'")
    lead = tuple(ours[: needs[0]])
    theirs = _listed(study.placement.antagonists, allowed, f"{study_file}: 'placement.antagonists'")
    rest = [cpu for cpu in theirs if cpu not in lead]
    if len(lead) < needs[0] or len(rest) < sum(needs[1:]):
        listed = study.placement.lead or study.placement.antagonists
        raise CastmatesError(
            f"{study_file}: the mix {mix} asks for {sum(needs)} cores ({' + '.join(map(str, needs))}), but only "
            f"{len(set(ours) | set(theirs))} CPUs may be used here ({len(ours)} by the lead, {len(rest)} left for "
            f"antagonists{', by placement' if listed else ''}); lower 'cores' of a workload or take out the mix."
        )
    places = [lead]
    for need in needs[1:]:
        places.append(tuple(rest[:need]))
        rest = rest[need:]
    return places


def _listed(text: str | None, allowed: Sequence[int], key: str) -> list[int]:
    if text is None:
        return list(allowed)
    wanted = cpus.parse(text, key)
    missing = [cpu for cpu in wanted if cpu not in allowed]
    if missing:
        there_are = ", ".join(map(str, sorted(allowed)))
        raise CastmatesError(f"{key} names CPU {missing[0]}, but only CPUs {there_are} may be used here.")
    return wanted


def _member(name: str, role: Role, place: tuple[int, ...], workload: Workload, prepared: Prepared) -> Member:
    return Member(
        name=f"{name}@{cpus.name_of(place)}",
        workload=name,
        role=role,
        cpus=place,
        nodes=(),
        command=tuple(workload.words),
        environment=workload.environment,
        environment_key=prepared.environment_key,
        content=prepared.content,
        progress=workload.progress,
        unit=workload.unit,
        variables=workload.variables,
        ready_within=workload.ready_within,
    )


def _identity(cast: Sequence[Member], placebo: str) -> str:
    """Everything that decides what is measured; where it is built and how long we wait for it do not."""
    aside: dict[str, object] = {"ready_within": 0.0, "environment_key": None}
    members = [member.model_copy(update=aside).canonical() for member in cast]
    return hashlib.sha256("\n".join([str(PROTOCOL), placebo, *members]).encode()).hexdigest()[:12]
