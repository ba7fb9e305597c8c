"""A study and the layout of a machine -> mixes with every member on its CPUs."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from castmates.errors import CastmatesError
from castmates.study import cpus
from castmates.study.cache import Cache
from castmates.study.catalogue import Workloads
from castmates.study.model import MixRule, Prepare, Study, Workload
from castmates.study.partitions.partitions import Partitions, check_workloads, partitions
from castmates.study.placement.layout import Layout
from castmates.study.placement.place import place
from castmates.study.placement.rules import ask
from castmates.study.placement.search import Need, Seat
from castmates.study.spec import PROTOCOL, Control, Member, Mix, Partition, Prepared, Role


@dataclass(frozen=True)
class Mixes:
    """Everything that a study puts on stage."""

    mixes: list[Mix]
    controls: list[Control]
    members: dict[str, Member]  # by name, shared by the mixes that have them
    notes: tuple[str, ...] = ()  # what the study asks of the cache and does not get, or gets differently
    cache: Cache | None = None  # that the partitions were made for


@dataclass(frozen=True)
class _Seated:
    """A mix as it is without partitions, and its members, the lead first."""

    mix: Mix
    members: Sequence[Member]


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
    cache: Cache | None = None,
) -> Mixes:
    """Place every mix on this machine, and make the partitions that its cache allows.

    `prepared` says for each workload what it finds when it starts, `placebo` is the content of the placebo.
    """
    members: dict[str, Member] = {}

    def seated_mix(rule: MixRule, seats: Sequence[Seat]) -> _Seated:
        names = [rule.lead, *rule.antagonists]
        roles: list[Role] = ["lead", *["antagonist"] * len(rule.antagonists)]  # type: ignore[list-item]
        found = [
            member_of(name, role, seat, workloads[name], prepared[name])
            for name, role, seat in zip(names, roles, seats, strict=True)
        ]
        members.update({member.name: member for member in found})
        name = "+".join([rule.lead, *sorted(rule.antagonists)])
        return _Seated(_mix(name, found, placebo, study.machine.prepare), found)

    wanted = [*rules(study), *_lonely(study)]
    check_workloads(study.cache, {name for rule in wanted for name in (rule.lead, *rule.antagonists)}, study_file)
    everyone = [*wanted, *(rule for _, rule in study.control_rules)]
    needs = [_need(rule, workloads) for rule in everyone]
    seats = place(ask(study.placement, layout, study_file), needs, layout, study_file)
    seated = list(map(seated_mix, everyone, seats))
    tried = partitions(study.cache, cache, layout, study_file)
    found = list(_with_partitions(seated[: len(wanted)], tried, placebo, study.machine.prepare))
    if not found:
        raise CastmatesError(f"{study_file}: nothing is left to measure: {' '.join(tried.notes.sentences)}")
    controls = zip(study.control_rules, seated[len(wanted) :], strict=True)
    return Mixes(
        found,
        [Control(kind=kind, mix=one.mix) for (kind, _), one in controls],
        members,
        tuple(tried.notes.sentences),
        tried.cache,
    )


def _lonely(study: Study) -> list[MixRule]:
    """The leads that have no mix, where the study asks how sensitive leads are to their ways."""
    if not any(sweep.lead_ways for sweep in study.cache.sweeps):
        return []
    beside = {rule.lead for rule in rules(study)}
    return [MixRule.model_construct(lead=lead, antagonists=[]) for lead in study.leads if lead not in beside]


def _with_partitions(seated: Sequence[_Seated], tried: Partitions, placebo: str, prepare: Prepare) -> Iterator[Mix]:
    """Each mix, and beside it each of its partitions as a mix of its own: what is added measures nothing again."""
    alone: set[str] = set()  # leads whose partitions without antagonists are made
    for one in seated:
        lead, *antagonists = one.members
        if antagonists:
            yield one.mix
            for partition in tried.of(lead, antagonists):
                yield _mix(one.mix.name, one.members, placebo, prepare, partition)
        if lead.workload not in alone:
            alone.add(lead.workload)
            for partition in tried.of(lead, []):
                yield _mix(lead.workload, [lead], placebo, prepare, partition)
    tried.tell_unplayed()


def _mix(
    name: str, members: Sequence[Member], placebo: str, prepare: Prepare, partition: Partition | None = None
) -> Mix:
    return Mix(
        name=name,
        identity=_identity(members, placebo, prepare, partition),
        lead=members[0].name,
        antagonists=tuple(member.name for member in members[1:]),
        partitions=() if partition is None else (partition,),
    )


def _need(rule: MixRule, workloads: Workloads) -> Need:
    names = [rule.lead, *rule.antagonists]
    return Need("+".join(names), rule.lead, tuple(workloads[name].cores for name in names))


def member_of(name: str, role: Role, seat: Seat, workload: Workload, prepared: Prepared) -> Member:
    """A workload in its seat."""
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
        model=workload.model,
        inputs=workload.inputs,
        inputs_key=prepared.inputs_key,
        step_line=workload.step_line,
        ready_line=workload.ready_line,
        package=workload.package,
        phases=workload.phases,
    )


def _identity(members: Sequence[Member], placebo: str, prepare: Prepare, partition: Partition | None) -> str:
    """Everything that decides what is measured; where it is built and how long we wait for it do not."""
    aside: dict[str, object] = {"ready_within": 0.0, "environment_key": None, "inputs_key": None, "package": None}
    kept = [member.model_copy(update=aside).canonical() for member in members]
    knobs = [f"{knob} {word}" for knob, word in prepare.words.items()]
    shares = [] if partition is None else [partition.canonical()]
    return hashlib.sha256("\n".join([str(PROTOCOL), placebo, *kept, *knobs, *shares]).encode()).hexdigest()[:12]
