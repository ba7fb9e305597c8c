"""What is tried: for each event, tasks with a known count, how far a count may be off, and why."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from castmates.machine.topology import Topology

Scope = Literal["thread", "cgroup"]
Account = Literal["minor faults", "major faults", "switches", "CPU time"]
KIB, MIB = 1 << 10, 1 << 20
LINE = 64
BEYOND = 4  # times the last-level cache, where it must be missed
PAGES = 16384  # more than any processor's second TLB holds
MOST_MEMORY = 0.25  # of what is available
PAIRS = 5  # of a short and a long portion
CLOCK_PAIRS = 20  # short ones: in the least disturbed of them a hypervisor took nothing


@dataclass(frozen=True, slots=True)
class Trial:
    """One event and one task of `known`; what differs between a short and a long portion of it is judged."""

    event: str  # in perf's words
    task: str
    per_unit: float  # what each unit must count
    low: float  # what is let pass, for each unit
    high: float
    why: str  # why not exactly that
    short: int  # units
    long: int
    account: Account | None = None  # what the kernel reports to the program itself in another way
    in_kernel: bool = False  # the kernel's own part is what is tried
    bytes: int = 0  # working set; 0 is the task's own
    where: str = ""  # what the set is, for the table
    scope: Scope = "thread"
    pairs: int = PAIRS
    stretch: int = 4  # times as much for perf stat, whose counts begin with the program and its start

    @property
    def for_perf_stat(self) -> "Trial":
        """The same with a longer long portion."""
        return replace(self, long=self.short + self.stretch * (self.long - self.short))

    @property
    def name(self) -> str:
        """Event and task, as the table has them."""
        return f"{self.event}: {self.what}"

    @property
    def what(self) -> str:
        """The task, as the table has it."""
        where = f" in {self.where}" if self.where else ""
        return f"{self.task}{where}{' by group' if self.scope == 'cgroup' else ''}"


BY_GROUP = ("kernel-touch", "crew-touch", "pingpong", "migrate", "crew-spin")  # tried by control group too
CORE_STRETCH = 20  # the instructions of a start differ from one to the next


def _exact(per_unit: float, share: float = 0.001) -> tuple[float, float, float]:
    return per_unit, per_unit * (1 - share), per_unit * (1 + share)


_FAULTS = "a page faults once; the kernel's own balancing of memory may add a few"
_SWITCHES = "others who want the CPU add switches"
_CLOCKS = "the kernel's two clocks begin and end a moment apart; this one also runs while a hypervisor has the CPU"
_RETIRED = "a program's own instructions retire exactly"
_WITH_KERNEL = "the kernel's are counted too; of several portions the least is taken, in which no interrupt came"

SOFTWARE = (
    Trial("page-faults", "touch", *_exact(1), _FAULTS, 1000, 4000, "minor faults"),
    Trial("page-faults", "map-touch", *_exact(1), _FAULTS, 1000, 4000, "minor faults"),
    Trial("page-faults", "kernel-touch", *_exact(1), _FAULTS, 1000, 4000, "minor faults", in_kernel=True),
    Trial("page-faults", "crew-touch", *_exact(3), f"{_FAULTS}; three threads", 1000, 4000, "minor faults"),
    Trial("minor-faults", "touch", *_exact(1), _FAULTS, 1000, 4000, "minor faults"),
    Trial("major-faults", "disk", *_exact(1, 0.005), "the kernel may have kept a page", 100, 900, "major faults"),
    Trial("context-switches", "pingpong", *_exact(2, 0.005), _SWITCHES, 1000, 5000, "switches", in_kernel=True),
    Trial("cpu-migrations", "migrate", *_exact(1, 0.005), "the scheduler may add one", 200, 1000, in_kernel=True),
    Trial("task-clock", "spin", *_exact(1000, 0.005), _CLOCKS, 2_000, 22_000, "CPU time", pairs=CLOCK_PAIRS),
    Trial("task-clock", "crew-spin", *_exact(3000, 0.005), _CLOCKS, 2_000, 12_000, "CPU time", pairs=CLOCK_PAIRS),
)
_LOADS = "some processors count a load again, or guess at some"
CORE = (
    Trial("instructions:u", "instructions", *_exact(100), _RETIRED, 2_000, 22_000, pairs=10),
    Trial("instructions", "instructions", *_exact(100, 0.003), _WITH_KERNEL, 2_000, 22_000, pairs=10),
    Trial("branches:u", "branches", *_exact(10), _RETIRED, 10_000, 110_000, pairs=10),
    Trial("branches", "branches", *_exact(10, 0.003), _WITH_KERNEL, 10_000, 110_000, pairs=10),
    Trial("branch-misses", "coin", 0.5, 0.45, 0.55, "every second guess at a coin is wrong", 20_000, 120_000),
    Trial("cycles", "cycles", 100, 98, 105, "additions that wait for one another take a cycle each", 2_000, 22_000),
    Trial("L1-dcache-loads", "loads", *_exact(16, 0.005), _LOADS, 5_000, 55_000),
    Trial("L1-dcache-stores", "stores", *_exact(16, 0.005), "some processors count a store again", 5_000, 55_000),
    Trial("dTLB-loads", "loads", *_exact(16, 0.005), _LOADS, 5_000, 55_000),
)
_KEPT = "the cache may keep a quarter; walks of page tables add some"
_WALKS = "walks of page tables and what is fetched ahead add some"
_AHEAD = "a line each; what is fetched ahead counts on some processors and not on others"
_MISSED = (
    Trial("L1-dcache-load-misses", "chase", 1, 0.9, 1.15, _WALKS, 50_000, 250_000),
    Trial("cache-references", "chase", 1, 0.9, 1.6, _WALKS, 50_000, 250_000),
    Trial("cache-misses", "chase", 1, 0.65, 1.3, _KEPT, 50_000, 250_000),
    Trial("LLC-loads", "chase", 1, 0.9, 1.3, _WALKS, 50_000, 250_000),
    Trial("LLC-load-misses", "chase", 1, 0.65, 1.3, _KEPT, 50_000, 250_000),
    Trial("cache-misses", "stream", 1, 0.5, 1.3, _AHEAD, 200_000, 1_200_000),
)
_NONE = tuple(
    Trial(event, "chase", 0, 0, 0.01, "everything stays in the first cache", 200_000, 1_200_000)
    for event in ("L1-dcache-load-misses", "cache-references", "cache-misses", "LLC-load-misses", "dTLB-load-misses")
)
_TLB = Trial("dTLB-load-misses", "pages", 1, 0.85, 1.2, "some pages are found again by chance", 50_000, 250_000)


def trials(topology: Topology, page: int) -> Iterator[Trial]:
    """Yield all of them, with working sets for this machine; `too_large` names what has no room here."""
    yield from SOFTWARE
    yield from (replace(trial, scope="cgroup") for trial in SOFTWARE if trial.task in BY_GROUP)
    yield from (replace(trial, stretch=CORE_STRETCH) for trial in CORE)
    llc = max((llc.bytes or 0 for llc in topology.llcs), default=0)
    for trial in _MISSED:
        yield replace(trial, bytes=BEYOND * llc or -1, where=f"{BEYOND} times the last-level cache")
    for trial in _NONE:
        yield replace(trial, bytes=8 * KIB, where="8 KiB")
    yield replace(_TLB, bytes=PAGES * page, where=f"{PAGES} pages")


def too_large(trial: Trial, available: int | None) -> str:
    """Explain why a trial's working set cannot be had; "" where it can."""
    if trial.bytes < 0:
        return "the size of the last-level cache is not known here"
    if available is not None and trial.bytes > MOST_MEMORY * available:
        return f"it takes {trial.bytes // MIB} MiB, more than a quarter of the memory that is free"
    return ""
