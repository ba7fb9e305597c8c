"""A study and the layout of a machine -> mixes with every member on its CPUs."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.study import cpus
from castmates.study.cache import Cache
from castmates.study.catalogue import Workloads
from castmates.study.last_level import CachePlace, last_level, shortened, sized_workload
from castmates.study.memory_peak import Peak
from castmates.study.mitigations import (
    Ground,
    Tried,
    WantedMix,
    of_mix,
    under_quota,
    unmanaged,
    wanted_mixes,
    without_prefetching,
)
from castmates.study.model import Prepare, Study, Workload
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.partitions import Partitions, antagonists_apart, check_workloads, domains, partitions
from castmates.study.placement.layout import Layout
from castmates.study.placement.refusals import Why, no_such_place, place, refuse_two_deciders, too_many
from castmates.study.placement.search import Need, Seat, can_share
from castmates.study.placement.seats import SeatRules, rules_of
from castmates.study.remarks import MIXES, Remark
from castmates.study.sizes import cautions
from castmates.study.spec import PROTOCOL, Control, LeftOut, Member, Mitigation, Mix, Partition, Prepared, Role


@dataclass(frozen=True)
class Mixes:
    """All mixes of a study, with every member on its CPUs."""

    mixes: list[Mix]
    controls: list[Control]
    members: dict[str, Member]  # by name, shared by the mixes that have them
    notes: tuple[Remark, ...] = ()  # what the study asks of the cache and does not get, or gets differently
    cache: Cache | None = None  # that the partitions were made for
    memory: Mapping[str, int] = field(default_factory=dict)  # bytes that each workload takes here
    cautions: tuple[str, ...] = ()  # where an antagonist cannot do here what it is named for, or is too far
    mitigations: tuple[Mitigation, ...] = ()
    left_out: tuple[LeftOut, ...] = ()  # for which the machine has no place
    machine: str = ""  # the class of nodes that they are on; "" where there are no classes


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
    no_quota: str = ""  # why CPU time cannot be given out; "" where it can
    no_prefetching: str = ""  # why prefetchers cannot be switched, in a sentence; "" where they can
    one_of_several: bool = False  # another class of nodes may have a place for a mix that has none here

    def place(self, cpus: Sequence[int], nodes: Sequence[int] = ()) -> CachePlace:
        """What a program on these CPUs, with its memory on these nodes, finds here."""
        bits = self.cache.ways if self.cache else 0
        return CachePlace(cpus, last_level(self.layout, cpus, bits, nodes), self.memory)


@dataclass(frozen=True)
class _Seated:
    """A mix as it is without partitions, and its members, the lead first."""

    wanted: WantedMix
    mix: Mix
    members: Sequence[Member]
    memory: Mapping[str, int]  # bytes that each of its workloads takes
    shortened: tuple[str, ...] = ()  # whose size was cut, because memory is short


@dataclass(frozen=True)
class _Conditions:
    """What decides a measurement beside the members and their shares of the cache."""

    placebo: str
    prepare: Prepare
    beyond_site: bool  # in another class of service than they are found in


def resolve(study: Study, programs: Programs, host: Host, study_file: str) -> Mixes:
    """Place every mix on this machine, and make the partitions that its cache allows."""
    asked = rules_of(study.placement, host.layout, study_file)
    tried = partitions(study.cache, host.cache, host.layout, study_file)
    all_wanted = [*wanted_mixes(study), *_lonely(study)]
    check_workloads(study.cache, {name for each in all_wanted for name in each.members}, study_file)
    needs = {each: _need(each, programs.workloads, asked, host.layout, tried.divides) for each in all_wanted}
    refuse_two_deciders(asked, list(needs.values()), study_file)
    there, lacking = _with_a_place(needs, asked, host, study_file, tried.notes)
    conditions = _Conditions(programs.placebo, study.machine.prepare, study.cache.beyond_site)
    controls = [WantedMix(rule.lead, tuple(rule.antagonists)) for _, rule in study.control_rules]
    needs |= {each: _need(each, programs.workloads, asked, host.layout) for each in controls if each not in needs}
    seats = place(asked, [needs[each] for each in (*there, *controls)], host.layout, study_file)
    seated = [
        _seated(each, own, programs, host, conditions) for each, own in zip((*there, *controls), seats, strict=True)
    ]
    ours = seated[: len(there)]
    _note_twins(ours, tried.notes)
    against = _against(study, ours, host, study_file, tried.notes)
    unfetched = "off" in study.cache.prefetchers
    if unfetched and host.no_prefetching:
        tried.notes.add("cache.prefetchers", f"no launch will begin here: {host.no_prefetching}")
    bare = not study.cache.sweeps or study.profile is not None
    mixes = list(_with_partitions(ours, tried, against, host.no_quota, conditions, unfetched, bare))
    if not mixes:
        raise CastmatesError(f"{study_file}: nothing is left to measure: {' '.join(map(str, tried.notes.remarks))}")
    kinds = [kind for kind, _ in study.control_rules]
    return Mixes(
        mixes,
        [Control(kind=kind, mix=each.mix) for kind, each in zip(kinds, seated[len(there) :], strict=True)],
        {member.name: member for each in seated for member in each.members},
        tuple(tried.notes.remarks),
        tried.cache,
        {name: max(each.memory.get(name, 0) for each in seated) for each in seated for name in each.memory},
        (
            *_cautions(seated, programs, host),
            *_around(ours, study, host.layout),
            *_throttled_together(mixes, {member.name: member for each in ours for member in each.members}, host),
        ),
        tuple(each for tries in against for each in tries.mitigations(lacking)),
        tuple(_left_out(each, lacking[each.name]) for each in all_wanted if each.name in lacking and not each.optional),
    )


def _cautions(seated: Sequence[_Seated], programs: Programs, host: Host) -> tuple[str, ...]:
    members = [member for each in seated for member in each.members]
    saturating = {member.workload for member in members if programs.workloads[member.workload].saturate}
    known = cautions(members, lambda cpus: host.place(cpus).cache, host.peak, saturating)
    return tuple(dict.fromkeys((*(sentence for each in seated for sentence in each.shortened), *known)))


def _around(seated: Sequence[_Seated], study: Study, layout: Layout) -> Iterator[str]:
    """Which mixes lie around several last-level caches, though nobody asked for it."""
    room = max(Counter(core.llc for core in layout.cores).values(), default=0)
    for mix, (lead, *others) in ((each.mix, each.members) for each in seated if not each.wanted.place):
        cpus_of = {member.name: f"{member.workload} (CPU {cpus.format_cpu_list(member.cpus)})" for member in others}
        own, home = f"{lead.workload} (CPU {cpus.format_cpu_list(lead.cpus)})", set(domains(lead, layout))
        if mix.apart and study.placement.llc != "separate":
            most = room - sum(len(member.cpus) for member in others)
            smaller = f" A lead of {most} or fewer cores would share one." if 0 < most < len(lead.cpus) else ""
            yield (
                f"{own} shares no last-level cache with {listed([cpus_of[name] for name in mix.apart])}: what it loses "
                f"to {'it' if len(mix.apart) == 1 else 'them'} is not due to the capacity of a cache, and no ways are "
                f"divided between them.{smaller}"
            )
        elif len(home) > 1 and any(not home <= set(domains(member, layout)) for member in others):
            yield (
                f"{own} lies on {len(home)} last-level caches, of which {listed(list(cpus_of.values()))} "
                f"{'shares' if len(others) == 1 else 'share'} a part: a mask takes ways from it on all of them."
            )


def _throttled_together(mixes: Sequence[Mix], members: Mapping[str, Member], host: Host) -> Iterator[str]:
    """Which throttles hold for a sibling too, that was to have another one or none."""
    if host.cache is None or host.cache.bandwidth is None or not host.cache.bandwidth.by_core:
        return
    cores = {name: {host.layout.by_id[cpu].core for cpu in member.cpus} for name, member in members.items()}
    found: dict[tuple[str, str], dict[str, None]] = {}  # the names of partitions, each once
    for mix in mixes:
        pairs = [pair for pair in combinations((*mix.antagonists, mix.lead), 2) if cores[pair[0]] & cores[pair[1]]]
        for partition in mix.partitions:
            rates = {share.member: share.bandwidth for share in partition.shares}
            for pair in pairs:
                if rates.get(pair[0]) != rates.get(pair[1]):
                    found.setdefault(pair, {})[partition.name] = None
    for pair, names in found.items():
        yield (
            f"{pair[0]} and {pair[1]} share a core, and a core is throttled as the slower of its threads "
            f"(thread_throttle_mode is max): {listed(list(names))} "
            f"{'throttles' if len(names) == 1 else 'throttle'} both."
        )


def _seated(
    wanted: WantedMix, seats: Sequence[Seat], programs: Programs, host: Host, conditions: _Conditions
) -> _Seated:
    roles: list[Role] = ["lead", *["antagonist"] * len(wanted.antagonists)]  # type: ignore[list-item]
    members, seen, memory, cut = list[Member](), Counter[str](), dict[str, int](), list[str]()
    for name, role, seat in zip(wanted.members, roles, seats, strict=True):
        where = host.place(seat.cpus, seat.nodes)
        workload = sized_workload(programs.workloads[name], where)
        memory[name] = max(memory.get(name, 0), workload.memory_bytes)
        member = member_of(name, role, seat, workload, programs.prepared[name])
        seen[member.name] += 1
        if (number := seen[member.name]) > 1:  # on overcommitted CPUs one program may run several times
            member = member.model_copy(update={"name": f"{member.name}#{number}"})
        members.append(member)
        if why := shortened(programs.workloads[name], where):
            cut.append(f"{name}: {why}")
    mix = _mix(wanted.name, members, conditions)
    mix = mix.model_copy(update={"apart": antagonists_apart(members[0], members[1:], host.layout, host.cache)})
    return _Seated(wanted, mix, members, memory, tuple(cut))


def _left_out(wanted: WantedMix, why: str) -> LeftOut:
    return LeftOut(mix=wanted.name, lead=wanted.lead, antagonists=wanted.antagonists, reason=why)


def _lonely(study: Study) -> list[WantedMix]:
    """The leads that have no mix, where the study traces them, asks what their ways are worth, or has no mix at all."""
    beside = {each.lead for each in wanted_mixes(study)}
    if not study.asks_alone and (beside or study.cache.sweeps):
        return []
    return [WantedMix(lead, ()) for lead in study.leads if lead not in beside]


def _with_a_place(
    needs: Mapping[WantedMix, Need], asked: SeatRules, host: Host, study_file: str, notes: Notes
) -> tuple[list[WantedMix], dict[str, str]]:
    """The mixes that find seats as near to the lead as they ask for; and by name, why others find none."""
    there, lacking = [], dict[str, str]()
    for each, need in needs.items():
        why = _no_place(each, asked, need, host)
        if why is None:
            there.append(each)
            continue
        if each.fewest and not each.optional and not host.one_of_several:
            raise CastmatesError(f"{study_file}: {why.of(each.in_short)}.")
        lacking[each.name] = why.what
        if not each.optional:
            notes.add(MIXES, f"{why.of(each.in_short)}.", left_out=True)
    return there, lacking


def _no_place(wanted: WantedMix, asked: SeatRules, need: Need, host: Host) -> Why | None:
    """Why a mix finds no seats, where its place or the number of its antagonists is to blame; None otherwise."""
    if wanted.place:
        return no_such_place(asked, need, host.layout)
    return None if wanted.fewest and not host.one_of_several else too_many(asked, need, host.layout)


def _note_twins(seated: Sequence[_Seated], notes: Notes) -> None:
    """Note which places are, on this machine, the same as another place of the same members."""
    first: dict[str, _Seated] = {}
    for each in (each for each in seated if each.wanted.place):
        twin = first.setdefault(each.mix.identity, each)
        if twin is not each:
            notes.add(MIXES, f"{each.mix.name} is measured as {twin.mix.name}: here these are the same place.")


def _against(study: Study, seated: Sequence[_Seated], host: Host, study_file: str, notes: Notes) -> list[Tried]:
    """What is tried against the losses of each mix that the study lists for that."""
    there = {each.mix.name: (each.mix, each.members) for each in seated}
    ground = Ground(study.cache, host.cache, host.layout, host.no_quota, study_file)
    return [
        of_mix(rule, f"mitigations.{number}", there[unmanaged(rule).name], ground, notes)
        for number, rule in enumerate(study.mitigations, start=1)
    ]


def _with_partitions(
    seated: Sequence[_Seated],
    tried: Partitions,
    against: Sequence[Tried],
    no_quota: str,
    conditions: _Conditions,
    unfetched: bool,
    bare: bool,
) -> Iterator[Mix]:
    """Each mix, and beside it each of its partitions as a separate mix: adding one measures nothing again."""
    alone: set[str] = set()  # leads whose partitions without antagonists are made
    for each in seated:
        lead, *antagonists = members = each.members
        if antagonists:
            yield each.mix
            quotas = [] if no_quota else [under_quota(quota, antagonists) for quota in each.wanted.quotas]
            under = [
                *tried.of(lead, antagonists),
                *quotas,
                *([without_prefetching(members)] if unfetched else []),
                *(part for tries in against for part in tries.on(each.mix.name)),
            ]
            for partition in {partition.canonical(): partition for partition in under}.values():
                yield _mix(each.mix.name, members, conditions, partition).model_copy(update={"apart": each.mix.apart})
        if lead.workload not in alone:
            alone.add(lead.workload)
            own = tried.of(lead, [])
            for partition in own:
                yield _mix(lead.workload, [lead], conditions, partition)
            if bare and not antagonists and not own:
                yield each.mix
    if no_quota and any(each.wanted.quotas for each in seated):
        tried.notes.add(MIXES, f"quotas of CPU time are left out: {no_quota}.")
    tried.note_unplayed()


def _mix(name: str, members: Sequence[Member], conditions: _Conditions, partition: Partition | None = None) -> Mix:
    return Mix(
        name=name,
        identity=_identity(members, conditions, partition),
        lead=members[0].name,
        antagonists=tuple(member.name for member in members[1:]),
        partitions=() if partition is None else (partition,),
    )


def _need(wanted: WantedMix, workloads: Workloads, asked: SeatRules, layout: Layout, divides: bool = False) -> Need:
    cores = tuple(workloads[each].cores for each in wanted.members)
    shared = divides and not wanted.place and len(cores) > 1 and can_share(asked, cores, layout)
    return Need(wanted.in_short, wanted.lead, cores, wanted.place, shared)


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
        progress=workload.way,
        calls=workload.calls,
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
        requests=workload.requests,
        frozen_between_steps=workload.frozen_between_steps,
        attach=workload.attach or "",
        step_function=workload.step_function,
    )


def _identity(members: Sequence[Member], conditions: _Conditions, partition: Partition | None) -> str:
    """Everything that decides what is measured; where it is built and how long we wait for it do not."""
    aside = ("ready_within", "environment_key", "inputs_key", "package")
    kept = [member.canonical(without=aside) for member in members]
    knobs = [f"{knob} {word}" for knob, word in conditions.prepare.words.items()]
    knobs += ["beyond_site"] if conditions.beyond_site else []
    shares = [] if partition is None else [partition.model_copy(update={"curve": ""}).canonical()]
    return hashlib.sha256("\n".join([str(PROTOCOL), conditions.placebo, *kept, *knobs, *shares]).encode()).hexdigest()[
        :12
    ]
