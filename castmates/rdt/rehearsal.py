"""The driver of a rehearsal: the real allocator and monitor, on a resctrl in memory, for programs that run here.

Ways, masks, classes, ids, throttles and events are those of another machine; caches and CPUs are those of this one.
What is written there changes nothing, so masks have no effect on time, and every count is `Unavailable`: none is made
up.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.linux.host import processor
from castmates.machine.capture.capture import opened
from castmates.machine.resctrl_state import options_of
from castmates.machine.topology import caches_of_level, read_topology
from castmates.protocols import Allocator, Held, Monitor, Say
from castmates.rdt.driver import Driver
from castmates.rdt.fake.kernel import Kernel
from castmates.rdt.fake.layout import FOLDER
from castmates.rdt.fake.recorded import replay
from castmates.rdt.fake.resctrl import FakeResctrl
from castmates.rdt.fake.shape import Shape
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.capabilities import capabilities, find_mount, read_cache
from castmates.rdt.resctrl.foreign import KernelTasks, Place, parse_place
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.monitor import ResctrlMonitor
from castmates.rdt.resctrl.mounting import Mounted
from castmates.study.cache import Bandwidth, Cache
from castmates.study.spec import Share

POINT = Path("/rehearsed/resctrl")  # nothing is there
ABOUT = "rehearsed: a resctrl in memory, like that of {}; masks and throttles change nothing, and nothing is counted"


@dataclass(frozen=True)
class Machine:
    """The machine that is rehearsed."""

    shape: Shape
    kernel: Kernel
    options: tuple[str, ...]  # of its mount
    family: int
    bandwidth: Bandwidth | None  # with what is known of its throttles


@cache
def machine(named: str) -> Machine:
    """Read it from its capture."""
    file = shipped.machine(named)
    with opened(file) as root:
        there, mount, found = replay(root), find_mount(root), read_cache(root)
        if mount is None or found is None or not there.shape.allocates:
            raise CastmatesError(f"{file}: this machine can share nothing out, so there is nothing to rehearse.")
        options, family = options_of(mount), processor(root).get("family", 0)
        return Machine(there.shape, there.kernel, tuple(options), family, found.beyond_site.bandwidth)


class SilentResctrl(FakeResctrl):
    """A resctrl in memory that counts nothing."""

    def mount(self, options: str = "") -> None:
        """Mount it; what is there counts nothing."""
        super().mount(options)
        self._silence()

    def make(self, path: str, mode: int = FOLDER) -> None:
        """Make a group, which counts nothing."""
        super().make(path, mode)
        self._silence()

    def _silence(self) -> None:
        for group in self.groups:
            for event in self.shape.events:
                self.fail(group.path, event, "Unavailable")


class MirroredTasks:
    """The threads of this machine, each of which the kernel in memory knows from when it is first seen."""

    shows_places = True

    def __init__(self, kernel: FakeResctrl) -> None:
        self._kernel, self._real = kernel, KernelTasks()
        self._known: dict[int, set[int]] = {}  # by process, with those that came from it

    def threads(self, held: Collection[Held]) -> Mapping[int, list[int]]:
        """List the threads of each process; new ones are where the process is, as the kernel has it."""
        found, processes = self._real.threads(held), self._kernel.processes
        for pid, tids in found.items():  # who has ended first: a number may be another's by now
            ended = self._known.setdefault(pid, set()) - {pid, *tids}
            for tid in ended:
                processes.exit(tid)
            self._known[pid] -= ended
        for pid, tids in found.items():
            for tid in sorted({pid, *tids} - self._known[pid], key=lambda tid: tid != pid):
                processes.fork(pid=tid) if tid == pid else processes.clone(pid, tid)
            self._known[pid] |= {pid, *tids}
        return found

    def place(self, tid: int) -> Place | None:
        """Return where a thread is; None where it is not known, or has ended."""
        try:
            return parse_place(self._kernel.proc(f"{tid}/cpu_resctrl_groups"))
        except FileNotFoundError:
            return None


class RehearsedAllocator(ResctrlAllocator):
    """The real one, which says that nothing obeys it."""

    name = "rehearsed"

    def __init__(self, mounted: Mounted, named: str) -> None:
        super().__init__(mounted)
        self._named = named

    def about(self) -> dict[str, str]:
        """Describe what is driven, and that it is in memory."""
        return {**super().about(), "allocation": ABOUT.format(self._named)}

    def apply(self, shares: Sequence[Share]) -> bool:
        """Give out these shares in memory; nobody loses a way to them."""
        super().apply(shares)
        return False


class RehearsedMonitor(ResctrlMonitor):
    """The real one, which says that nothing is counted."""

    name = "rehearsed"

    def __init__(self, mounted: Mounted, named: str, rate: float) -> None:
        super().__init__(mounted, rate)
        self._named = named

    def about(self) -> dict[str, str]:
        """Describe what is read, and that it is in memory."""
        return {**super().about(), "monitoring": ABOUT.format(self._named)}


def driver(named: str) -> Driver:
    """The driver that rehearses this machine; its allocator and its monitor share one kernel."""
    there = machine(named)
    kernel = SilentResctrl(_on_this_machine(there.shape), there.kernel, options=",".join(there.options))
    tasks = MirroredTasks(kernel)

    def mounted(say: Say) -> Mounted:
        journal = ResctrlJournal(None, POINT, "a rehearsal")
        domain_of = {cpu: number for number, cpus in kernel.shape.domains.items() for cpu in cpus}
        return Mounted(kernel, tasks, journal, domain_of, there.options, say, family=there.family)

    def shareable() -> Cache:
        found = capabilities(kernel, " ".join(there.options), family=there.family)
        return found.model_copy(update={"bandwidth": there.bandwidth})

    def allocator(say: Say) -> Allocator:
        return RehearsedAllocator(mounted(say), named)

    def monitor(rate: float, say: Say) -> Monitor:
        return RehearsedMonitor(mounted(say), named, rate)

    return Driver(shareable, lambda: "", allocator, monitor)


def _on_this_machine(shape: Shape) -> Shape:
    """The shape with the caches of this machine."""
    domains = {llc.id: llc.cpus for llc in read_topology().llcs}
    if not domains:
        raise CastmatesError("this machine shows no last-level cache, so no other machine can be rehearsed on it.")
    second = shape.second and replace(
        shape.second, caches={each.id: each.cpus for each in caches_of_level(2)} or domains
    )
    return replace(shape, domains=domains, nodes={}, second=second)
