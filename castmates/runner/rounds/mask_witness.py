"""Proves that a window's masks are those that were given: read back at both edges, and every thread in its group."""

from collections.abc import Mapping
from time import monotonic_ns

from castmates.counters.edges import BetweenEdges
from castmates.protocols import Allocator, Sample
from castmates.rdt.resctrl.schemata import MASKS, parse

SOURCE = "masks"
SCHEMATA, CHANGED, MISPLACED = "schemata", "schemata_changed", "misplaced"  # metrics; the words stand in the note
Seen = tuple[dict[str, str], list[str]]  # masks in force, and threads in other groups


def number_of_ways(schemata: str) -> int | None:
    """Return how many ways a member may fill; None where there are no masks. On caches that it does not use it has all.

    With separate masks for code and data it is the ways of either, as it is in the effects' `lead_ways`.
    """
    masks = parse("\n".join(schemata.split()))
    filled: dict[int, int] = {}
    for line in MASKS:
        for domain, mask in masks.get(line, {}).items():
            filled[domain] = filled.get(domain, 0) | mask
    return min((mask.bit_count() for mask in filled.values()), default=None)


class MaskWitness(BetweenEdges[Seen]):
    """A collector; outermost, so that its looks lie outside the measured time."""

    name = SOURCE

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._former: dict[str, str] = {}

    def remember(self) -> None:
        """Remember what is in force now: it has just been written and proved."""
        self._former = self._allocator.read_back()

    def attach(self, members: Mapping[str, int]) -> None:  # noqa: ARG002
        """Remember what is in force at the begin."""
        self.remember()

    def _look(self) -> Seen:
        return self._allocator.read_back(), self._allocator.misplaced()

    def _between(self, opening: Seen, closing: Seen) -> list[Sample]:
        """What is in force, and what differs from what was given."""
        (opened, astray), (closed, still), now = opening, closing, monotonic_ns()
        samples = [Sample(now, SOURCE, name, SCHEMATA, None, schemata) for name, schemata in closed.items()]
        for name, former in self._former.items():
            if strange := [f"'{seen.get(name, '')}'" for seen in (opened, closed) if seen.get(name) != former]:
                samples.append(Sample(now, SOURCE, name, CHANGED, 1.0, f"'{former}' was {strange[-1]}"))
        misplaced = dict.fromkeys([*astray, *still])
        return samples + [Sample(now, SOURCE, "host", MISPLACED, 1.0, words) for words in misplaced]

    def about(self) -> dict[str, str]:
        """Return how masks are proved."""
        return {"masks": "read back at both edges of every window, and every thread looked for in its group"}
