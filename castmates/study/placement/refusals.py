"""Why a mix cannot be placed: which rule fails, what it needs, and what there is."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from castmates.errors import CastmatesError
from castmates.study.cpus import format_cpu_list
from castmates.study.placement.layout import Layout
from castmates.study.placement.search import Need, Seats, must_reserve, search
from castmates.study.placement.seats import Around, SeatRules, lead_places

LISTS = ("lead", "antagonists")
SHOWN = 4
MANY_COPIES = 4  # members with equally many cores, from which on a sum counts them


class Why(NamedTuple):
    """Why a mix has no place, and what to do about it."""

    what: str
    remedy: str = ""
    after_name: str = ": "

    def of(self, name: str) -> str:
        """What is said of the mix of this name."""
        return f"the mix {name}{self.after_name}{self.what}"


def reason(asked: SeatRules, need: Need, layout: Layout) -> str:
    """One sentence on a mix that has no place: the fewest rules without which it would have one are to blame."""
    why = _why(asked, need, layout)
    return f"{why.of(need.name)}{why.remedy and '; '}{why.remedy}."


def _why(asked: SeatRules, need: Need, layout: Layout) -> Why:
    if need.divides and _fits(asked, replace(need, divides=False), layout):
        return _fills(asked, need, layout)
    for count in range(1, len(asked.rules) + 1):
        for blamed in combinations(asked.rules, count):
            if _fits(asked.without(blamed), need, layout):
                return _blame(asked, blamed, need, layout)
    return _too_much(need, layout)


def too_many(asked: SeatRules, need: Need, layout: Layout) -> Why | None:
    """Why a mix of more antagonists than others has no seats; None where it has."""
    return None if _fits(asked, need, layout) else _why(asked, need, layout)


def _fits(asked: SeatRules, need: Need, layout: Layout) -> bool:
    return search(asked, [need], layout, 1 if asked.reserve is None else asked.reserve) is not None


def _fills(asked: SeatRules, need: Need, layout: Layout) -> Why:
    """Why the members of a mix cannot share a cache that it divides, and how large a lead could."""
    lead, *others = need.cores
    sizes = range(lead - 1, 0, -1)
    size = next((size for size in sizes if _fits(asked, replace(need, cores=(size, *others)), layout)), 0)
    most = max(sum(core.llc == llc for core in layout.cores) for llc in {core.llc for core in layout.cores})
    return Why(
        f"a lead of {_count(lead)} and {_count(sum(others))} for antagonists do not fit around one last-level cache "
        f"({_count(most)}), and 'cache.sweeps' divides one between them",
        f"take {size or 'fewer'} for the lead, or measure them apart and without ways, with 'placement.llc: separate'",
    )


def _blame(asked: SeatRules, blamed: Sequence[str], need: Need, layout: Layout) -> Why:
    first = blamed[0]
    lists = [name for name in LISTS if name in asked.rules]
    if first in LISTS:
        return _short_list(asked, need, layout)
    why = f"{_needs(first, asked, need, layout)}, but {_there_is(first, asked, layout)}"
    if len(blamed) > 1:
        return Why(f"{_quoted(asked, blamed)} cannot be met together: the first {why}")
    if lists and _fits(asked.without(lists), need, layout):
        return Why(f"{asked.quote(first)} contradicts {_quoted(asked, lists)}: it {why}", "take one of them out")
    return Why(f"{asked.quote(first)} {why}")


def _short_list(asked: SeatRules, need: Need, layout: Layout) -> Why:
    """What is wrong with the lists themselves."""
    lead, others = need.cores[0], sum(need.cores[1:])
    ours = (asked.lead or ())[:lead]
    if asked.lead is not None and len(ours) < lead:
        has = f"{asked.quote('lead')} has {_count(len(ours), 'CPU')}"
        return Why(f"{has}, but the lead asks for {lead}", "list more of them")
    theirs = [cpu for cpu in asked.antagonists or () if cpu not in ours]
    if asked.antagonists is not None and len(theirs) < others:
        has = f"{asked.quote('antagonists')} has {_count(len(theirs), 'CPU')} besides the lead's"
        return Why(f"{has}, but the antagonists ask for {others}", "list more of them")
    listed = _quoted(asked, [name for name in LISTS if name in asked.rules])
    if piled := layout.isolated & asked.listed:
        return Why(
            f"{listed} puts a member of several CPUs on isolated ones ({format_cpu_list(piled)}), where the kernel "
            "spreads no threads",
            "list balanced CPUs",
        )
    return Why(f"{listed} leaves no CPUs for the others", "list fewer of them, or all of them")


def _too_much(need: Need, layout: Layout) -> Why:
    """What no rule is to blame for."""
    total = sum(need.cores)
    asks = f"asks for {total} cores ({_sum(need.cores)}), but"
    advice = "lower 'cores' of a workload or take out the mix"
    if total > len(layout.usable):
        there_are = f" ({format_cpu_list(layout.usable)})" if layout.usable else ""
        return Why(f"{asks} only {_count(len(layout.usable), 'CPU')}{there_are} may be used here", advice, " ")
    if _fits(SeatRules(smt="share"), need, layout):
        return Why(
            f"{asks} there are {len(layout.cores)} with {len(layout.usable)} CPUs, and the CPUs of a core are not "
            "split between members unless you ask for 'placement.smt: share'",
            f"do so, or {advice}",
            " ",
        )
    return Why(
        f"{asks} of the CPUs that may be used here {format_cpu_list(layout.isolated)} are isolated: the kernel spreads "
        "no threads there, so only members of one CPU may have them",
        advice,
        " ",
    )


def _sum(cores: Sequence[int]) -> str:
    """1 + 1 + 2; 1 + 40 of 1 each where that is shorter."""
    lead, *others = cores
    if len(others) < MANY_COPIES or len(set(others)) > 1:
        return " + ".join(map(str, cores))
    return f"{lead} + {len(others)} \N{MULTIPLICATION SIGN} {others[0]}"


def _needs(rule: str, asked: SeatRules, need: Need, layout: Layout) -> str:
    total, others = sum(need.cores), sum(need.cores[1:])
    kept = asked.reserve if asked.reserve is not None else int(layout.siblings)
    texts = {
        "llc shared": f"needs one last-level cache with {_count(total)} free",
        "llc separate": f"needs a second last-level cache with {_count(others)} free",
        "smt avoid": f"needs {total} cores",
        "smt idle-sibling": f"needs {total} cores that are wholly ours, and {kept} for the runner",
        "smt share": "needs a second CPU on the lead's cores",
        "numa local": "needs memory on the nodes of the mix's CPUs",
        "numa remote": "needs a memory node besides those of the mix's CPUs",
    }
    if rule == "reserve":
        beside = " besides those listed" if asked.listed else ""
        return f"needs {_count(total)} and {asked.reserve} to be kept free{beside}"
    return texts[f"{rule} {getattr(asked, rule)}"]


def _there_is(rule: str, asked: SeatRules, layout: Layout) -> str:
    if rule == "llc":
        return _caches(layout)
    if rule == "numa":
        nodes = format_cpu_list(layout.memory)
        return f"memory may be used on node {nodes} only" if nodes else "no memory nodes are known here"
    cores = [core for core in layout.cores if rule != "smt" or asked.smt != "idle-sibling" or core.whole]
    if rule == "smt" and asked.smt == "share":
        cores = [core for core in cores if len(core.cpus) > 1]
        kind = " with two usable CPUs"
    else:
        kind = ""
    if not cores:
        return f"no core{kind or ' like that'} is there"
    listed = format_cpu_list(cpu for core in cores for cpu in core.cpus)
    return f"there {'is' if len(cores) == 1 else 'are'} {len(cores)}{kind} (CPUs {listed})"


def _caches(layout: Layout) -> str:
    caches: dict[int, list[int]] = {}
    cores: dict[int, int] = {}
    for core in layout.cores:
        if core.llc is not None:
            caches.setdefault(core.llc, []).extend(core.cpus)
            cores[core.llc] = cores.get(core.llc, 0) + 1
    if not caches:
        return "no last-level cache is known here"
    shown = [
        f"id {number}: {_count(cores[number])}, CPUs {format_cpu_list(cpus)}"
        for number, cpus in sorted(caches.items())[:SHOWN]
    ]
    more = f"; and {len(caches) - SHOWN} more" if len(caches) > SHOWN else ""
    return f"there {'is one' if len(caches) == 1 else f'are {len(caches)}'} ({'; '.join(shown)}{more})"


def _quoted(asked: SeatRules, names: Sequence[str]) -> str:
    return " and ".join(map(asked.quote, names))


def _count(number: int, what: str = "core") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def no_such_place(asked: SeatRules, need: Need, layout: Layout) -> Why | None:
    """Why this mix has no seats as near to the lead as it asks for; None for another reason."""
    reserve = 1 if asked.reserve is None else asked.reserve
    if search(asked, [need], layout, reserve) or not search(asked, [_alone(need)], layout, reserve):
        return None
    places = lead_places(asked, need.cores[0], layout, frozenset())
    most = max((Around(asked, lead, layout, frozenset()).room(need.place) for lead in places), default=0)
    return Why(f"{_place_needs(need)}, but there {'is' if most == 1 else 'are'} {most or 'none'}", after_name=" ")


def _alone(need: Need) -> Need:
    return replace(need, cores=need.cores[:1], place="")


def _place_needs(need: Need) -> str:
    others = sum(need.cores[1:])
    further = f"{_count(others)} more" if others > 1 else "one more core"
    texts = {
        "cpu": f"('share.cpus: lead') needs as many CPUs of the lead as each antagonist has ({max(need.cores[1:])})",
        "smt": f"needs {_count(others, 'CPU')} more on the lead's cores (siblings)",
        "core": f"needs {further} close to the lead, around the same last-level cache",
        "llc": f"needs {further} around the lead's last-level cache",
        "socket": f"needs {_count(others)} around another last-level cache of the lead's socket",
        "other-socket": f"needs {_count(others)} on another socket",
    }
    return texts[need.place]


# (needs of the mixes, rules, layout of the machine) -> CPUs and memory nodes of every member; a pure function.


def place(asked: SeatRules, needs: Sequence[Need], layout: Layout, study_file: str) -> list[Seats]:
    """Seats for the members of each mix; the mixes of one lead have it on the same CPUs where that is possible."""
    if asked.smt == "idle-sibling" and asked.reserve == 0 and layout.siblings:
        raise CastmatesError(
            f"{study_file}: 'placement.reserve: 0' contradicts 'placement.smt: idle-sibling': without a core of its "
            "own the runner would sit on a sibling; leave 'reserve' out."
        )
    reserve = _reserve(asked, needs, layout)
    seats: dict[Need, Seats] = {}
    for lead in dict.fromkeys(need.lead for need in needs):
        group = [need for need in needs if need.lead == lead]
        together = search(asked, group, layout, reserve)
        if together is not None:
            seats |= zip(group, together, strict=True)
            continue
        for need in sorted(group, key=lambda need: -sum(need.cores)):  # what is refused serves all of them
            alone = search(asked, [need], layout, reserve)
            if alone is None:
                raise CastmatesError(f"{study_file}: {reason(asked, need, layout)}")
            seats[need] = alone[0]
    return [seats[need] for need in needs]


def refuse_two_deciders(asked: SeatRules, needs: Sequence[Need], study_file: str) -> None:
    """Refuse a rule on where antagonists sit beside a mix that decides it itself."""
    placed = next((need for need in needs if need.place), None)
    rule = next((name for name in ("llc", "smt", "antagonists") if getattr(asked, name) is not None), None)
    if placed and rule:
        raise CastmatesError(
            f"{study_file}: {asked.quote(rule)} contradicts the mix {placed.name}: both decide where the antagonists "
            "sit; take one of them out."
        )


def _reserve(asked: SeatRules, needs: Sequence[Need], layout: Layout) -> int:
    """How many cores are kept free of members: one, unless the study's largest mix needs them all."""
    if asked.reserve is not None:
        return asked.reserve
    spare = len(layout.cores) > max((sum(need.cores) for need in needs), default=0)
    return int(spare or asked.smt == "share" or must_reserve(asked, layout))
