"""Who holds how much of a cache whose users may each fill only the ways of their mask.

A miss evicts the line that was not used for longest among the ways of the mask. Where two masks overlap, each user
takes what is oldest, so that users who reach each other's ways keep lines equally long, while a user whose mask has
ways without competition keeps them longer: the times are as even as the masks allow. They are found from the
shortest on: of all unions of masks the one that its users fill in the shortest time is theirs alone, and the others
share out what is left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from castmates.runner.modelled.reuse import Reuse, common_age

Floats = npt.NDArray[np.float64]
FITTING = 200  # rounds at most


@dataclass(frozen=True)
class User:
    """A process that runs and uses the cache."""

    reuse: Reuse
    speed: float  # accesses per second
    mask: int


@dataclass(frozen=True)
class Held:
    """What a user has of the cache in the long run."""

    age: float  # in its accesses; infinite where it loses nothing
    lines: float
    mask: int  # of the ways that it fills

    @property
    def degrees(self) -> int:
        """How many ways it fills."""
        return max(self.mask.bit_count(), 1)

    def misses(self, user: User) -> float:
        """Return the share of its accesses that miss."""
        return user.reuse.misses(self.age, self.degrees)


def share_out(users: Sequence[User], way_lines: float) -> list[Held]:
    """Return what each user holds when nothing changes any more."""
    held: dict[int, Held] = {}
    free = -1  # all bits
    while len(held) < len(users):
        left = [number for number in range(len(users)) if number not in held]
        time, union, group = _tightest(users, left, free, way_lines)
        for number in group:
            user = users[number]
            age = user.speed * time
            mine = user.mask & free & union
            lines = user.reuse.lines(age, max(mine.bit_count(), 1))
            held[number] = Held(age, lines, mine)
        free &= ~union
    return [held[number] for number in range(len(users))]


def _tightest(users: Sequence[User], left: Sequence[int], free: int, way_lines: float) -> tuple[float, int, list[int]]:
    """Return the shortest time after which lines are evicted, the mask of these ways, and whose they are."""
    unions = {0}
    for mask in {users[number].mask & free for number in left}:
        unions |= {mask | other for other in unions}
    best: tuple[float, int, list[int]] = (math.inf, 0, [])
    for union in sorted(unions - {0}, key=int.bit_count):
        group = [number for number in left if not users[number].mask & free & ~union]
        if not group:
            continue
        parts = [_part(users[number], free & union) for number in group]
        time = common_age(parts, union.bit_count() * way_lines)
        if time <= best[0]:  # of equals the largest: it holds the others
            best = (time, union, group)
    return best


def _part(user: User, mask: int) -> tuple[Reuse, float, int]:
    return user.reuse, user.speed, max((user.mask & mask).bit_count(), 1)


def spread(users: Sequence[User], held: Sequence[Held], way_lines: float, ways: int) -> Floats:
    """Return the lines, by user and way: every user has its lines, no way has more than it can hold."""
    table = np.zeros((len(users), ways))
    for row, each in zip(table, held, strict=True):
        mine = [way for way in range(ways) if each.mask >> way & 1]
        row[mine] = each.lines / max(len(mine), 1)
    for _ in range(FITTING):
        full = table.sum(axis=0)
        over = full > way_lines * (1 + 1e-9)
        if not over.any():
            break
        table[:, over] *= way_lines / full[over]
        rows = table.sum(axis=1)
        table *= np.divide([each.lines for each in held], rows, out=np.ones(len(held)), where=rows > 0)[:, None]
    full = table.sum(axis=0)
    return np.asarray(table * np.minimum(1.0, np.divide(way_lines, full, out=np.ones(ways), where=full > 0)))
