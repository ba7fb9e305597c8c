"""Searches the best seats for the mixes of one lead: what a rule asks for is kept, of the rest the best is taken."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from castmates.study.placement.layout import SIBLINGS, Layout
from castmates.study.placement.seats import Around, Cpus, SeatRules, lead_places, memory_of

Cost = tuple[int, ...]


@dataclass(frozen=True)
class Need:
    """A mix, as far as placement is concerned."""

    name: str
    lead: str
    cores: tuple[int, ...]  # CPUs of the lead, then of each antagonist
    place: str = ""  # how near to the lead the antagonists must sit; "": anywhere
    divides: bool = False  # ways of a cache are divided among its members, which have to share one


@dataclass(frozen=True)
class Seat:
    """What a member gets."""

    cpus: tuple[int, ...]
    nodes: tuple[int, ...]  # memory nodes that it is bound to; none where it is not bound


Seats = list[Seat]  # of one mix, the lead's first


def search(asked: SeatRules, group: Sequence[Need], layout: Layout, reserve: int) -> list[Seats] | None:
    """The best seats for mixes of one lead with so many cores kept free, or None where the rules cannot be met.

    Where a mix divides a cache, seats around one cache are worth more than the free core.
    """
    best = _with_reserve(asked, [replace(need, divides=False) for need in group], layout, reserve)
    if best is None or all(_around_one(mix, layout) for need, mix in zip(group, best, strict=True) if need.divides):
        return best
    return _with_reserve(asked, group, layout, reserve)


def can_share(asked: SeatRules, cores: Sequence[int], layout: Layout) -> bool:
    """Whether members of so many cores may be made to share a last-level cache, perhaps with a smaller lead."""
    sizes = Counter(core.llc for core in layout.cores)
    free = asked.llc is None and not asked.listed and None not in sizes
    return free and max(cores[0], 1 + sum(cores[1:])) <= max(sizes.values(), default=0)


def _around_one(mix: Seats, layout: Layout) -> bool:
    return len({layout.by_id[cpu].llc for seat in mix for cpu in seat.cpus}) == 1


def _with_reserve(asked: SeatRules, group: Sequence[Need], layout: Layout, reserve: int) -> list[Seats] | None:
    best = _best(asked, group, layout, reserve)
    if best is None and reserve and not must_reserve(asked, layout):
        return _best(asked, group, layout, 0)
    return best


def must_reserve(asked: SeatRules, layout: Layout) -> bool:
    """Whether cores are kept free at any price: on request, or where the runner would have to take a sibling."""
    return asked.reserve is not None or (asked.smt == "idle-sibling" and layout.siblings)


def _best(asked: SeatRules, group: Sequence[Need], layout: Layout, reserve: int) -> list[Seats] | None:
    """Try every housekeeping core and place of the lead, and keep what costs least; of equals, the first."""
    best: tuple[Cost, list[Seats]] | None = None
    # A lead whose neighbours sit on siblings needs cores that have some.
    for_lead = replace(asked, smt="share") if any(need.place == SIBLINGS for need in group) else asked
    # The rules for a mix; where it divides a cache, its members do not sit on siblings for the sake of that.
    rules = [(replace(asked, llc="shared", smt=asked.smt or "avoid") if need.divides else asked) for need in group]
    for kept_free in _housekeeping(asked, layout, reserve):
        for lead in lead_places(for_lead, group[0].cores[0], layout, kept_free):
            around = {each: Around(each, lead, layout, kept_free) for each in dict.fromkeys(rules)}
            tries = zip(rules, group, strict=True)
            mixes = (_seats(asked, around[own].seats(need.cores[1:], need.place), layout) for own, need in tries)
            seats = [mix for mix in takewhile(bool, mixes) if mix]
            if len(seats) < len(group):
                continue
            pairs = zip(group, seats, strict=True)
            costs = [_cost(asked, [seat.cpus for seat in mix], layout, bool(need.place)) for need, mix in pairs]
            cost = tuple(map(sum, zip(*costs, strict=True)))
            if best is None or cost < best[0]:
                best = cost, seats
            if not any(cost):
                return seats
    return best and best[1]


def _seats(asked: SeatRules, mix: Sequence[Cpus] | None, layout: Layout) -> Seats | None:
    seats = []
    for cpus in mix or ():
        nodes = memory_of(cpus, asked.numa, layout)
        if nodes is None:
            return None
        seats.append(Seat(cpus, nodes))
    return seats or None


def _cost(asked: SeatRules, mix: Sequence[Cpus], layout: Layout, placed: bool) -> Cost:
    """How far a mix is from what we prefer where no rule decides, the worst first."""
    seats = [[layout.by_id[cpu] for cpu in seat] for seat in mix]
    kinds = [{cpu.kind for cpu in seat} for seat in seats]
    home = {cpu.llc for cpu in seats[0]}
    crowded = sum(len({cpu.core for cpu in seat}) < len(seat) for seat in seats)
    strangers = sum(cpu.llc not in home for seat in seats[1:] for cpu in seat)
    return (
        crowded,
        sum(len(own) - 1 for own in kinds),
        len(set().union(*kinds)) - 1,
        len(home) - 1,
        0 if placed or asked.llc == "separate" else strangers,
        sum(len({cpu.node for cpu in seat}) - 1 for seat in seats),
    )


def _housekeeping(asked: SeatRules, layout: Layout, reserve: int) -> Iterator[frozenset[int]]:
    """Sets of CPUs to keep free, best first: slow cores, then the first one, which serves most interrupts anyway."""
    if not reserve:
        yield frozenset()
        return
    cores = [core for core in layout.cores if asked.listed.isdisjoint(core.cpus)]
    cores.sort(key=lambda core: (core.isolated, core.tickless, -core.first.slowness, core.cpus[0]))
    if len(cores) < reserve:
        return

    # Caches with equally many cores are equally good, so one of each size is tried.
    sizes = Counter(core.llc for core in cores)
    groups: dict[tuple[object, ...], tuple[object, ...]] = {}
    for core in cores:
        groups.setdefault((sizes[core.llc], core.kind, core.isolated), (core.llc, core.kind, core.isolated))
    for group in groups.values():
        chosen = sorted(cores, key=lambda core: (core.llc, core.kind, core.isolated) != group)[:reserve]
        yield frozenset(cpu for core in chosen for cpu in core.cpus)
