"""The modelled machine's cache allocation and monitoring: the real driver, over a resctrl in memory that it feeds."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic_ns

from castmates.protocols import Collector, Held, Sample
from castmates.rdt.choose import NoMonitor
from castmates.rdt.fake.group import Group
from castmates.rdt.fake.machine import held_mask
from castmates.rdt.fake.resctrl import FakeResctrl
from castmates.rdt.fake.shape import Shape, Throttle
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.foreign import Place, parse_place
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.monitor import ResctrlMonitor
from castmates.rdt.resctrl.mounting import Mounted
from castmates.runner.modelled.balance import Grant
from castmates.runner.modelled.power import PowerReader
from castmates.runner.modelled.world import NANO, World
from castmates.runner.rounds.hardware import SOURCE as MASKS
from castmates.runner.rounds.hardware import Hardware, MaskWitness
from castmates.runner.rounds.ledger_load import Surroundings
from castmates.study.modelled import EVENTS, MachineModel
from castmates.study.spec import Share

QUANTUM = 1024  # bytes that monitors count in
POINT = Path("/modelled/resctrl")  # nothing is there; entries would name it, and a fake's journal writes none


def shape_of(machine: MachineModel) -> Shape:
    """Return the machine as its kernel sees it."""
    classes = machine.groups + 1
    return Shape(
        domains={number: tuple(machine.around(number)) for number in range(machine.domains)},
        cache_bytes=machine.ways * machine.way_bytes,
        ways=machine.ways,
        shareable=machine.shareable,
        least_bits=machine.least_ways,
        closids=classes,
        cdp=False,
        throttle=Throttle(closids=classes),
        events=EVENTS,
        rmids=8 * classes,
        scale=QUANTUM,
        tied=machine.joined,
    )


class Feed:
    """Shows the kernel in memory what lies in the modelled caches, and what went through them."""

    def __init__(self, world: World, pids: Mapping[str, int]) -> None:
        self._world, self._pids = world, pids
        self.kernel: FakeResctrl | None = None
        self._counted: dict[str, list[str]] = {}  # group -> whose events it counts; found anew with every grant

    def occupancy(self, group: Group, domain: int) -> float:
        """Return the bytes that lie in a domain's cache for a group."""
        return sum(self._world.occupancy(name, domain) for name in self._within(group))

    def traffic(self, group: Group, domain: int, local: bool) -> float:  # noqa: ARG002 (the kernel asks so)
        """Return the bytes that a group has moved through a domain, local or all: no memory is far."""
        return sum(self._world.moved(name, domain) for name in self._within(group))

    def grants(self) -> dict[str, Grant]:
        """Return what the kernel lets everybody take."""
        self._counted.clear()
        grants = {}
        for name, pid in self._pids.items():
            kernel, domains = self._kernel, range(self._world.machine.domains)
            group, _ = kernel.ruling(pid, self._world.processes[name].cpus[0])
            throttle = min(kernel.bandwidth(group, domain) for domain in domains) / 100
            grants[name] = Grant(tuple(kernel.mask(group, domain) for domain in domains), throttle)
        return grants

    @property
    def _kernel(self) -> FakeResctrl:
        assert self.kernel is not None
        return self.kernel

    def _within(self, group: Group) -> list[str]:
        if self.kernel is None or group.removed:
            return []
        if not self._counted:
            for name, pid in self._pids.items():
                _, counted = self.kernel.ruling(pid, self._world.processes[name].cpus[0])
                self._counted.setdefault(counted.path, []).append(name)
        return self._counted.get(group.path, [])


class KernelsTasks:
    """The threads of the modelled machine."""

    shows_places = True

    def __init__(self, kernel: FakeResctrl) -> None:
        self._kernel = kernel

    def threads(self, held: Collection[Held]) -> Mapping[int, list[int]]:
        """List the threads of each process: it is the only one."""
        return {each.pid: self._kernel.processes.threads(each.pid) for each in held}

    def place(self, tid: int) -> Place | None:
        """Return where a thread is."""
        return parse_place(self._kernel.proc(f"{tid}/cpu_resctrl_groups"))


class ModelledMonitor(ResctrlMonitor):
    """The real one, but that it looks when the modelled clock rings rather than in a separate thread."""

    def __init__(self, world: World, mounted: Mounted, rate: float) -> None:
        super().__init__(mounted, rate, clock=lambda: world.now_ns)
        self._world = world
        self._samples: list[Sample] = []

    def start(self) -> None:
        """Begin a series."""
        for series in self._series:
            series.restart()
        self._samples = []
        self._ring()

    def stop(self) -> list[Sample]:
        """End the series and return it."""
        self._world.alarm = None
        samples, self._samples = [*self._samples, *self._look()], []
        return samples

    def _ring(self) -> None:
        self._samples += self._look()
        self._world.alarm = (self._world.now_ns + int(NANO / self.rate), self._ring)


@dataclass(frozen=True)
class ModelledHardware(Hardware):
    """The hardware side of a modelled launch."""

    clock: Callable[[], int] = monotonic_ns
    granted: Callable[[], dict[str, Grant]] = dict  # what everybody may take now

    def close_window(self) -> list[Sample]:
        """Return all that was read since the opening edge; the masks too are proved at the modelled time."""
        now, samples = self.clock(), super().close_window()
        return [replace(sample, t_ns=now) if sample.source == MASKS else sample for sample in samples]


def modelled_hardware(
    world: World, pids: Mapping[str, int], rate: float, beyond_site: bool = False
) -> ModelledHardware:
    """Mount a resctrl in memory for these processes, with the real driver on it, and `rate` looks a second."""
    feed = Feed(world, pids)
    kernel = feed.kernel = FakeResctrl(shape_of(world.machine), source=feed)
    for pid in pids.values():
        kernel.processes.fork(pid=pid)
    journal = ResctrlJournal(None, POINT, "a modelled launch")
    read_register = kernel.msr if world.machine.registers else None
    mounted = Mounted(kernel, KernelsTasks(kernel), journal, _domain_of(kernel), read_register=read_register)
    allocator = ResctrlAllocator(mounted, beyond_site)
    monitor = ModelledMonitor(world, mounted, rate) if rate else NoMonitor()
    witness = MaskWitness(allocator)
    beside = Surroundings()
    packages, machine = world.packages, world.machine
    power = [] if packages is None else [PowerReader(world, packages, machine)]
    collectors: list[Collector] = [witness, *power]
    return ModelledHardware(allocator, monitor, collectors, beside, witness, (), lambda: world.now_ns, feed.grants)


def _domain_of(kernel: FakeResctrl) -> dict[int, int]:
    return {cpu: number for number, cpus in kernel.shape.domains.items() for cpu in cpus}


def grant_of(share: Share, cpus: Collection[int], machine: MachineModel) -> Grant:
    """Return what a share of a plan comes to on this machine: its mask holds on the caches of these CPUs."""
    own = {machine.domain_of(cpu) for cpu in cpus}
    mask = machine.full if share.ways is None else held_mask(shape_of(machine), share.ways)
    masks = tuple(mask if number in own else machine.full for number in range(machine.domains))
    throttle = 1.0 if share.bandwidth is None else share.bandwidth / 100
    return Grant(masks, throttle, quota_of(share), share.prefetchers != "off")


def quota_of(share: Share) -> float:
    """Return the share of its CPUs' time that a member may take."""
    return 1.0 if share.quota is None else share.quota / 100
