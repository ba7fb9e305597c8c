"""How many mixes share a launch: as many as the study allows, memory holds, and the length of a block permits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from castmates.errors import CastmatesError
from castmates.study.model import Budget
from castmates.study.scenes import scenes_of
from castmates.study.spec import Member, Mix

MEMORY_SHARE = 0.8  # of the machine's memory that a company may take; the rest is for the system and its file cache

# Guesses of a launch in seconds: a Model Garden job imports and traces for some ten seconds.
QUICK_LAUNCH, SLOW_LAUNCH = 1.0, 15.0
QUICK_ENVIRONMENTS = ("native", None)


@dataclass(frozen=True)
class Room:
    """How much memory there is, and what each workload takes of it."""

    bytes: int | None = None  # None where it is not known: everything fits
    needs: Mapping[str, int] = field(default_factory=dict)  # by workload


def companies(
    mixes: Sequence[Mix], members: Mapping[str, Member], budget: Budget, rounds: int, room: Room
) -> list[list[Mix]]:
    """Put mixes of one lead together, each into the first company that has a place for it.

    What is in a company does not depend on the companies after it, and taking a whole one away changes no other:
    a plan stays the same while its blocks are measured one by one.
    """
    found: list[list[Mix]] = []
    for mix in mixes:
        _must_fit(mix, members, room)
        for company in found:
            larger = [*company, mix]
            if (
                len(larger) <= budget.company
                and _fits(larger, members, room)
                and length(larger, members, budget, rounds) <= budget.longest_block
            ):
                company.append(mix)
                break
        else:
            found.append([mix])
    return found


def length(mixes: Sequence[Mix], members: Mapping[str, Member], budget: Budget, rounds: int) -> float:
    """Seconds that a block of these mixes is expected to take, no window stretched and no round repeated."""
    windows = len(scenes_of(mixes, members)) * rounds
    return launch_guess(_cast(mixes, members)) + windows * (budget.settle + budget.window)


def launch_guess(cast: Iterable[Member]) -> float:
    """Seconds until everyone is ready, before any launch was measured; all start at the same time."""
    return max(QUICK_LAUNCH if member.environment in QUICK_ENVIRONMENTS else SLOW_LAUNCH for member in cast)


def _cast(mixes: Iterable[Mix], members: Mapping[str, Member]) -> list[Member]:
    names = dict.fromkeys(name for mix in mixes for name in (mix.lead, *mix.antagonists))
    return [members[name] for name in names]


def _fits(mixes: Sequence[Mix], members: Mapping[str, Member], room: Room) -> bool:
    return room.bytes is None or _memory(mixes, members, room) <= MEMORY_SHARE * room.bytes


def _memory(mixes: Sequence[Mix], members: Mapping[str, Member], room: Room) -> int:
    return sum(room.needs.get(member.workload, 0) for member in _cast(mixes, members))


def _must_fit(mix: Mix, members: Mapping[str, Member], room: Room) -> None:
    if room.bytes is None or _fits([mix], members, room):
        return
    parts = " + ".join(
        f"{member.workload} {room.needs.get(member.workload, 0) / 1e9:.1f}" for member in _cast([mix], members)
    )
    raise CastmatesError(
        f"the mix {mix.name} takes {_memory([mix], members, room) / 1e9:.1f} GB ({parts}), but {MEMORY_SHARE:.0%} of "
        f"this machine's memory are {MEMORY_SHARE * room.bytes / 1e9:.1f} GB; take out the mix, use a smaller size of "
        "its workloads, or correct their 'memory' in the catalogue."
    )
