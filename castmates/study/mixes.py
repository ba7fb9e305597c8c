"""A study and the layout of a machine -> mixes with every member on its CPUs."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castmates.errors import CastmatesError
from castmates.study import cpus
from castmates.study.cache import Cache
from castmates.study.catalogue import Workloads
from castmates.study.last_level import Place, fitted, last_level
from castmates.study.memory_peak import Peak
from castmates.study.model import MixRule, Prepare, Study, Workload
from castmates.study.named_for import cautions
from castmates.study.partitions.partitions import Partitions, check_workloads, partitions
from castmates.study.placement.layout import Layout
from castmates.study.placement.place import place
from castmates.study.placement.rules import ask
from castmates.study.placement.search import Need, Seat
from castmates.study.spec import PROTOCOL, Control, Member, Mix, Partition, Prepared, Role


@dataclass(frozen=True)
class Mixes:
    """All mixes of a study, with every member on its CPUs."""

    mixes: list[Mix]
    controls: list[Control]
    members: dict[str, Member]  # by name, shared by the mixes that have them
    notes: tuple[str, ...] = ()  # what the study asks of the cache and does not get, or gets differently
    cache: Cache | None = None  # that the partitions were made for
    memory: Mapping[str, int] = field(default_factory=dict)  # bytes that each workload takes here
    cautions: tuple[str, ...] = ()  # where a size or a rate cannot do here what its workload is named for


@dataclass(frozen=True)
class Programs:
    """What is there to be started."""

    workloads: Workloads
    prepared: Mapping[str, Prepared]  # by workload: what it finds when it starts
    placebo: str  # the content of the placebo


@dataclass(frozen=True)
class Host:
    """Where it is started: the CPUs of a machine, and what can be shared out of its last-level cache."""

    layout: Layout
    cache: Cache | None = None
    memory: int | None = None  # bytes; None where that does not matter
    peak: Peak | None = None  # of its memory bandwidth; None where that was not measured

    def place(self, cpus: Sequence[int]) -> Place:
        """What a program on these CPUs finds here."""
        return Place(cpus, last_level(self.layout, cpus, self.cache.ways if self.cache else 0), self.memory)


@dataclass(frozen=True)
class _Seated:
    """A mix as it is without partitions, and its members, the lead first."""

    mix: Mix
    members: Sequence[Member]
    memory: Mapping[str, int]  # bytes that each of its workloads takes


@dataclass(frozen=True)
class _Conditions:
    """What decides a measurement beside the members and their shares of the cache."""

    placebo: str
    prepare: Prepare


def rules(study: Study) -> list[MixRule]:
    """Every lead beside every antagonist, then the mixes written out; each once."""
    crossed = [MixRule(lead=lead, antagonists=[name]) for lead in study.leads for name in study.antagonists]
    unique: dict[tuple[str, ...], MixRule] = {}
    for rule in [*crossed, *study.mixes]:
        unique.setdefault((rule.lead, *sorted(rule.antagonists)), rule)
    return list(unique.values())


def resolve(study: Study, programs: Programs, host: Host, study_file: str) -> Mixes:
    """Place every mix on this machine, and make the partitions that its cache allows."""
    wanted = [*rules(study), *_lonely(study)]
    check_workloads(study.cache, {name for rule in wanted for name in (rule.lead, *rule.antagonists)}, study_file)
    conditions = _Conditions(programs.placebo, study.machine.prepare)
    everyone = [*wanted, *(rule for _, rule in study.control_rules)]
    needs = [_need(rule, programs.workloads) for rule in everyone]
    seats = place(ask(study.placement, host.layout, study_file), needs, host.layout, study_file)
    seated = [_seated(rule, own, programs, host, conditions) for rule, own in zip(everyone, seats, strict=True)]
    tried = partitions(study.cache, host.cache, host.layout, study_file)
    mixes = list(_with_partitions(seated[: len(wanted)], tried, conditions))
    if not mixes:
        raise CastmatesError(f"{study_file}: nothing is left to measure: {' '.join(tried.notes.sentences)}")
    controls = zip(study.control_rules, seated[len(wanted) :], strict=True)
    return Mixes(
        mixes,
        [Control(kind=kind, mix=control.mix) for (kind, _), control in controls],
        {member.name: member for each in seated for member in each.members},
        tuple(tried.notes.sentences),
        tried.cache,
        {name: max(each.memory.get(name, 0) for each in seated) for each in seated for name in each.memory},
        _cautions(seated, programs, host),
    )


def _cautions(seated: Sequence[_Seated], programs: Programs, host: Host) -> tuple[str, ...]:
    members = [member for each in seated for member in each.members]
    saturating = {member.workload for member in members if programs.workloads[member.workload].saturate}
    return cautions(members, lambda cpus: host.place(cpus).cache, host.peak, saturating)


def _seated(rule: MixRule, seats: Sequence[Seat], programs: Programs, host: Host, conditions: _Conditions) -> _Seated:
    names = [rule.lead, *rule.antagonists]
    roles: list[Role] = ["lead", *["antagonist"] * len(rule.antagonists)]  # type: ignore[list-item]
    here = [fitted(programs.workloads[name], host.place(seat.cpus)) for name, seat in zip(names, seats, strict=True)]
    members = [
        member_of(name, role, seat, workload, programs.prepared[name])
        for name, role, seat, workload in zip(names, roles, seats, here, strict=True)
    ]
    mix = _mix("+".join([rule.lead, *sorted(rule.antagonists)]), members, conditions)
    return _Seated(mix, members, dict(zip(names, (workload.memory_bytes for workload in here), strict=True)))


def _lonely(study: Study) -> list[MixRule]:
    """The leads that have no mix, where the study asks how sensitive leads are to their ways."""
    if not any(sweep.lead_ways for sweep in study.cache.sweeps):
        return []
    beside = {rule.lead for rule in rules(study)}
    return [MixRule.model_construct(lead=lead, antagonists=[]) for lead in study.leads if lead not in beside]


def _with_partitions(seated: Sequence[_Seated], tried: Partitions, conditions: _Conditions) -> Iterator[Mix]:
    """Each mix, and beside it each of its partitions as a separate mix: adding one measures nothing again."""
    alone: set[str] = set()  # leads whose partitions without antagonists are made
    for mix, members in ((each.mix, each.members) for each in seated):
        lead, *antagonists = members
        if antagonists:
            yield mix
            for partition in tried.of(lead, antagonists):
                yield _mix(mix.name, members, conditions, partition)
        if lead.workload not in alone:
            alone.add(lead.workload)
            for partition in tried.of(lead, []):
                yield _mix(lead.workload, [lead], conditions, partition)
    tried.note_unplayed()


def _mix(name: str, members: Sequence[Member], conditions: _Conditions, partition: Partition | None = None) -> Mix:
    return Mix(
        name=name,
        identity=_identity(members, conditions, partition),
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


def _identity(members: Sequence[Member], conditions: _Conditions, partition: Partition | None) -> str:
    """Everything that decides what is measured; where it is built and how long we wait for it do not."""
    aside: dict[str, object] = {"ready_within": 0.0, "environment_key": None, "inputs_key": None, "package": None}
    kept = [member.model_copy(update=aside).canonical() for member in members]
    knobs = [f"{knob} {word}" for knob, word in conditions.prepare.words.items()]
    shares = [] if partition is None else [partition.canonical()]
    return hashlib.sha256("\n".join([str(PROTOCOL), conditions.placebo, *kept, *knobs, *shares]).encode()).hexdigest()[
        :12
    ]
