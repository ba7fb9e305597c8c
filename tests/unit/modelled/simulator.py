"""An exact set-associative LRU cache with way masks, for several users at once: what the model is compared with.

Sets are simulated side by side. Every user uses the lines of its working sets at random, so that what one set sees is
independent of the others, as it is in the model.
"""

from dataclasses import dataclass

import numpy as np

from castmates.runner.modelled.power import User

WARM_UP = 0.5  # of all steps


@dataclass
class Seen:
    """What the simulator found of one user."""

    misses: float  # share of its accesses
    lines: float  # mean number in the cache
    by_way: np.ndarray


class Cache:
    """Tags and times of last use, by set and way."""

    def __init__(self, sets: int, ways: int) -> None:
        self.tags = np.full((sets, ways), -1, dtype=np.int64)
        self.owners = np.full((sets, ways), -1, dtype=np.int64)
        self.used = np.full((sets, ways), -1, dtype=np.int64)  # what is empty is oldest
        self._rows = np.arange(sets)

    def access(self, time: int, owners: np.ndarray, tags: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """One access to every set; returns which of them missed. Hits are found in all ways, fills go to the mask's."""
        found = (self.tags == tags[:, None]) & (self.owners == owners[:, None])
        hit = found.any(axis=1)
        victim = np.where(masks[owners], self.used, np.iinfo(np.int64).max).argmin(axis=1)
        way = np.where(hit, found.argmax(axis=1), victim)
        self.tags[self._rows, way], self.owners[self._rows, way] = tags, owners
        self.used[self._rows, way] = time
        return ~hit


class Traffic:
    """The accesses of several users, one to each cache set at a time."""

    def __init__(self, users: list[User], sets: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._sets = sets
        speeds = np.array([user.speed for user in users])
        self._odds = (speeds / speeds.sum()).cumsum()
        self._fresh = 1 << 40  # lines of streams have separate numbers
        self._parts = []
        for user in users:
            sizes = [round(lines / sets) for lines, _ in user.reuse.sets]
            assert all(size * sets == lines for size, (lines, _) in zip(sizes, user.reuse.sets, strict=True))
            begins = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
            self._parts.append((np.cumsum([share for _, share in user.reuse.sets]), sizes, begins))

    def next(self) -> tuple[np.ndarray, np.ndarray]:
        """Owner and tag of the next access to each set."""
        owners = np.searchsorted(self._odds, self._random.random(self._sets), side="right")
        which, where = self._random.random(self._sets), self._random.random(self._sets)
        tags = self._fresh + np.arange(self._sets)
        self._fresh += self._sets
        for number, (shares, sizes, begins) in enumerate(self._parts):
            part = np.searchsorted(shares, which, side="right")
            for one, size in enumerate(sizes):
                chosen = (owners == number) & (part == one)
                tags[chosen] = begins[one] + (where[chosen] * size).astype(int)
        return owners, tags


def simulate(users: list[User], sets: int, ways: int, steps: int, seed: int = 1) -> list[Seen]:
    """Run all users at once, and count after the warm-up."""
    cache, traffic = Cache(sets, ways), Traffic(users, sets, seed)
    masks = np.array([[bool(user.mask >> way & 1) for way in range(ways)] for user in users])
    accesses, misses = np.zeros(len(users)), np.zeros(len(users))
    held, looks = np.zeros((len(users), ways)), 0
    for step in range(steps):
        owners, tags = traffic.next()
        missed = cache.access(step, owners, tags, masks)
        if step >= WARM_UP * steps:
            accesses += np.bincount(owners, minlength=len(users))
            misses += np.bincount(owners, weights=missed, minlength=len(users))
            if step % 10 == 0:
                looks += 1
                for number in range(len(users)):
                    held[number] += (cache.owners == number).sum(axis=0)
    held /= looks
    return [Seen(misses[n] / accesses[n], held[n].sum(), held[n]) for n in range(len(users))]
