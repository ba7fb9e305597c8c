"""Proves that the masks of a window are those that were given: read back at both edges, and every thread in its group."""

import re
from collections.abc import Mapping, Sequence
from time import monotonic_ns

from castmates.protocols import Allocator, Sample

SOURCE = "masks"
SCHEMATA, CHANGED, MISPLACED = "schemata", "schemata_changed", "misplaced"  # metrics; the words stand in the note
FIRST_CACHE_MASK = re.compile(r"L3(?:DATA)?:\d+=([0-9a-f]+)", re.ASCII)


def ways_of(schemata: str) -> int | None:
    """How many ways a member's own mask has; None where there is none."""
    found = FIRST_CACHE_MASK.search(schemata)
    return int(found[1], 16).bit_count() if found else None


class MaskWitness:
    """A collector; outermost, so that its looks lie outside the measured time."""

    name = SOURCE

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._given: dict[str, str] = {}
        self._opened: dict[str, str] = {}

    def given(self) -> None:
        """Remember what is in force now: it has just been written and proved."""
        self._given = self._allocator.read_back()

    def attach(self, members: Mapping[str, int]) -> None:
        """Remember what is in force at the begin."""
        self.given()

    def start(self, active: Sequence[str]) -> None:
        """Read at the opening edge."""
        self._opened = self._allocator.read_back()

    def stop(self) -> list[Sample]:
        """Read at the closing edge: what is in force, and what differs from what was given."""
        closed, now = self._allocator.read_back(), monotonic_ns()
        samples = [Sample(now, SOURCE, name, SCHEMATA, None, said) for name, said in closed.items()]
        for name, given in self._given.items():
            if strange := [f"'{found.get(name, '')}'" for found in (self._opened, closed) if found.get(name) != given]:
                samples.append(Sample(now, SOURCE, name, CHANGED, 1.0, f"'{given}' was {strange[-1]}"))
        samples += [Sample(now, SOURCE, "host", MISPLACED, 1.0, words) for words in self._allocator.misplaced()]
        return samples

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Say how masks are proved."""
        return {"masks": "read back at both edges of every window, and every thread looked for in its group"}
