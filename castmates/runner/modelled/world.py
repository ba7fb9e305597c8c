"""The modelled machine at work: its clock, who runs, what lies in the caches, how far everybody is."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from castmates.runner.modelled.balance import Actor, Balance, Grant, balance, speeds
from castmates.runner.modelled.power import Floats, Packages, slowed
from castmates.study.modelled import LINE, MachineModel, WorkloadModel

# What lies in the caches of a modelled machine while it is on its way from one balance to the next.
#
# Every miss brings a line in. It takes free space first, then the place of a line whose holder has more than the
# scene's balance gives it: one that is frozen, or that has lost these ways. A holder that has what the balance gives it
# replaces its own lines. So a change of masks or of who runs evicts nothing by itself; places change hands only as fast
# as they are filled.

SLICES = 12  # in which one cache could be filled; the rates change little within one
SETTLED = 1e-4  # of a cache


@dataclass(frozen=True)
class Stretch:
    """A piece of time with constant rates."""

    seconds: float
    rates: tuple[float, ...]  # steps per second, by actor
    reads: tuple[tuple[float, ...], ...]  # lines read per second, by actor and cache
    fills: tuple[tuple[float, ...], ...]  # those of them that take a place in the cache


def run(
    held: Floats, numbers: Sequence[int], balance: Balance, machine: MachineModel, seconds: float
) -> tuple[Floats, list[Stretch]]:
    """Let the actors of this balance run; `numbers` are their rows in `held` (by process, cache and way)."""
    wanted = np.zeros_like(held)
    wanted[list(numbers)] = balance.lines
    stretches = []
    left = seconds
    while left > 0:
        now = _stretch(held[list(numbers)], balance, machine, left)
        stretches.append(now)
        fills = np.zeros(held.shape[:2])
        fills[list(numbers)] = now.fills
        held = filled(held, wanted, fills * now.seconds, machine.way_lines)
        left -= now.seconds
    return held, stretches


def _stretch(held: Floats, balance: Balance, machine: MachineModel, left: float) -> Stretch:
    """Return the rates that what the actors hold allows, for as long as that hardly changes."""
    cache = machine.way_lines * machine.ways
    change = np.abs(held - balance.lines).sum(axis=2)
    if change.max(initial=0.0) < SETTLED * cache:
        return _stretched(left, balance.rates, balance.misses, balance)
    misses = [
        [use.misses(use.age_of(lines, ways), ways) for use, lines, ways in zip(actor.uses, there, degrees, strict=True)]
        for actor, there, degrees in zip(balance.actors, held.sum(axis=2), balance.degrees, strict=True)
    ]
    rates = speeds(balance.actors, misses, machine).rates
    now = _stretched(left, rates, misses, balance)
    lacking = np.clip(balance.lines - held, 0, None).sum(axis=2)
    growing = np.array(now.fills)[lacking > SETTLED * cache]
    longest = cache / SLICES / growing.max() if growing.size and growing.max() > 0 else left
    return replace(now, seconds=min(left, longest))


def _stretched(
    seconds: float, rates: tuple[float, ...], misses: Sequence[Sequence[float]], balance: Balance
) -> Stretch:
    staying = [
        [missed - use.streaming * (1 - use.stays) for missed, use in zip(each, actor.uses, strict=True)]
        for each, actor in zip(misses, balance.actors, strict=True)
    ]
    return Stretch(seconds, rates, _lines(rates, misses, balance), _lines(rates, staying, balance))


def _lines(
    rates: Sequence[float], misses: Sequence[Sequence[float]], balance: Balance
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(rate * actor.model.accesses * weight * missed for weight, missed in zip(actor.weights, each, strict=True))
        for rate, actor, each in zip(rates, balance.actors, misses, strict=True)
    )


def filled(held: Floats, wanted: Floats, brought: Floats, way_lines: float) -> Floats:
    """Return what lies there after so many lines (by process and cache) were brought in."""
    lacking = np.clip(wanted - held, 0, None)
    total = lacking.sum(axis=2)
    part = np.divide(brought, total, out=np.zeros_like(total), where=total > 0)
    grown = held + lacking * np.minimum(part, 1.0)[:, :, None]
    too_many = np.clip(grown.sum(axis=0) - way_lines, 0, None)
    spare = np.clip(grown - wanted, 0, None)
    all_spare = spare.sum(axis=0)
    given_up = np.divide(too_many, all_spare, out=np.zeros_like(all_spare), where=all_spare > 0)
    return np.asarray(grown - spare * np.minimum(given_up, 1.0))


NANO = 1_000_000_000
START_NS = 1000 * NANO  # nothing should take zero for a time


@dataclass
class Process:
    """A process on this machine."""

    name: str
    model: WorkloadModel
    cpus: tuple[int, ...]
    steps: float = 0.0  # done so far
    beats: list[tuple[int, int]] = field(default_factory=list)  # (time, units so far) since they were last taken
    moved: list[float] = field(default_factory=list)  # bytes so far, by memory


class World:
    """A machine with processes on it, all of them frozen and all caches empty at the begin."""

    def __init__(self, machine: MachineModel, processes: Iterable[Process], seed: int) -> None:
        self.machine = machine
        self.processes = {process.name: process for process in processes}
        self.now_ns = START_NS
        self.alarm: tuple[int, Callable[[], None]] | None = None  # (when, what happens then); once
        self._seed = seed
        self._rows = {name: row for row, name in enumerate(self.processes)}
        self._held = np.zeros((len(self._rows), machine.domains, machine.ways))
        self._everything = Grant((machine.full,) * machine.domains)
        self._balances: dict[tuple[tuple[str, Grant], ...], Balance] = {}
        self._running: tuple[str, ...] = ()
        self._grants: dict[str, Grant] = {}
        self._scenes = 0
        self._wanders: dict[tuple[str, str], tuple[int | None, float]] = {}  # (what, who) -> since when, and how far
        self._walk = 0.0
        self._walked_ns = START_NS
        self.packages = None if machine.power is None else Packages(machine, machine.power)
        for process in self.processes.values():
            process.moved = [0.0] * machine.domains

    def let_run(self, names: Sequence[str]) -> None:
        """Freeze all but these; rates have wandered meanwhile."""
        self._running = tuple(names)
        self._scenes += 1
        for name in names:
            self._wander("window", name, self.machine.noise.window)
            if len(names) > 1:
                self._wander("effect", name, self.machine.noise.effect)
        minutes = (self.now_ns - self._walked_ns) / 60 / NANO
        self._walk += self._random("drift", self._scenes).gauss(0, self.machine.noise.drift * minutes**0.5)
        self._walked_ns = self.now_ns

    def grant(self, grants: Mapping[str, Grant]) -> None:
        """Put masks and throttles in force; who is not named has everything."""
        self._grants = dict(grants)

    def run_until(self, t_ns: int) -> None:
        """Let the time pass, and the alarm ring when its moment comes."""
        while self.alarm is not None and self.alarm[0] < t_ns:
            (moment, ring), self.alarm = self.alarm, None
            self._pass(moment)
            ring()
        self._pass(t_ns)

    def cpus_in_use(self) -> list[int]:
        """Return the CPUs on which somebody runs."""
        return sorted({cpu for name in self._running for cpu in self.processes[name].cpus})

    def truth_of(self, names: Sequence[str], grants: Mapping[str, Grant]) -> dict[str, dict[str, object]]:
        """Return what is true of these when nothing changes any more, the clock that is left included."""
        truth = self.balance_of(names, grants).truth()
        if self.packages is None:
            return truth
        everyone = [self.processes[name] for name in names]
        clocks = self.packages.steady(everyone)
        for process in everyone:
            facts, clock = truth[process.name], self.packages.clock_of(process, clocks)
            rate = slowed(float(str(facts["steps_per_second"])), process.model.compute, clock)
            facts |= {"steps_per_second": rate, "rate": rate * process.model.units}
            facts["ghz"] = clock * self.packages.power.clock
        return truth

    def _pass(self, t_ns: int) -> None:
        """Let the time pass; where power is limited, in pieces in which the clock stays about the same."""
        while self.packages is not None and (t_ns - self.now_ns) / NANO > self.packages.longest:
            self._pass_at_once(self.now_ns + int(self.packages.longest * NANO))
        self._pass_at_once(t_ns)

    def _pass_at_once(self, t_ns: int) -> None:
        seconds = (t_ns - self.now_ns) / NANO
        if seconds <= 0:
            return
        running = [self.processes[name] for name in self._running]
        clocks = [] if self.packages is None else self.packages.pass_time(running, seconds)
        if self._running:
            balance = self.balance_of(self._running, self._grants)
            numbers = [self._rows[name] for name in self._running]
            self._held, stretches = run(self._held, numbers, balance, self.machine, seconds)
            for number, name in enumerate(self._running):
                process = self.processes[name]
                clock = self.packages.clock_of(process, clocks) if self.packages else 1.0
                self._advance(process, number, stretches, self._luck(name, balance.actors), clock)
        self.now_ns = t_ns

    def balance_of(self, names: Sequence[str], grants: Mapping[str, Grant]) -> Balance:
        """Return what these come to in the long run with these grants, without any noise."""
        scene = tuple((name, grants.get(name, self._everything)) for name in names)
        if scene not in self._balances:
            processes = [(self.processes[name], grant) for name, grant in scene]
            actors = [
                Actor.on(self.machine, process.name, process.model, process.cpus, grant) for process, grant in processes
            ]
            self._balances[scene] = balance(actors, self.machine)
        return self._balances[scene]

    def occupancy(self, name: str, domain: int) -> float:
        """Bytes of this cache that hold its lines."""
        return float(self._held[self._rows[name], domain].sum()) * LINE

    def moved(self, name: str, domain: int) -> float:
        """Bytes that went between this memory and its cache for it."""
        return self.processes[name].moved[domain]

    def _advance(self, process: Process, number: int, stretches: Sequence[Stretch], luck: float, clock: float) -> None:
        begin = self.now_ns
        for stretch in stretches:
            rate = slowed(stretch.rates[number], process.model.compute, clock) * luck
            end = process.steps + rate * stretch.seconds
            for step in range(int(process.steps) + 1, int(end) + 1):
                process.beats.append((begin + int((step - process.steps) / rate * NANO), step * process.model.units))
            process.steps = end
            begin += int(stretch.seconds * NANO)
            for domain, lines in enumerate(stretch.reads[number]):
                process.moved[domain] += lines * stretch.seconds * LINE * (1 + process.model.writes)

    def _luck(self, name: str, actors: Sequence[Actor]) -> float:
        """Return the factor on a process's rate: launch, its effect on this scene, wandering, the machine's walk."""
        noise = self.machine.noise
        place = sorted(_granted(actor) for actor in actors)
        parts = (
            self._random("launch", name).gauss(0, noise.launch),
            self._random("scene", place, name).gauss(0, noise.scene),
            self._wanders["window", name][1],
            self._wanders["effect", name][1] if len(actors) > 1 else 0.0,
        )
        return float(np.exp(sum(parts) + self._walk))

    def _wander(self, what: str, name: str, spread: float) -> None:
        """Let a rate wander on from where it was: an Ornstein-Uhlenbeck process, looked at when its scene begins."""
        since_ns, before = self._wanders.get((what, name), (None, 0.0))
        passed = math.inf if since_ns is None else (self.now_ns - since_ns) / NANO / self.machine.noise.memory
        kept = math.exp(-passed)
        step = self._random(what, self._scenes, name).gauss(0, spread)
        self._wanders[what, name] = self.now_ns, kept * before + math.sqrt(1 - kept * kept) * step

    def _random(self, *what: object) -> random.Random:
        """Return a source that is the same whenever the same is asked for."""
        return random.Random("/".join(map(str, (self._seed, *what))))


def _granted(actor: Actor) -> tuple[object, ...]:
    """What of a scene decides the luck in it."""
    grant = actor.grant
    quota = (grant.quota,) if grant.quota < 1 else ()
    unfetched = () if grant.prefetching else ("prefetchers off",)
    return (actor.name, grant.masks, grant.throttle, *quota, *unfetched)
