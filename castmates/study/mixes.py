"""A study and the layout of a machine -> mixes with every member on its CPUs."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castmates.study import cpus
from castmates.study.catalogue import Workloads
from castmates.study.layout import Layout
from castmates.study.model import MixRule, Prepare, Study, Workload
from castmates.study.placement import place
from castmates.study.placement_rules import ask
from castmates.study.placement_search import Need, Seat
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
    layout: Layout,
    prepared: Mapping[str, Prepared],
    placebo: str,
    study_file: str,
) -> Cast:
    """Place every mix on this machine.

    `prepared` says for each workload what it finds when it starts, `placebo` is the content of the placebo.
    """
    members: dict[str, Member] = {}

    def cast(rule: MixRule, seats: Sequence[Seat]) -> Mix:
        names = [rule.lead, *rule.antagonists]
        roles: list[Role] = ["lead", *["antagonist"] * len(rule.antagonists)]  # type: ignore[list-item]
        found = [
            _member(name, role, seat, workloads[name], prepared[name])
            for name, role, seat in zip(names, roles, seats, strict=True)
        ]
        members.update({member.name: member for member in found})
        return Mix(
            name="+".join([rule.lead, *sorted(rule.antagonists)]),
            identity=_identity(found, placebo, study.machine.prepare),
            lead=found[0].name,
            antagonists=tuple(member.name for member in found[1:]),
        )

    wanted = rules(study)
    everyone = [*wanted, *(rule for _, rule in study.control_rules)]
    needs = [_need(rule, workloads) for rule in everyone]
    seats = place(ask(study.placement, layout, study_file), needs, layout, study_file)
    mixes = list(map(cast, everyone, seats))
    controls = zip(study.control_rules, mixes[len(wanted) :], strict=True)
    return Cast(mixes[: len(wanted)], [Control(kind=kind, mix=mix) for (kind, _), mix in controls], members)


def _need(rule: MixRule, workloads: Workloads) -> Need:
    names = [rule.lead, *rule.antagonists]
    return Need("+".join(names), rule.lead, tuple(workloads[name].cores for name in names))


def _member(name: str, role: Role, seat: Seat, workload: Workload, prepared: Prepared) -> Member:
    return Member(
        name=f"{name}@{cpus.name_of(seat.cpus)}",
        workload=name,
        role=role,
        cpus=seat.cpus,
        nodes=seat.nodes,
        command=tuple(workload.words),
        environment=workload.environment,
        environment_key=prepared.environment_key,
        content=prepared.content,
        progress=workload.progress,
        unit=workload.unit,
        variables=workload.variables,
        ready_within=workload.ready_within,
    )


def _identity(cast: Sequence[Member], placebo: str, prepare: Prepare) -> str:
    """Everything that decides what is measured; where it is built and how long we wait for it do not."""
    aside: dict[str, object] = {"ready_within": 0.0, "environment_key": None}
    members = [member.model_copy(update=aside).canonical() for member in cast]
    knobs = [f"{knob} {word}" for knob, word in prepare.words.items()]
    return hashlib.sha256("\n".join([str(PROTOCOL), placebo, *members, *knobs]).encode()).hexdigest()[:12]
