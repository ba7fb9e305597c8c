"""Power of the modelled machine: what its packages have drawn on average, the clock that is left, and who reads both.

A package may draw its budget on average over some seconds. What runs beside a program therefore lowers the program's
clock later, and for longer than it runs: turns that are shorter than that spread the loss over all scenes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from castmates.counters.edges import BetweenEdges
from castmates.protocols import Sample
from castmates.study.modelled import MachineModel, PowerModel

STEPS = 20  # pieces of the averaging time, in each of which the clock is held


class Busy(Protocol):
    """Something that is on CPUs."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return them."""


class Packages:
    """The average power of each package, its energy and its clock so far."""

    def __init__(self, machine: MachineModel, power: PowerModel) -> None:
        self._machine, self.power = machine, power
        self._average = [power.idle] * machine.domains
        self.joules = [0.0] * machine.domains
        self.clock_s = [0.0] * machine.domains  # the share of the full clock, added up over the seconds

    @property
    def longest(self) -> float:
        """Seconds that may pass at once."""
        return self.power.memory / STEPS

    def pass_time(self, running: Sequence[Busy], seconds: float) -> list[float]:
        """Let the time pass, and return each package's clock in it, as a share of the full one."""
        clocks = []
        for number, demand in enumerate(self._demands(running)):
            before = self._average[number]
            middle, after = (
                demand + (before - demand) * math.exp(-part * seconds / self.power.memory) for part in (0.5, 1.0)
            )
            clock = self.power.clock_at(middle)
            self._average[number] = after
            self.joules[number] += (self.power.idle + (demand - self.power.idle) * clock**3) * seconds
            self.clock_s[number] += clock * seconds
            clocks.append(clock)
        return clocks

    def steady(self, running: Sequence[Busy]) -> list[float]:
        """Return each package's clock when these have run for long."""
        return [self.power.clock_at(demand) for demand in self._demands(running)]

    def clock_of(self, process: Busy, clocks: Sequence[float]) -> float:
        """Return the clock of a process: the mean over its CPUs."""
        return sum(clocks[self._machine.domain_of(cpu)] for cpu in process.cpus) / len(process.cpus)

    def _demands(self, running: Sequence[Busy]) -> list[float]:
        busy = {cpu for process in running for cpu in process.cpus}
        return [
            self.power.drawn(len(busy.intersection(self._machine.around(number))))
            for number in range(self._machine.domains)
        ]


def slowed(rate: float, compute: float, clock: float) -> float:
    """Return the rate at a lower clock: computing takes longer, waiting does not."""
    return 1 / (1 / rate + compute * (1 / clock - 1)) if clock < 1 else rate


class Clock(Protocol):
    """The modelled machine, as far as its power is read."""

    now_ns: int
    packages: Packages | None

    def cpus_in_use(self) -> list[int]:
        """Return the CPUs on which somebody runs."""


Edge = tuple[int, list[float], list[float]]  # when; joules, and seconds at full clock, by package


class PowerReader(BetweenEdges[Edge]):
    """Reads energy and clocks at both edges, as the collectors of a real machine do."""

    name = "package"

    def __init__(self, world: Clock, packages: Packages, machine: MachineModel) -> None:
        self._world, self._packages, self._machine = world, packages, machine

    def _between(self, opening: Edge, closing: Edge) -> list[Sample]:
        """Watts of packages and GHz of CPUs."""
        now, joules, clocks = closing
        seconds = (now - opening[0]) / 1e9
        if seconds <= 0:
            return []
        samples = []
        for number in range(self._machine.domains):
            watts = (joules[number] - opening[1][number]) / seconds
            samples.append(Sample(now, self.name, f"package{number}", "package_w", watts))
        for cpu in self._world.cpus_in_use():
            number = self._machine.domain_of(cpu)
            ghz = (clocks[number] - opening[2][number]) / seconds * self._packages.power.clock
            samples.append(Sample(now, "busy_clock", f"cpu{cpu}", "busy_ghz", ghz))
            samples.append(Sample(now, "busy_clock", f"cpu{cpu}", "unhalted_s", seconds))
        return samples

    def about(self) -> dict[str, str]:
        """Describe the model."""
        power = self._packages.power
        return {
            "package_w, busy_ghz": f"modelled: {power.budget:g} W on average over {power.memory:g} s",
        }

    def _look(self) -> Edge:
        return self._world.now_ns, list(self._packages.joules), list(self._packages.clock_s)


# Who holds how much of a cache whose users may each fill only the ways of their mask.
#
# A miss evicts the line that was not used for longest among the ways of the mask. Where two masks overlap, each user
# takes what is oldest, so that users who reach each other's ways keep lines equally long, while a user whose mask has
# ways without competition keeps them longer: the times are as even as the masks allow. They are found from the shortest
# on: of all unions of masks the one that its users fill in the shortest time is theirs alone, and the others share out
# what is left.

# How much of a cache a workload fills, and how often it misses, when lines are evicted at a given age.
#
# The age is counted in the workload's own accesses since a line was last used. With many ways it is nearly the same for
# all sets of the cache (Che, Tung and Wang 2002); with few it scatters, which a gamma distribution of as many degrees
# as there are ways shows exactly for a stream and nearly for everything else (docs/modelled-machine.md).

NEWTON = 200  # steps at most; a handful is usual


@dataclass(frozen=True)
class Reuse:
    """A mixture of working sets, every line of one used equally often, and a stream that uses no line twice."""

    sets: tuple[tuple[float, float], ...] = ()  # (lines, share of accesses)
    streaming: float = 0.0  # share of accesses
    stays: float = 1.0  # share of the stream's lines that take a place in the cache

    @property
    def everything(self) -> float:
        """All lines that it can ever use."""
        return math.inf if self._filling else sum(lines for lines, _ in self.sets)

    @property
    def _filling(self) -> float:
        """The share of accesses whose lines take a place and are not used again."""
        return self.streaming * self.stays

    def misses(self, age: float, ways: int) -> float:
        """Return the share of accesses that miss."""
        if math.isinf(age):
            return self.streaming
        return self.streaming + sum(share * _gone(share * age / lines, ways) for lines, share in self.sets)

    def lines(self, age: float, ways: int) -> float:
        """Return the lines that are in the cache."""
        if math.isinf(age):
            return self.everything
        held = sum(lines * (1.0 - _gone(share * age / lines, ways)) for lines, share in self.sets)
        return self._filling * age + held

    def slope(self, age: float, ways: int) -> float:
        """Return how fast `lines` grows with the age."""
        terms = (
            share * _gone(share * age / lines, ways) / (1 + share * age / lines / ways) for lines, share in self.sets
        )
        return self._filling + sum(terms)

    def age_of(self, lines: float, ways: int) -> float:
        """Return the age at which it holds so many lines; infinite where it never needs so many."""
        return common_age([(self, 1.0, ways)], lines)


def common_age(users: list[tuple[Reuse, float, int]], lines: float) -> float:
    """Return the time after which lines are evicted where these users, at these speeds, together hold so many lines.

    Newton's method: what they hold grows ever more slowly with that time, so that from below every step stays below.
    """
    if lines <= 0 or sum(reuse.everything for reuse, _, _ in users) <= lines * (1 + 1e-9):
        return 0.0 if lines <= 0 else math.inf
    time = lines / sum(speed for _, speed, _ in users)
    for _ in range(NEWTON):
        missing = lines - sum(reuse.lines(speed * time, ways) for reuse, speed, ways in users)
        if missing <= 1e-9 * lines:
            break
        time += missing / sum(speed * reuse.slope(speed * time, ways) for reuse, speed, ways in users)
    return time


def _gone(uses: float, ways: int) -> float:
    """Return the chance that a line which is used so often in the mean age is evicted before it is used again."""
    return math.exp(-ways * math.log1p(uses / ways))


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
