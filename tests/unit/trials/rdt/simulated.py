"""A cache whose answers are known: it obeys masks, or fails in one of the ways that processors were seen to fail."""

import math
import random
from collections.abc import Callable, Mapping

from castmates.trials.rdt.eviction import Left
from castmates.trials.rdt.isolation import Beside
from castmates.trials.rdt.throttles import Moved

WAY = 1 << 20
HIT_NS, MISS_NS = 30.0, 100.0


class Cache:
    """Twelve ways, of which a chase wants six, beside a stream that takes all that it may fill."""

    def __init__(
        self,
        leaks: float = 0.0,  # share of the stream's fills that ignore its mask (SKZ18)
        tied: int = 0,  # ways that come only together
        traffic: float = 1.05,  # times that a miss-free load takes beside any stream
        protects: bool = False,  # lines that are used again from a stream, whatever the masks
        reads: Callable[[float], float | None] = lambda occupied: occupied,  # what the monitor makes of occupancy
        noise: float = 0.03,
        seed: int = 1,
        wanted: float = 6.0,
    ) -> None:
        self.leaks, self.tied, self.traffic, self.protects, self.reads = leaks, tied, traffic, protects, reads
        self.noise, self.wanted, self.dice = noise, wanted, random.Random(seed)
        self.given: list[tuple[int, int | None]] = []

    def beside(self, own: int, other: int | None) -> Beside:
        """Let the chase run in `own` beside a stream in `other`."""
        self.given.append((own, other))
        mine, theirs = self._effective(own), self._effective(other or 0)
        lost = (mine & theirs).bit_count() + (self.leaks * (mine & ~theirs).bit_count() if other else 0)
        held = min(self.wanted, mine.bit_count() - (0 if self.protects else lost))
        missing = 1 - held / self.wanted
        ns = (HIT_NS + missing * (MISS_NS - HIT_NS)) * (self.traffic if other else 1)
        return Beside(ns * self._scatter(), self.reads(held * WAY))

    def _effective(self, mask: int) -> int:
        return mask | self.tied if mask & self.tied else mask

    def _scatter(self) -> float:
        return math.exp(self.dice.gauss(0, self.noise))


class Throttle:
    """Streams whose rate under each step is known."""

    def __init__(
        self, rates: Mapping[int, float], noise: float = 0.005, counts: float | None = 1.02, seed: int = 2
    ) -> None:
        self.rates, self.noise, self.counts, self.dice = rates, noise, counts, random.Random(seed)

    def moved(self, step: int) -> Moved:
        """Let the streams run under a step."""
        program = self.rates[step] * 1e9 * math.exp(self.dice.gauss(0, self.noise))
        return Moved(program, None if self.counts is None else program * self.counts, None)


class Programs(Cache):
    """All that a trial does with a chase and a stream."""

    def set_mask(self, mask: int) -> None:
        """Put a mask in force for the chase."""
        self.mask = mask

    def ns_per_load(self) -> float:
        """Let it run alone."""
        return self.beside(self.mask, None).ns_per_load

    def occupied(self) -> float | None:
        """What it holds alone."""
        return self.beside(self.mask, None).occupied

    def probe(self) -> "Programs":
        """The same with a smaller chase."""
        return Programs(self.leaks, self.tied, self.traffic, self.protects, self.reads, self.noise, wanted=1.5)

    def shares(self, mask: int) -> tuple[()]:  # noqa: ARG002
        """Nobody looks at registers here."""
        return ()

    def after(self, passes: int) -> Left:
        """Nothing is left after one pass."""
        return Left(self.reads(0.0 if passes else 6.0 * WAY), (MISS_NS if passes else HIT_NS) * self._scatter())
