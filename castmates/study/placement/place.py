"""(needs of the mixes, rules, layout of the machine) -> CPUs and memory nodes of every member; a pure function."""

from collections.abc import Sequence

from castmates.errors import CastmatesError
from castmates.study.placement.layout import Layout
from castmates.study.placement.refusals import reason
from castmates.study.placement.rules import SeatRules
from castmates.study.placement.search import Need, Seats, must_reserve, search


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
