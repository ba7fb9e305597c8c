"""Takes CPUs for the members of one mix: places that the lead may have, and the antagonists around it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

from castmates.errors import CastmatesError
from castmates.study import cpus
from castmates.study.model import Placement
from castmates.study.placement.layout import SAME_CPUS, SIBLINGS, Core, Layout, Nearness

# The rules of `placement` as they were asked for, and whether the members of a mix sit by them.

Cpus = tuple[int, ...]


@dataclass(frozen=True)
class SeatRules:
    """What the study asks of every mix; None where it leaves the choice to us."""

    lead: Cpus | None = None
    antagonists: Cpus | None = None
    llc: str | None = None
    smt: str | None = None
    numa: str | None = None
    reserve: int | None = None

    @property
    def rules(self) -> list[str]:
        """The names of what is asked for, the lists last."""
        names = [rule.name for rule in fields(self) if getattr(self, rule.name) is not None]
        return sorted(names, key=lambda name: name in ("lead", "antagonists"))

    @property
    def listed(self) -> frozenset[int]:
        """Every CPU of the lists."""
        return frozenset((*(self.lead or ()), *(self.antagonists or ())))

    def without(self, names: Iterable[str]) -> "SeatRules":
        """The same without some rules."""
        return replace(self, **dict.fromkeys(names))

    def quote(self, name: str) -> str:
        """A rule as it stands in the study."""
        value = getattr(self, name)
        return f"'placement.{name}: {cpus.format_cpu_list(value) if isinstance(value, tuple) else value}'"


def rules_of(placement: Placement, layout: Layout, study_file: str) -> SeatRules:
    """Read the rules, and check that the CPUs of the lists can be used."""

    def listed(name: str, text: str | None) -> Cpus | None:
        if text is None:
            return None
        wanted = cpus.parse(text, f"{study_file}: 'placement.{name}'")
        for cpu in wanted:
            if why := _unusable(cpu, layout):
                there_are = cpus.format_cpu_list(layout.usable)
                raise CastmatesError(
                    f"{study_file}: 'placement.{name}' names CPU {cpu}, which {why}; CPUs {there_are} may be used here."
                )
        return tuple(wanted)

    return SeatRules(
        lead=listed("lead", placement.lead),
        antagonists=listed("antagonists", placement.antagonists),
        llc=placement.llc,
        smt=placement.smt,
        numa=placement.numa,
        reserve=placement.reserve,
    )


def holds(asked: SeatRules, seats: Sequence[Cpus], layout: Layout) -> bool:
    """Whether these CPUs, the lead's first, are by the rules on caches and siblings, and their members are balanced."""
    lead, *others = seats
    piled_up = any(len(seat) > 1 and layout.isolated & set(seat) for seat in seats)
    return not piled_up and _llc_holds(asked.llc, lead, others, layout) and _smt_holds(asked.smt, lead, others, layout)


def memory_of(seat: Cpus, numa: str | None, layout: Layout) -> tuple[int, ...] | None:
    """The nodes to which a member on these CPUs is bound; none where there is no choice, None where a rule fails."""
    if numa is None and len(layout.memory) < 2:
        return ()
    homes = {layout.by_id[cpu].node for cpu in seat}
    known = [node for node in homes if node is not None]
    if len(known) < len(homes):
        return () if numa is None else None
    if numa == "local" and not homes <= set(layout.memory):
        return None
    if numa == "remote":
        others = [node for node in layout.memory if node not in homes]
        return (_nearest(known, others, layout),) if others else None
    return tuple(sorted({_nearest([home], layout.memory, layout) for home in known}))


def _nearest(homes: Sequence[int], nodes: Sequence[int], layout: Layout) -> int:
    return min(nodes, key=lambda node: (min(layout.distance(home, node) for home in homes), node))


def _unusable(cpu: int, layout: Layout) -> str:
    known = layout.by_id.get(cpu)
    if known is None:
        return "is not there"
    if not known.online:
        return "is offline"
    if known.isolated and not known.allowed:
        return "is isolated and not among those we were given (start with `taskset -c`)"
    return "" if known.allowed else "is not among those we were given (taskset, cpuset, container)"


def _llc_holds(rule: str | None, lead: Cpus, others: Sequence[Cpus], layout: Layout) -> bool:
    if rule is None:
        return True
    home = {layout.by_id[cpu].llc for cpu in lead}
    away = {layout.by_id[cpu].llc for seat in others for cpu in seat}
    if rule == "shared":
        return len(home | away) == 1 and None not in home
    return not home & away


def _smt_holds(rule: str | None, lead: Cpus, others: Sequence[Cpus], layout: Layout) -> bool:
    cores = [layout.by_id[cpu].core for seat in (lead, *others) for cpu in seat]
    if rule == "share":
        return bool({layout.by_id[cpu].core for cpu in lead} & set(cores[len(lead) :]))
    if rule is None:
        return True
    whole = {core.first.core for core in layout.cores if core.whole}
    return len(cores) == len(set(cores)) and (rule == "avoid" or set(cores) <= whole)


Take = Callable[[Sequence[Core], int], Cpus | None]

# What the cores of a lead's place share, best first; at last anything goes.
TOGETHER: tuple[tuple[str, ...], ...] = (
    ("kind", "node", "llc"),
    ("kind", "llc"),
    ("kind", "node"),
    ("kind", "package"),
    ("kind",),
    ("node", "llc"),
    ("llc",),
    ("node",),
    ("package",),
    (),
)


def lead_places(asked: SeatRules, need: int, layout: Layout, kept_free: frozenset[int]) -> Iterator[Cpus]:
    """Places for a lead, best first: the first cores of each group of cores that share something."""
    if asked.lead is not None:
        yield from [asked.lead[:need]] if len(asked.lead) >= need else []
        return
    seen: set[Cpus] = set()
    for taken in dict.fromkeys([frozenset(asked.antagonists or ()), frozenset[int]()]):
        cores = open_cores(asked, need, layout, kept_free, taken)
        for take in _takers(asked):
            for shared in TOGETHER:
                for pool in _pools(cores, shared):
                    place = take(pool, need)
                    if place is not None and place not in seen:
                        seen.add(place)
                        yield place


class Around:
    """The surroundings of a lead in its place, in which the antagonists of each of its mixes find theirs."""

    def __init__(self, asked: SeatRules, lead: Cpus, layout: Layout, kept_free: frozenset[int]) -> None:
        self._asked, self._lead, self._layout, self._kept_free = asked, lead, layout, kept_free

    def seats(self, needs: Sequence[int], place: str = "") -> list[Cpus] | None:
        """The lead's CPUs, then those of antagonists that need so many each; None where no seats are by the rules."""
        tries: Iterable[list[Cpus] | None]
        if place == SAME_CPUS:
            tries = [self._on_leads(needs)]
        elif self._asked.antagonists is not None:
            tries = [self._listed(needs, [cpu for cpu in self._asked.antagonists if cpu not in self._lead])]
        else:
            asked = replace(self._asked, smt="share") if place == SIBLINGS else self._asked
            tries = (self._hand_out(take, needs, asked, place) for take in _takers(asked))
        return next((seats for seats in tries if seats and holds(self._asked, seats, self._layout)), None)

    def room(self, place: str) -> int:
        """How many CPUs antagonists of one CPU find at this place: one of each core, and every sibling."""
        if place == SAME_CPUS:
            return len(self._lead)
        asked = replace(self._asked, smt="share") if place == SIBLINGS else self._asked
        cores = self._left(1, set(self._lead), asked, place)
        return sum(len(core.cpus) for core in cores) if place == SIBLINGS else len(cores)

    def _on_leads(self, needs: Sequence[int]) -> list[Cpus] | None:
        fits = all(need <= len(self._lead) for need in needs)
        return [self._lead, *(self._lead[:need] for need in needs)] if fits else None

    def _listed(self, needs: Sequence[int], rest: list[int]) -> list[Cpus] | None:
        seats = [self._lead]
        for need in needs:
            seats.append(tuple(rest[:need]))
            rest = rest[need:]
        return seats if all(len(seat) == need for seat, need in zip(seats[1:], needs, strict=True)) else None

    def _hand_out(self, take: Take, needs: Sequence[int], asked: SeatRules, place: str) -> list[Cpus] | None:
        seats, taken = [self._lead], set(self._lead)
        for need in needs:
            seat = take(self._left(need, taken, asked, place), need)
            if seat is None:
                return None
            seats.append(seat)
            taken |= set(seat)
        return seats

    def _left(self, need: int, taken: set[int], asked: SeatRules, place: str) -> list[Core]:
        """The cores at a place that are free; where cores are shared those with CPUs left, the lead's first."""
        near = self._near(asked, min(need, 2), place)
        if asked.smt != "share":
            return [core for core in near if taken.isdisjoint(core.cpus)]
        left = [replace(core, cpus=tuple(cpu for cpu in core.cpus if cpu not in taken)) for core in near]
        used = {self._layout.by_id[cpu].core for cpu in taken} - self._lead_cores
        return sorted((core for core in left if core.cpus), key=lambda core: core.first.core in used)

    @cached_property
    def _lead_cores(self) -> set[int]:
        return {self._layout.by_id[cpu].core for cpu in self._lead}

    @cached_property
    def _nearness(self) -> Nearness:
        return Nearness(self._lead, self._layout)

    @cached_property
    def _found(self) -> dict[tuple[SeatRules, int, str], list[Core]]:
        return {}

    def _near(self, asked: SeatRules, need: int, place: str) -> list[Core]:
        """The cores that antagonists may have at a place, or anywhere, nearest to the lead first; looked up once."""
        if (asked, need, place) not in self._found:
            cores = self._by_farness(asked, need)
            self._found[asked, need, place] = self._nearness.at(place, cores) if place else cores
        return self._found[asked, need, place]

    def _by_farness(self, asked: SeatRules, need: int) -> list[Core]:
        mine = [self._layout.by_id[cpu] for cpu in self._lead]
        kinds, packages, nodes = ({getattr(cpu, name) for cpu in mine} for name in ("kind", "package", "node"))
        llcs = {cpu.llc for cpu in mine} - {None}

        def farness(core: Core) -> tuple[object, ...]:
            return (
                core.first.core not in self._lead_cores,
                core.kind not in kinds,
                core.llc not in llcs,
                min(self._layout.distance(node, core.node) for node in nodes),
                core.package not in packages,
                need == 1 and not core.isolated,
                core.cpus[0],
            )

        cores = open_cores(asked, need, self._layout, self._kept_free, frozenset(self._lead))
        if self._asked.llc == "separate":
            cores = [core for core in cores if core.llc not in llcs]
        elif self._asked.llc == "shared":
            cores = [core for core in cores if core.llc in llcs]
        return sorted(cores, key=farness)


def open_cores(
    asked: SeatRules, need: int, layout: Layout, kept_free: frozenset[int], taken: frozenset[int]
) -> list[Core]:
    """The cores for a member that needs so many CPUs, each with the CPUs it may have, in the order of preference."""
    cores = []
    for core in layout.cores:
        if kept_free & set(core.cpus) or (asked.smt == "idle-sibling" and not core.whole):
            continue
        if asked.smt != "share" and taken & set(core.cpus):
            continue
        # Threads on isolated CPUs are not spread by the kernel: they would pile up on one.
        shut = taken | (layout.isolated if need > 1 else frozenset())
        cpus = tuple(cpu for cpu in core.cpus if cpu not in shut)
        if cpus:
            cores.append(core if cpus == core.cpus else replace(core, cpus=cpus))
    alone = asked.smt == "share"  # then a core with one CPU is of less use
    return sorted(cores, key=lambda core: (alone and len(core.cpus) == 1, *_preference(core, need)))


def _preference(core: Core, need: int) -> tuple[int, ...]:
    """Fast cores first; isolated ones first where they serve; then neighbours side by side."""
    numbers = (-1 if number is None else number for number in (core.package, core.node, core.llc))
    return (core.first.slowness, need == 1 and not core.isolated, *numbers, core.cpus[0])


def _pools(cores: Sequence[Core], shared: tuple[str, ...]) -> list[list[Core]]:
    pools: dict[tuple[object, ...], list[Core]] = {}
    for core in cores:
        pools.setdefault(tuple(getattr(core, name) for name in shared), []).append(core)
    return list(pools.values())


def _takers(asked: SeatRules) -> tuple[Take, ...]:
    """How CPUs may be taken from cores, the best way first."""
    if asked.smt == "share":
        return (_in_turn,)
    return (_one_of_each,) if asked.smt is not None else (_one_of_each, _whole_cores)


def _one_of_each(cores: Sequence[Core], need: int) -> Cpus | None:
    """One CPU of every core, of one kind if there are enough of one."""
    kinds = _pools(cores, ("kind",))
    for pool in [*kinds, cores] if len(kinds) > 1 else kinds:
        if len(pool) >= need:
            return tuple(sorted(core.cpus[0] for core in pool[:need]))
    return None


def _whole_cores(cores: Sequence[Core], need: int) -> Cpus | None:
    """All CPUs of as few cores as possible, so that no core has to be split between members."""
    left, cpus = list(cores), list[int]()
    while len(cpus) < need and left:
        missing = need - len(cpus)
        fitting = [core for core in left if len(core.cpus) <= missing]
        core = max(fitting, key=_size) if fitting else min(left, key=_size)
        cpus += core.cpus[:missing]
        left.remove(core)
    return tuple(sorted(cpus)) if len(cpus) == need else None


def _size(core: Core) -> int:
    return len(core.cpus)


def _in_turn(cores: Sequence[Core], need: int) -> Cpus | None:
    """One CPU of every core, then the second of every core, and so on."""
    deepest = max((len(core.cpus) for core in cores), default=0)
    cpus = [core.cpus[turn] for turn in range(deepest) for core in cores if turn < len(core.cpus)]
    return tuple(sorted(cpus[:need])) if len(cpus) >= need else None
