"""The modelled machine and its workloads as a study writes them, and what planning sees of them."""

from functools import cached_property
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
)

from castmates.study import masks
from castmates.study.cache import Bandwidth, Cache
from castmates.study.placement.layout import Cpu, Layout
from castmates.study.written import Amount, Percentage, Written, bytes_of

LINE = 64  # bytes
EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")


def _mask_text(value: object) -> object:
    """A mask without quotes is a number to YAML, and no hexadecimal one where it begins with a digit."""
    if not isinstance(value, str):
        raise ValueError(MASK_EXPECTED)
    return value


MASK_EXPECTED = 'a way mask in hexadecimal digits and in quotes, such as "0x00f"'
MaskText = Annotated[str, BeforeValidator(_mask_text)]


def _some(size: str) -> str:
    if not bytes_of(size):
        raise ValueError("more than nothing")
    return size


Rate = Annotated[Amount, AfterValidator(_some)]  # bytes in a second


class WorkingSet(Written):
    """Memory that a workload comes back to, every line of it equally often."""

    size: Amount = Field(description="how large it is, such as 6 MiB")
    share: Percentage = Field(description="of the workload's accesses that go there")

    @property
    def lines(self) -> float:
        """Its size in cache lines."""
        return bytes_of(self.size) / LINE


class WorkloadModel(Written):
    """How a workload of a modelled study uses its cores, the last-level cache and memory."""

    compute: float = Field(gt=0, description="seconds of a step that it would take if every access cost nothing")
    accesses: int = Field(default=0, ge=0, description="accesses to the last-level cache in a step")
    reuse: list[WorkingSet] = Field(
        default_factory=list,
        max_length=8,
        description="the memory that it comes back to; accesses that go nowhere of it always miss",
    )
    units: int = Field(default=1, ge=1, description="units of progress that a step reports")
    parallel: float = Field(default=4.0, ge=1, le=1000, description="accesses that are under way at the same time")
    prefetched: Percentage = Field(
        default=0.0,
        description="of the accesses under way at the same time, those that are begun ahead by prefetchers",
    )
    writes: Percentage = Field(default=0.0, description="misses that also write a line back, as a share of all misses")

    @field_validator("reuse")
    @classmethod
    def _shares_of_one_whole(cls, sets: list[WorkingSet]) -> list[WorkingSet]:
        if sum(each.share for each in sets) > 1 + 1e-9:
            raise ValueError("working sets whose shares add up to 100 % at most")
        return sets

    def at_once(self, prefetching: bool) -> float:
        """How many accesses are under way at the same time; one at least is waited for."""
        return self.parallel if prefetching else max(1.0, self.parallel * (1 - self.prefetched))

    @property
    def streaming(self) -> float:
        """The share of accesses to lines that are never used again."""
        return max(0.0, 1.0 - sum(each.share for each in self.reuse))


class Noise(Written):
    """How far rates of a modelled machine scatter; standard deviations of their logarithm, so that 1% is a factor."""

    window: Percentage = Field(default=0.01, description="of each member's wandering, whatever runs beside it")
    effect: Percentage = Field(default=0.0, description="of further wandering while others run beside it")
    memory: float = Field(
        default=1.0, gt=0, le=3600, description="seconds in which a rate forgets, but for 37 %, where it had wandered"
    )
    scene: Percentage = Field(default=0.005, description="between launches, of what each scene does to each member")
    launch: Percentage = Field(default=0.02, description="between launches, the same in all scenes of a member")
    drift: Percentage = Field(default=0.002, description="of the whole machine's random walk, after a minute")


class PowerModel(Written):
    """A limit on the power that each package of a modelled machine draws on average, and what it does to the clock."""

    idle: float = Field(default=40.0, ge=0, le=10_000, description="watts of a package in which nothing runs")
    core: float = Field(default=20.0, gt=0, le=10_000, description="watts more of each busy core at the full clock")
    budget: float = Field(default=100.0, gt=0, le=100_000, description="watts that a package may draw on average")
    memory: float = Field(
        default=3.0, gt=0, le=3600, description="seconds over which it averages: what was drawn earlier counts 37 %"
    )
    clock: float = Field(default=3.0, gt=0, le=100, description="GHz while the budget is not used up")

    @field_validator("budget")
    @classmethod
    def _more_than_idle(cls, budget: float, info: ValidationInfo) -> float:
        if budget <= info.data.get("idle", 0.0):
            raise ValueError("more watts than 'idle', which are drawn in any case")
        return budget

    def drawn(self, busy: int) -> float:
        """What a package with so many busy cores would draw at the full clock."""
        return self.idle + busy * self.core

    def clock_at(self, average: float) -> float:
        """The share of the full clock that is left after so many watts on average; a core draws its clock cubed."""
        return (
            min(1.0, ((self.budget - self.idle) / (average - self.idle)) ** (1 / 3)) if average > self.budget else 1.0
        )


class PathModel(Written):
    """The way of one last-level cache to memory, which all around it share: a core complex's own, on a chiplet."""

    bandwidth: Rate = Field(description="what it moves in a second")
    hits: Percentage = Field(default=0.0, description="of a miss's wait for it, what a hit waits too")

    @cached_property
    def bytes_per_second(self) -> float:
        """What it moves."""
        return float(bytes_of(self.bandwidth))


class Throttled(Written):
    """What cores around one cache read under a step of the throttle, as `castmates doctor --verify-rdt` measures it."""

    cores: int = Field(ge=1, le=128, description="so many of them, at the same time")
    step: int = Field(ge=1, le=100, description="per cent; 100 is no throttle")
    rate: Rate = Field(description="in a second, all together")


class MachineModel(Written):
    """A modelled machine: last-level caches with way masks, each with its own memory behind it."""

    domains: int = Field(default=1, ge=1, le=16, description="last-level caches")
    cores: int = Field(default=8, ge=2, le=128, description="around each of them")
    ways: int = Field(default=12, ge=1, le=32, description="ways of each cache: bits of a mask")
    way_size: Amount = Field(default="1.5 MiB", description="what one way holds")
    least_ways: int = Field(default=1, ge=1, le=32, description="bits that a mask must have")
    groups: int = Field(default=15, ge=0, le=127, description="groups besides the default one")
    bandwidth: Rate = Field(default="24 GB", description="what each memory moves in a second")
    core_bandwidth: Rate = Field(
        default="12 GB",
        description="what a throttle of 100 % would leave each core in a second: a throttle limits the rate of cores, "
        "so that many throttled cores may still move all that memory gives",
    )
    throttles: tuple[Throttled, ...] = Field(
        default=(),
        strict=False,
        description="in place of core_bandwidth: what so many cores were measured to move under each step",
    )
    path: PathModel | None = Field(
        default=None, description="each last-level cache's own way to memory; without one, misses queue at memory only"
    )
    streams_stay: Percentage = Field(
        default=1.0,
        description="of the lines that are used once, those that take a place in the cache: caches that protect what "
        "is used again let the others pass",
    )
    hit: float = Field(default=20.0, gt=0, description="nanoseconds of an access that hits")
    miss: float = Field(default=80.0, gt=0, description="nanoseconds more where it misses and memory is idle")
    burst: float = Field(default=16.0, ge=1, le=1000, description="lines that come to memory at once")
    turbo: Percentage = Field(default=0.005, description="time that each further busy core adds to computing")
    threads: int = Field(default=1, ge=1, le=2, description="CPUs of each core")
    sibling: Percentage = Field(default=0.5, description="time that a busy sibling adds to computing")
    sockets: int | None = Field(
        default=None,
        ge=1,
        le=16,
        description="sockets, each with one memory for its last-level caches; if left out, each cache is one",
    )
    noise: Noise = Noise()
    io_ways: MaskText = Field(default="0", description='mask of the ways that I/O fills too, such as "0x600"')
    tied: bool = Field(default=False, description="whether a mask with one of these ways has all of them")
    registers: bool = Field(default=False, description="whether it can be read what the processor makes of masks")
    power: PowerModel | None = Field(
        default=None, description="a limit on average power; without one, the clock is always the full one"
    )

    @field_validator("throttles")
    @classmethod
    def _curves_from_100(cls, points: tuple[Throttled, ...]) -> tuple[Throttled, ...]:
        steps: dict[int, list[int]] = {}
        for point in points:
            steps.setdefault(point.cores, []).append(point.step)
        if any(100 not in each or len(set(each)) < len(each) for each in steps.values()):
            raise ValueError("one rate of each step for each number of cores, that of 100 included")
        return points

    @field_validator("io_ways")
    @classmethod
    def _a_mask_of_its_ways(cls, written: str, info: ValidationInfo) -> str:
        if masks.parse(written) >> info.data.get("ways", 32):
            raise ValueError("a mask of ways that the cache has")
        return written

    @field_validator("least_ways")
    @classmethod
    def _no_more_than_there_are(cls, least: int, info: ValidationInfo) -> int:
        if least > info.data.get("ways", least):
            raise ValueError("no more than there are 'ways'")
        return least

    @field_validator("sockets")
    @classmethod
    def _whole_caches(cls, sockets: int | None, info: ValidationInfo) -> int | None:
        if sockets is not None and info.data.get("domains", sockets) % sockets:
            raise ValueError("a number by which the last-level caches ('domains') can be divided")
        return sockets

    @field_validator("way_size")
    @classmethod
    def _some_lines(cls, size: str) -> str:
        if bytes_of(size) < 1024 * LINE:
            raise ValueError("at least 64 KiB")
        return size

    @cached_property
    def way_bytes(self) -> int:
        """What one way holds."""
        return bytes_of(self.way_size)

    @property
    def way_lines(self) -> float:
        """What one way holds, in cache lines."""
        return self.way_bytes / LINE

    @cached_property
    def bytes_per_second(self) -> float:
        """What one memory moves."""
        return float(bytes_of(self.bandwidth))

    @cached_property
    def core_bytes_per_second(self) -> float:
        """What each core of a throttled group may move, before the throttle."""
        return float(bytes_of(self.core_bandwidth))

    @cached_property
    def throttle_curves(self) -> dict[int, dict[int, float]]:
        """Bytes a second by number of cores and step, both from the least on; empty where none was measured."""
        points = sorted(self.throttles, key=lambda point: (point.cores, point.step))
        curves: dict[int, dict[int, float]] = {}
        for point in points:
            curves.setdefault(point.cores, {})[point.step] = float(bytes_of(point.rate))
        return curves

    @cached_property
    def full(self) -> int:
        """The mask of all ways."""
        return (1 << self.ways) - 1

    @cached_property
    def shareable(self) -> int:
        """The mask of the ways that I/O fills too."""
        return masks.parse(self.io_ways)

    @cached_property
    def joined(self) -> int:
        """The mask of the ways that are given together only."""
        return self.shareable if self.tied else 0

    @property
    def all_cores(self) -> int:
        """The cores of the whole machine; first each has one CPU, then each its second one."""
        return self.domains * self.cores

    @property
    def memories(self) -> int:
        """How many memories there are, one of each socket."""
        return self.sockets or self.domains

    def around(self, domain: int) -> tuple[int, ...]:
        """The CPUs around this cache."""
        cores = range(domain * self.cores, (domain + 1) * self.cores)
        return tuple(thread * self.all_cores + core for thread in range(self.threads) for core in cores)

    def core_of(self, cpu: int) -> int:
        """The core of this CPU."""
        return cpu % self.all_cores

    def domain_of(self, cpu: int) -> int:
        """The cache around which this CPU is."""
        return self.core_of(cpu) // self.cores

    def memory_of(self, domain: int) -> int:
        """The memory behind this cache."""
        return domain * self.memories // self.domains


def cache_of(machine: MachineModel) -> Cache:
    """What can be shared out on this machine."""
    return Cache(
        domains=tuple(range(machine.domains)),
        ways=machine.ways,
        way_bytes=machine.way_bytes,
        least_ways=machine.least_ways,
        sparse=False,
        shareable=machine.shareable,
        groups=machine.groups,
        cdp=False,
        bandwidth=Bandwidth(unit="%", least=10, step=10, most=100),
        events=EVENTS,
        monitored_groups=8 * (machine.groups + 1),
    )


def layout_of(machine: MachineModel) -> Layout:
    """Its CPUs, numbered from cache to cache, the siblings after all cores; each socket is a memory node."""
    everyone = range(machine.threads * machine.all_cores)
    memories = range(machine.memories)

    def cpu_of(cpu: int) -> Cpu:
        domain = machine.domain_of(cpu)
        memory = machine.memory_of(domain)
        return Cpu(id=cpu, core=machine.core_of(cpu), llc=domain, node=memory, package=memory)

    return Layout(
        tuple(map(cpu_of, everyone)),
        memory=tuple(memories),
        distances={(a, b): 10 if a == b else 20 for a in memories for b in memories},
    )
