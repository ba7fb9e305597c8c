"""Which ways the members of a group get: those under which this was measured, or else one after another."""

from castmates.analysis.grouping.problem import Group
from castmates.analysis.prediction.measured_losses import own_ways
from castmates.study import masks
from castmates.study.class_names import plain_workload_of
from castmates.study.schemata import mask_of
from castmates.study.spec import Plan


def masks_of(group: Group, plan: Plan) -> tuple[int, ...]:
    """By member, in order; none where the members share all ways."""
    if not group.ways:
        return ()
    wanted = sorted(zip(group.members, group.ways, strict=True))
    for mix in plan.mixes:
        for partition in mix.partitions:
            ways = own_ways(mix, partition)
            if sorted((plain_workload_of(name), own) for name, own in ways.items()) == wanted:
                given = {share.member: mask_of(share) or 0 for share in partition.shares}
                return _in_order(group, [(plain_workload_of(name), given[name]) for name in ways])
    return _side_by_side(group)


def _in_order(group: Group, given: list[tuple[str, int]]) -> tuple[int, ...]:
    """Each member's mask; of members of one kind the one with as many ways."""
    left, ordered = list(given), []
    for name, ways in zip(group.members, group.ways, strict=True):
        own = next(each for each in left if each[0] == name and masks.popcount(each[1]) == ways)
        left.remove(own)
        ordered.append(own[1])
    return tuple(ordered)


def _side_by_side(group: Group) -> tuple[int, ...]:
    starts = [sum(group.ways[:number]) for number in range(len(group.ways))]
    return tuple(masks.make(ways, start) for ways, start in zip(group.ways, starts, strict=True))
