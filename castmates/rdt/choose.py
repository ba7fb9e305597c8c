"""Which allocator and which monitor this machine allows."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from castmates import plugins
from castmates.errors import CastmatesError
from castmates.linux.host import memory_bytes, processor
from castmates.linux.kernel_files import read_text
from castmates.linux.msr import read_msr
from castmates.machine.capture.contents import FROM_CPUID, ORIGIN
from castmates.machine.journal import Journal
from castmates.machine.lock import print_progress
from castmates.machine.probes import usable_memory
from castmates.machine.resctrl_state import options_of
from castmates.machine.topology import Topology, read_topology
from castmates.protocols import Allocator, Held, Monitor, Sample, Say
from castmates.rdt.driver import Driver as Driver
from castmates.rdt.pqos.monitor import PqosMonitor
from castmates.rdt.pqos.session import PqosAllocator, open_session
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl.allocator import ResctrlAllocator
from castmates.rdt.resctrl.capabilities import capabilities, find_mount, read_cache
from castmates.rdt.resctrl.foreign import KernelTasks
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.monitor import RATE, ResctrlMonitor
from castmates.rdt.resctrl.mounting import Lease, Mounted, hopeless, lease
from castmates.rdt.resctrl.tree import KernelTree
from castmates.shipped import MACHINES
from castmates.study.cache import Cache
from castmates.study.cpus import format_cpu_list
from castmates.study.machine_keys import LastLevel, NodeFacts
from castmates.study.rehearsing import machine_of
from castmates.study.spec import Share

# Allocators that plug-ins add: a study names one by `cache.driver`, as it names resctrl or pqos.

OURS = ("resctrl", "pqos")
NO_SHARES = "none: the study does not partition the cache"


def driver(name: str) -> Driver:
    """The driver of this name; an unknown name is an error in one sentence."""
    if rehearsed := machine_of(name):
        from castmates.rdt import rehearsal  # few studies have one

        return rehearsal.driver(rehearsed)
    found = plugins.added("allocators", _wrong, taken=OURS)
    if name not in found:
        from castmates.study.reading import did_you_mean  # yaml: every launch loads this module, and none comes here

        known = [*OURS, *found]
        raise CastmatesError(f"'cache.driver' is '{name}'{did_you_mean(name, known)} (there are: {', '.join(known)}).")
    return cast(Driver, found[name])


def _wrong(thing: object) -> str:
    return "" if isinstance(thing, Driver) else f"it is a {type(thing).__name__}, and no castmates.rdt.choose.Driver"


@dataclass(frozen=True)
class CacheRequest:
    """What a launch wants of the cache."""

    shares: bool = False  # some scene gives out shares
    cdp: bool = False  # with separate masks for code
    rate: float = RATE  # readings a second; 0 for none
    driver: str = "resctrl"  # resctrl, pqos, or the name of a plug-in's
    beyond_site: bool = False  # members leave the class of service in which they are found
    purpose: str = "a study"


def refuse_hopeless(request: CacheRequest) -> None:
    """Refuse shares that could not be given out, after a restart for instance, before anything is launched for them."""
    if not request.shares:
        return
    if request.driver == "pqos":
        open_session(request.purpose)  # refuses by itself, and touches nothing yet
        return
    if why := _hopeless_resctrl() if request.driver in OURS else driver(request.driver).refusal():
        raise CastmatesError(f"no partition can be applied: {why}")


def choose(request: CacheRequest, say: Say = print_progress) -> tuple[Allocator, Monitor]:
    """Take the allocator and the monitor for a launch."""
    silent = NoMonitor("none: the study asks for no readings of the cache")
    if request.driver == "pqos" and request.shares:
        session = open_session(request.purpose, say)
        monitor = PqosMonitor(session, request.rate) if request.rate else silent
        return PqosAllocator(session, KernelTasks(), say, request.beyond_site), monitor
    if machine_of(request.driver) or (request.driver not in OURS and request.shares):
        return _of_a_plugin(driver(request.driver), request, say)
    allocator = choose_allocator(request.shares, request.cdp, request.purpose, say, request.beyond_site)
    return allocator, choose_monitor(request.rate, request.purpose, say) if request.rate else silent


def _of_a_plugin(chosen: Driver, request: CacheRequest, say: Say) -> tuple[Allocator, Monitor]:
    allocator = chosen.allocator(say) if request.shares else NoAllocator(NO_SHARES)
    if not request.rate:
        return allocator, NoMonitor("none: the study asks for no readings of the cache")
    monitor = chosen.monitor(request.rate, say) if chosen.monitor else None
    return allocator, monitor or choose_monitor(request.rate, request.purpose, say)


def choose_allocator(
    shares: bool = True,
    cdp: bool = False,
    purpose: str = "a study",
    say: Say = print_progress,
    beyond_site: bool = False,
) -> Allocator:
    """Take resctrl where the study gives out shares and the machine lets us; without shares it is left untouched."""
    if not shares:
        return NoAllocator(NO_SHARES)
    try:
        held = lease(cdp, purpose)
    except CastmatesError as error:
        return NoAllocator(str(error))
    tree = KernelTree(held.point)
    try:
        why = _no_shares(tree, capabilities(tree, " ".join(held.options)))
        if not why:
            return ResctrlAllocator(_mounted(held, purpose, say), beyond_site)
    except OSError as error:
        why = _unreadable(tree, error)
    return NoAllocator(_let_go(held, why, say))


def choose_monitor(rate: float = RATE, purpose: str = "a study", say: Say = print_progress) -> Monitor:
    """Take resctrl where the machine can count and lets us."""
    try:
        held = lease(purpose=purpose)
    except CastmatesError as error:
        return NoMonitor(str(error))
    tree = KernelTree(held.point)
    try:
        why = "" if capabilities(tree, " ".join(held.options)).events else "resctrl counts nothing on this processor"
    except OSError as error:
        why = _unreadable(tree, error)
    if why:
        return NoMonitor(_let_go(held, why, say))
    return ResctrlMonitor(_mounted(held, purpose, say), rate)


def _hopeless_resctrl() -> str:
    """Explain why resctrl can share nothing out for this user, or ""."""
    mount = find_mount()
    if mount is None:
        return hopeless()
    tree = KernelTree(Path(mount.point))
    try:
        return _no_shares(tree, capabilities(tree, " ".join(options_of(mount))))
    except OSError as error:
        return _unreadable(tree, error)


def _no_shares(tree: KernelTree, cache: Cache) -> str:
    """Explain why nothing can be shared out, or ""."""
    if not cache.ways and cache.bandwidth is None:
        if cache.events:
            return "this processor only monitors its last-level cache and cannot partition it"
        return "resctrl controls neither a last-level cache nor memory bandwidth on this processor"
    if not os.access(tree.root, os.W_OK) and not groups.delegated(tree, os.geteuid()):
        return (
            f"{tree.root} may not be written by this user, and root gave them no empty groups: run as root, or once"
            " `sudo castmates doctor --grant`; a container needs it mounted for writing"
        )
    return ""


def _unreadable(tree: KernelTree, error: OSError) -> str:
    return f"{tree.root} cannot be read ({error.strerror}): somebody has unmounted it, or it is closed to this user"


def _let_go(held: Lease, why: str, say: Say) -> str:
    for sentence in held.release():
        say(sentence)
    return why


def _mounted(held: Lease, purpose: str, say: Say) -> Mounted:
    """Return what we hold, with one journal for the mount and for what lies below it, so that the mount goes last."""
    journal = ResctrlJournal(held.journal or Journal(), held.point, purpose)
    domain_of = {cpu.id: cpu.llc for cpu in read_topology(Path("/")).cpus if cpu.llc is not None}
    family, tree = processor().get("family", 0), KernelTree(held.point)
    return Mounted(tree, KernelTasks(), journal, domain_of, held.options, say, held.release, read_msr, family)


# Allocation and monitoring on a machine that has neither: the study goes on with what is left, and reports so.


class NoAllocator:
    """Partitions nothing: gives everything to everybody, and nothing else."""

    name = "none"

    def __init__(self, why: str = "none: this machine gives no cache allocation") -> None:
        self.why = why

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Make no groups."""

    def apply(self, shares: Sequence[Share]) -> bool:
        """Refuse all shares."""
        if shares:
            raise CastmatesError(
                f"no partition can be applied ({self.why}); run the study on a machine with resctrl (see castmates"
                " doctor), or take its partitions out."
            )
        return False

    def read_back(self) -> dict[str, str]:
        """Read no schemata."""
        return {}

    def misplaced(self) -> list[str]:
        """Look for nothing."""
        return []

    def restore(self) -> None:
        """Put nothing back, because nothing was changed."""

    def about(self) -> dict[str, str]:
        """Report that nothing is driven, and why."""
        return {"allocation": self.why}


class NoMonitor:
    """Reads neither cache occupancy nor bandwidth."""

    name = "none"
    rate = 0.0

    def __init__(self, why: str = "none: this machine gives no cache or bandwidth monitoring") -> None:
        self.why = why

    def attach(self, members: Mapping[str, Held]) -> None:
        """Watch nothing."""

    def start(self) -> None:
        """Begin no series."""

    def stop(self) -> list[Sample]:
        """Return no samples."""
        return []

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Report that nothing is read, and why."""
        return {"monitoring": self.why}


# A machine that was captured into a file, as planning and the check of a node see it.

ORIGINS = {
    FROM_CPUID: "Made of real CPUID: name, caches, cores, ways, classes, ids and throttles are those of its registers, "
    "by the kernel's rules; packages, memory and NUMA nodes are assumed. Nothing was measured on it.",
}


@dataclass(frozen=True)
class Elsewhere:
    """A captured machine that a study is planned for: what was measured here does not count there."""

    file: Path
    processor: str | None
    topology: Topology
    cache: Cache | None  # what resctrl can share out there
    memory_bytes: int | None
    has_counters: bool  # of the processor
    facts: NodeFacts  # by which a node is recognised
    origin: str = ""  # what it was made of, where it was not captured

    def words(self) -> Iterator[str]:
        """Name the machine, and say what it was made of where it was not captured."""
        ships = self.file.parent == MACHINES
        named = self.file.name.partition(".")[0] if ships else f"in {self.file}"
        yield ": ".join(filter(None, [f"On the machine {named}", self.processor]))
        if self.origin:
            yield ORIGINS[self.origin]


def captured_machine(file: Path) -> Elsewhere:
    """Read the machine that `castmates doctor --capture` wrote into this file."""
    from castmates.machine.capture.capture import opened, topology_of
    from castmates.machine.facts import cpu_model, has_counters  # a Snakefile is parsed without all this

    with opened(file) as root:
        topology, cache = topology_of(root, file), read_cache(root)
        return Elsewhere(
            file=file,
            processor=cpu_model(root),
            topology=topology,
            cache=cache,
            memory_bytes=usable_memory(root),
            has_counters=has_counters(root),
            facts=node_facts(root, topology, cache),
            origin=read_text(root / ORIGIN) or "",
        )


def rehearsed_facts(file: Path) -> dict[str, object]:
    """What machine.json has, beside the machine at hand, of the one that is rehearsed on it."""
    there = captured_machine(file)
    cache = there.cache.model_dump(mode="json") if there.cache else None
    return {"rehearsed": {"processor": there.processor, "origin": there.origin, "cache": cache}}


def facts_here() -> NodeFacts:
    """What there is on this node."""
    return node_facts(Path("/"), read_topology(), read_cache())


def node_facts(root: Path, topology: Topology, cache: Cache | None) -> NodeFacts:
    """What a node is recognised by; what only holds for a user or a moment is left out."""
    from castmates.machine.facts import cpu_model

    online = [cpu for cpu in topology.cpus if cpu.online]
    return NodeFacts(
        processor=cpu_model(root),
        online=format_cpu_list(cpu.id for cpu in online),
        siblings=tuple(sorted({format_cpu_list(cpu.siblings) for cpu in online if len(cpu.siblings) > 1})),
        packages=len({cpu.package for cpu in online if cpu.package is not None}) or None,
        caches=tuple(
            LastLevel(id=each.id, bytes=each.bytes, ways=each.ways, cpus=format_cpu_list(each.cpus))
            for each in topology.llcs
        ),
        nodes=tuple(f"{node.id}: {format_cpu_list(node.cpus)}" for node in topology.nodes),
        memory_bytes=memory_bytes("MemTotal", root),
        ways=cache.ways if cache else None,
        groups=cache.groups if cache else None,
    )
