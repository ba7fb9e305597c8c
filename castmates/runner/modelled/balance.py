"""How fast everybody runs when nothing changes any more: caches and memories in balance.

Who runs faster uses more of the cache and of the bandwidth, and so slows down the others and itself; rates are what is
consistent with the misses and the waiting times that they cause.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from castmates.errors import CastmatesError
from castmates.runner.modelled.power import Floats, Held, Reuse, User, share_out, spread
from castmates.study.modelled import LINE, MachineModel, WorkloadModel

CLOSE = 1e-9  # of a rate: the balance is found
EXACT = 1e-13  # of a share of bandwidth
STEPS = 2000
SWEEPS = 300  # at most, over the queues, where there are several


@dataclass(frozen=True)
class Grant:
    """What a process may take."""

    masks: tuple[int, ...]  # by cache
    throttle: float = 1.0  # share of what each of its cores may move
    quota: float = 1.0  # share of the time of its CPUs
    prefetching: bool = True


@dataclass(frozen=True)
class Actor:
    """A process on its CPUs, with what it may take."""

    name: str
    model: WorkloadModel
    cpus: tuple[int, ...]
    weights: tuple[float, ...]  # how its accesses, and its working sets, are divided among the caches: as its CPUs are
    grant: Grant
    stays: float = 1.0  # of the lines that it uses once, those that take a place
    throttled: float = math.inf  # bytes a second that its throttle leaves it

    @classmethod
    def on(cls, machine: MachineModel, name: str, model: WorkloadModel, cpus: Sequence[int], grant: Grant) -> "Actor":
        """Put it on these CPUs."""
        domains = [machine.domain_of(cpu) for cpu in cpus]
        weights = tuple(domains.count(number) / len(domains) for number in range(machine.domains))
        most = _most({machine.core_of(cpu) for cpu in cpus}, machine, grant.throttle)
        return cls(name, model, tuple(cpus), weights, grant, machine.streams_stay, most)

    @cached_property
    def uses(self) -> tuple[Reuse, ...]:
        """Its use of each cache."""
        sets = [(use.lines, use.share) for use in self.model.reuse if use.share]
        streaming = self.model.streaming
        return tuple(
            Reuse(tuple((lines * weight, share) for lines, share in sets) if weight else (), streaming, self.stays)
            for weight in self.weights
        )

    @cached_property
    def traffic(self) -> tuple[float, ...]:
        """Bytes that a step would move between each memory and its cache, if every access missed."""
        return tuple(self.model.accesses * weight * (1 + self.model.writes) * LINE for weight in self.weights)


def _most(cores: Collection[int], machine: MachineModel, throttle: float) -> float:
    """Return the bytes a second that these cores may move under a throttle; between measured points, on a line."""
    if not (curves := machine.throttle_curves):
        return throttle * len(cores) * machine.core_bytes_per_second if throttle < 1 else math.inf
    rates = [float(np.interp(100 * throttle, list(each), list(each.values()))) for each in curves.values()]
    around = Counter(map(machine.domain_of, cores))
    return sum(float(np.interp(number, [0, *curves], [0.0, *rates])) for number in around.values())


@dataclass(frozen=True)
class Speeds:
    """How fast actors run, given how often they miss."""

    rates: tuple[float, ...]  # steps per second
    busy: tuple[float, ...]  # share of each memory's bandwidth


@dataclass(frozen=True)
class Balance:
    """A machine in balance."""

    actors: tuple[Actor, ...]
    rates: tuple[float, ...]
    misses: tuple[tuple[float, ...], ...]  # by actor and cache, as a share of the accesses there
    degrees: tuple[tuple[int, ...], ...]  # by actor and cache: ways that it fills
    lines: Floats  # by actor, cache and way
    busy: tuple[float, ...]

    def truth(self) -> dict[str, dict[str, object]]:
        """Return what is true of each actor, for launch.json."""
        return {
            actor.name: {
                "steps_per_second": rate,
                "rate": rate * actor.model.units,
                "misses": list(misses),
                "occupancy_bytes": [float(part) for part in self.lines[number].sum(axis=1) * LINE],
            }
            for number, (actor, rate, misses) in enumerate(zip(self.actors, self.rates, self.misses, strict=True))
        }


def speeds(actors: Sequence[Actor], misses: Sequence[Sequence[float]], machine: MachineModel) -> Speeds:
    """Return the rates at which the waiting for memory is what they cause; one answer, because waiting slows down."""
    time = cpu_time(tuple((actor.cpus, actor.grant.quota) for actor in actors), machine)
    parts = [
        _Part.of(actor, missed, running, slowed, machine)
        for actor, missed, running, slowed in zip(actors, misses, time.shares, time.slowed, strict=True)
    ]
    queues = _queues(machine)
    busy = [0.0] * len(queues)
    latency = [queue.waiting(0.0) for queue in queues]
    used = [number for number in range(len(queues)) if any(part.moved[number] for part in parts)]
    for _ in range(SWEEPS if len(used) > 1 else 1):
        before = tuple(busy)
        for number in used:
            busy[number] = _load(parts, queues[number], latency, number)
            latency[number] = queues[number].waiting(busy[number])
        if all(abs(now - then) < EXACT for now, then in zip(busy, before, strict=True)):
            break
    return Speeds(tuple(part.rate(latency) for part in parts), tuple(busy[: machine.memories]))


@dataclass(frozen=True)
class _Queue:
    """What misses wait at: a memory, or a cache's own way to it."""

    bytes_per_second: float
    service: float  # seconds of a batch
    idle: float  # seconds that a miss takes where nobody else is

    def waiting(self, busy: float) -> float:
        """Seconds of a miss here: on its own, and in the queue before a server of batches."""
        return self.idle + self.service * busy / (2 * (1 - busy))


@lru_cache(maxsize=64)
def _queues(machine: MachineModel) -> tuple[_Queue, ...]:
    """The memories, and behind them in the list the caches' ways to them, where these are narrow."""
    batch = machine.burst * LINE
    memory = _Queue(machine.bytes_per_second, batch / machine.bytes_per_second, machine.miss * 1e-9)
    if machine.path is None:
        return (memory,) * machine.memories
    speed = machine.path.bytes_per_second
    return (memory,) * machine.memories + (_Queue(speed, batch / speed, 0.0),) * machine.domains


@dataclass(frozen=True)
class _Part:
    """What an actor's step takes, but for the waiting."""

    seconds: float
    waits: tuple[float, ...]  # one after another, by queue
    moved: tuple[float, ...]  # bytes, by queue
    at_least: float  # seconds, because it is throttled
    running: float  # share of the time in which it runs

    @classmethod
    def of(cls, actor: Actor, missed: Sequence[float], running: float, slowed: float, machine: MachineModel) -> "_Part":
        model = actor.model
        serial = model.accesses / model.at_once(actor.grant.prefetching)
        waits = [serial * weight * share for weight, share in zip(actor.weights, missed, strict=True)]
        moved = [most * share for most, share in zip(actor.traffic, missed, strict=True)]
        on_paths: list[float] = []
        if machine.path is not None:
            stuck = [serial * weight * (1 - share) for weight, share in zip(actor.weights, missed, strict=True)]
            on_paths = [late + machine.path.hits * hit for late, hit in zip(waits, stuck, strict=True)]
        return cls(
            model.compute * slowed + serial * machine.hit * 1e-9,
            (*_by_memory(waits, machine), *on_paths),
            (*_by_memory(moved, machine), *(moved if machine.path else ())),
            sum(moved) / actor.throttled,
            running,
        )

    def rate(self, latency: Sequence[float]) -> float:
        """Steps per second, on average."""
        waited = sum(count * late for count, late in zip(self.waits, latency, strict=True))
        return self.running / max(self.seconds + waited, self.at_least)


def _by_memory(amounts: Iterable[float], machine: MachineModel) -> tuple[float, ...]:
    """Add up what the caches have by the memory behind them."""
    sums = [0.0] * machine.memories
    for domain, amount in enumerate(amounts):
        sums[machine.memory_of(domain)] += amount
    return tuple(sums)


def _load(parts: Sequence[_Part], queue: _Queue, latency: Sequence[float], number: int) -> float:
    """Return the share of this queue's bandwidth in use: more use means longer waiting means less use."""
    tried = list(latency)

    def too_much(busy: float) -> float:
        tried[number] = queue.waiting(busy)
        return sum(part.rate(tried) * part.moved[number] for part in parts) / queue.bytes_per_second - busy

    return _zero_of_falling(too_much, 0.0, 1 - 1e-12)


def _zero_of_falling(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is zero: false position, with the end that stays put weighed down (Illinois)."""
    above, below, stayed = function(low), function(high), 0
    for _ in range(STEPS):
        middle = (low * below - high * above) / (below - above)
        value = function(middle)
        if abs(value) < EXACT or high - low < EXACT:
            return middle
        if value > 0:
            low, above = middle, value
            below, stayed = (below / 2, 1) if stayed == 1 else (below, 1)
        else:
            high, below = middle, value
            above, stayed = (above / 2, -1) if stayed == -1 else (above, -1)
    return (low + high) / 2


def balance(actors: Sequence[Actor], machine: MachineModel) -> Balance:
    """Everybody's rate, misses and place in the caches, in the long run."""
    misses = [[1.0] * machine.domains for _ in actors]
    rates = speeds(actors, misses, machine).rates
    for step in range(STEPS):
        shared = _shared(actors, rates, machine)
        misses = [[part[1] for part in row] for row in shared]
        now = speeds(actors, misses, machine)
        change = max((abs(math.log(b / a)) for a, b in zip(rates, now.rates, strict=True)), default=0.0)
        if change < CLOSE:
            return _balanced(actors, now, shared, machine)
        # Half a step on the log scale, and less where it swings, keeps two that press on each other from swinging.
        part = 0.5 if step < STEPS // 4 else 0.1
        rates = tuple(a * (b / a) ** part for a, b in zip(rates, now.rates, strict=True))
    names = ", ".join(actor.name for actor in actors)
    raise CastmatesError(f"the modelled machine finds no balance for {names}; change their models a little.")


def _shared(
    actors: Sequence[Actor], rates: Sequence[float], machine: MachineModel
) -> list[list[tuple[Held | None, float]]]:
    """Return, by actor and cache, what it holds (nothing where it never is) and the share of its accesses that miss."""
    table: list[list[tuple[Held | None, float]]] = [[(None, 0.0)] * machine.domains for _ in actors]
    for domain in range(machine.domains):
        users = _users(actors, rates, domain)
        held = share_out(list(users.values()), machine.way_lines)
        for number, part in zip(users, held, strict=True):
            table[number][domain] = (part, part.misses(users[number]))
    return table


def _users(actors: Sequence[Actor], rates: Sequence[float], domain: int) -> Mapping[int, User]:
    users = {}
    for number, (actor, rate) in enumerate(zip(actors, rates, strict=True)):
        if speed := rate * actor.model.accesses * actor.weights[domain]:
            users[number] = User(actor.uses[domain], speed, actor.grant.masks[domain])
    return users


def _balanced(
    actors: Sequence[Actor], now: Speeds, shared: Sequence[Sequence[tuple[Held | None, float]]], machine: MachineModel
) -> Balance:
    lines = np.zeros((len(actors), machine.domains, machine.ways))
    for domain in range(machine.domains):
        users = _users(actors, now.rates, domain)
        held = [own for number in users if (own := shared[number][domain][0]) is not None]
        lines[list(users), domain] = spread(list(users.values()), held, machine.way_lines, machine.ways)
    return Balance(
        actors=tuple(actors),
        rates=now.rates,
        misses=tuple(tuple(part[1] for part in row) for row in shared),
        degrees=tuple(tuple(part[0].degrees if part[0] else 1 for part in row) for row in shared),
        lines=lines,
        busy=now.busy,
    )


# What processes get of their CPUs' time, and what busy cores and siblings cost them: quotas, shared CPUs, SMT.

Taker = tuple[tuple[int, ...], float]  # the CPUs of a process, and the share of their time that it may take at most


@dataclass(frozen=True)
class CpuTime:
    """What each of some processes comes to."""

    shares: tuple[float, ...]  # of the time of its CPUs, on average
    slowed: tuple[float, ...]  # the factor on the time of its computing


@lru_cache(maxsize=1024)
def cpu_time(takers: tuple[Taker, ...], machine: MachineModel) -> CpuTime:
    """Divide each CPU evenly among those on it; what one may not take for its quota is left to the others."""
    given: dict[tuple[int, int], float] = {}
    busy: dict[int, float] = {}
    for cpu in sorted({cpu for cpus, _ in takers for cpu in cpus}):
        there = sorted((quota, number) for number, (cpus, quota) in enumerate(takers) if cpu in cpus)
        left = 1.0
        for place, (quota, number) in enumerate(there):
            given[number, cpu] = min(quota, left / (len(there) - place))
            left -= given[number, cpu]
        busy[cpu] = sum(given[number, cpu] for _, number in there)
    shares = [sum(given[number, cpu] for cpu in cpus) / len(cpus) for number, (cpus, _) in enumerate(takers)]
    return CpuTime(tuple(shares), tuple(_slowed(cpus, busy, machine) for cpus, _ in takers))


def _slowed(cpus: Sequence[int], busy: Mapping[int, float], machine: MachineModel) -> float:
    beside = sum(busy.get(sibling, 0.0) for sibling in _siblings(cpus, machine)) / len(cpus)
    return (1 + machine.turbo * _further_cores(cpus, busy, machine)) * (1 + machine.sibling * beside)


def _siblings(cpus: Sequence[int], machine: MachineModel) -> list[int]:
    return [(cpu + machine.all_cores) % (2 * machine.all_cores) for cpu in cpus] if machine.threads > 1 else []


def _further_cores(cpus: Sequence[int], busy: Mapping[int, float], machine: MachineModel) -> float:
    """How many cores are busy besides one, while a process runs on these CPUs: on its sockets, where there are some."""
    near = {machine.memory_of(machine.domain_of(cpu)) for cpu in cpus}
    own = {machine.core_of(cpu) for cpu in cpus}
    idle: dict[int, float] = {}
    for cpu, share in busy.items():
        core = machine.core_of(cpu)
        if core not in own and (machine.sockets is None or machine.memory_of(machine.domain_of(cpu)) in near):
            idle[core] = idle.get(core, 1.0) * (1.0 - share)
    return sum(1.0 - each for each in idle.values()) + len(own) - 1
