"""The rules of `placement` as they were asked for, and whether the members of a mix sit by them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from castmates.errors import CastmatesError
from castmates.study import cpus
from castmates.study.model import Placement
from castmates.study.placement.layout import Layout

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
