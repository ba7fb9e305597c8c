"""Plans for classes of nodes: one plan of them all, in which a mix of a class is a separate mix.

A class is written into the name of every member: `chase@1` of the class `xeon` is `chase~xeon@1`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from castmates.errors import CastmatesError
from castmates.study.cache import Cache
from castmates.study.class_names import named, without_class, workload_of
from castmates.study.mixes import Mixes
from castmates.study.remarks import MIXES, Remark
from castmates.study.scenes import Room, lacks_memory
from castmates.study.spec import Control, LeftOut, Member, Mitigation, Mix, NodeClass, Partition, Plan


def of_class(placed: Mixes, machine: str) -> Mixes:
    """What was placed on a node of a class, under names that carry it."""
    names = {name: named(name, machine) for name in placed.members}

    def mix_of(mix: Mix) -> Mix:
        return mix.model_copy(
            update={
                "name": named(mix.name, machine),
                "machine": machine,
                "identity": hashlib.sha256(f"{mix.identity} {machine}".encode()).hexdigest()[:12],
                "lead": names[mix.lead],
                "antagonists": tuple(names[name] for name in mix.antagonists),
                "partitions": tuple(_partition(each, names) for each in mix.partitions),
            }
        )

    return replace(
        placed,
        mixes=[mix_of(mix) for mix in placed.mixes],
        controls=[Control(kind=each.kind, mix=mix_of(each.mix)) for each in placed.controls],
        members={names[name]: _member(member, names) for name, member in placed.members.items()},
        notes=tuple(note.model_copy(update={"machine": machine}) for note in placed.notes),
        cautions=tuple(f"On {machine}: {caution}" for caution in placed.cautions),
        mitigations=tuple(_mitigation(each, machine) for each in placed.mitigations),
        left_out=tuple(_left_out(each, machine) for each in placed.left_out),
        machine=machine,
    )


def as_far_as_it_fits(placed: Mixes, room: Room) -> Mixes:
    """What fits into the memory of a class; the rest is left out, because another class may have room for it."""
    why = {mix.name: lacks_memory(mix, placed.members, room) for mix in placed.mixes}
    if not any(why.values()):
        return placed
    missing = {mix.name: mix for mix in placed.mixes if why[mix.name]}
    left_out = tuple(
        LeftOut(
            mix=name,
            lead=workload_of(mix.lead),
            antagonists=tuple(placed.members[each].workload for each in mix.antagonists),
            reason=why[name],
            machine=mix.machine,
        )
        for name, mix in missing.items()
    )
    notes = tuple(Remark(about=MIXES, text=f"the mix {name} {why[name]}.", left_out=True) for name in missing)
    return replace(
        placed,
        mixes=[mix for mix in placed.mixes if not why[mix.name]],
        notes=(*placed.notes, *notes),
        left_out=(*placed.left_out, *left_out),
    )


def nowhere(plans: Sequence[Plan]) -> str:
    """Why the study cannot be planned: a mix for which no class has a place; "" otherwise."""
    lacking = [{without_class(each.mix): each for each in plan.left_out} for plan in plans]
    for name in lacking[0]:
        if all(name in each for each in lacking):
            reasons = "; ".join(f"on {each[name].machine} it {each[name].reason}" for each in lacking)
            return f"no class of nodes has a place for the mix {name}: {reasons}."
    return ""


def _member(member: Member, names: Mapping[str, str]) -> Member:
    return member.model_copy(update={"name": names[member.name]})


def _partition(partition: Partition, names: Mapping[str, str]) -> Partition:
    shares = [share.model_copy(update={"member": names.get(share.member, share.member)}) for share in partition.shares]
    return partition.model_copy(update={"shares": tuple(shares)})


def _mitigation(mitigation: Mitigation, machine: str) -> Mitigation:
    arms = tuple((named(mix, machine), partition) for mix, partition in mitigation.arms)
    return mitigation.model_copy(update={"mix": named(mitigation.mix, machine), "arms": arms, "machine": machine})


def _left_out(left_out: LeftOut, machine: str) -> LeftOut:
    update = {"mix": named(left_out.mix, machine), "lead": named(left_out.lead, machine), "machine": machine}
    return left_out.model_copy(update=update)


def plan_of_class(machine: str, make: Callable[[], Plan]) -> Plan:
    """The plan for one class; what stands against it names the class."""
    try:
        return make()
    except CastmatesError as problem:
        raise CastmatesError(f"{str(problem).rstrip('.')} (on nodes of the class '{machine}').") from None


def merged(parts: Sequence[tuple[NodeClass, Plan]]) -> Plan:
    """The plans for all classes as one."""
    plans = [plan for _, plan in parts]
    looks = zip_longest(*(plan.looks for plan in plans), fillvalue=())
    launches = sorted(
        (launch for plan in plans for launch in plan.launches), key=lambda each: (each.cohort.id, each.number)
    )
    return Plan(
        study=plans[0].study,
        titles={name: title for plan in plans for name, title in plan.titles.items()},
        mixes=tuple(mix for plan in plans for mix in plan.mixes),
        controls=tuple(control for plan in plans for control in plan.controls),
        launches=tuple(launches),
        looks=tuple(tuple(path for paths in each for path in paths) for each in looks),
        mitigations=tuple(each for plan in plans for each in plan.mitigations),
        left_out=tuple(each for plan in plans for each in plan.left_out),
        notes=tuple(note for plan in plans for note in plan.notes),
        cautions=tuple(caution for plan in plans for caution in plan.cautions),
        machines=tuple(
            machine.model_copy(update={"cache": plan.cache, "memory": plan.memory}) for machine, plan in parts
        ),
        ignored_hosts=plans[0].ignored_hosts,
        prediction=plans[0].prediction,
        latency_limits=plans[0].latency_limits,
        later=tuple(identity for plan in plans for identity in plan.later),
        profiles=tuple(launch for plan in plans for launch in plan.profiles),
        traces=tuple(launch for plan in plans for launch in plan.traces),
    )


def parts_of(plan: Plan) -> list[Plan]:
    """The part of the plan for each class, with its cache and memory; the plan itself where there are no classes."""
    return [_part(plan, machine) for machine in plan.machines] or [plan]


def _part(plan: Plan, machine: NodeClass) -> Plan:
    name = machine.name
    launches = tuple(launch for launch in plan.launches if launch.cohort.machine == name)
    ours = {launch.path for launch in launches}
    mixes = tuple(mix for mix in plan.mixes if mix.machine == name)
    identities = {mix.identity for mix in mixes}
    changes = {
        "mixes": mixes,
        "controls": tuple(control for control in plan.controls if control.mix.machine == name),
        "launches": launches,
        "looks": tuple(tuple(path for path in paths if path in ours) for paths in plan.looks),
        "mitigations": tuple(each for each in plan.mitigations if each.machine == name),
        "left_out": tuple(each for each in plan.left_out if each.machine == name),
        "cache": machine.cache,
        "memory": machine.memory,
        "machines": (machine,),
        "later": tuple(identity for identity in plan.later if identity in identities),
        "profiles": tuple(launch for launch in plan.profiles if launch.cohort.machine == name),
        "traces": tuple(launch for launch in plan.traces if launch.cohort.machine == name),
    }
    return plan.model_copy(update=changes)


# The last-level caches of a plan: one without classes of nodes, else one for each class.


def cache_of(plan: Plan, machine: str) -> Cache | None:
    """The cache that partitions were made for on a class of nodes, "" without classes; None where there are none."""
    caches = {each.name: each.cache for each in plan.machines}
    return caches.get(machine, plan.cache)


def is_watched(plan: Plan) -> bool:
    """Whether a machine of the plan reports what its last-level caches hold."""
    caches = [plan.cache, *(machine.cache for machine in plan.machines)]
    return any(cache is not None and cache.events for cache in caches)
