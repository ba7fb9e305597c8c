"""The program `known` as a process: it does portions of a task when asked to, and gives its own account of them."""

import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from castmates.errors import CastmatesError
from castmates.linux.processes import read_process
from castmates.machine.topology import Topology
from castmates.protocols import Status

# What is tried: for each event, tasks with a known count, how far a count may be off, and why.

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


PATIENCE_S = 60.0
REST_S = 0.0002


class CannotHere(Exception):
    """The task has no known answer on this machine; why."""


class Own(NamedTuple):
    """What the kernel reported to the program about a portion, by getrusage and the clock of the process."""

    minor: int
    major: int
    waits: int
    pushes: int
    cpu_ns: int

    def of(self, account: Account | None) -> float | None:
        """Return the part that an event is compared with."""
        if account is None:
            return None
        parts = {"minor faults": self.minor, "major faults": self.major, "switches": self.waits + self.pushes}
        return float(parts.get(account, self.cpu_ns))


def words(program: Path, trial: Trial, cpu: int | None, directory: Path) -> list[str]:
    """Return the command line of a task."""
    more = [f"bytes={trial.bytes}"] if trial.bytes else []
    more += [] if cpu is None else [f"cpu={cpu}"]
    return [str(program), trial.task, f"directory={directory}", *more]


class Known:
    """The process; `go` lets it do a portion and waits for its end."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid

    def go(self, units: int) -> Own:
        """Do so many units."""
        if self._process.stdin is None:
            raise CastmatesError("known has no standard input")
        try:
            self._process.stdin.write(f"{units}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise CastmatesError(f"known ended with status {self._process.wait()} before its task was done") from None
        own = account_of(self.line())
        # Wait until it waits for its next line: what it did until then would count in the next portion.
        deadline = time.monotonic() + PATIENCE_S
        while (process := read_process(self.pid)) and process.state != "S" and time.monotonic() < deadline:
            time.sleep(REST_S)
        return own

    def line(self) -> str:
        """Wait for its next line."""
        if self._process.stdout is None:
            raise CastmatesError("known has no standard output")
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            if not waiting.select(PATIENCE_S):
                raise CastmatesError(f"known did not get on within {PATIENCE_S:g} s: is this machine busy?")
        line = self._process.stdout.readline().strip()
        if line.startswith("cannot: "):
            raise CannotHere(line.removeprefix("cannot: "))
        if not line:
            raise CastmatesError(f"known ended with status {self._process.wait()} before its task was done")
        return line


@contextmanager
def known(command: Sequence[str]) -> Iterator[Known]:
    """Start the program and wait until it is ready; at the end it is killed."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        program = Known(process)
        program.line()
        yield program
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


def account_of(line: str) -> Own:
    """Read the program's account."""
    words = line.split()
    if len(words) != 1 + len(Own._fields) or words[0] != "done":
        raise CastmatesError(f"known printed '{line}' where its account was expected; build it anew.")
    return Own(*map(int, words[1:]))


def quiet_cpu() -> int:
    """Return the last of our CPUs: the first ones serve more interrupts."""
    return max(os.sched_getaffinity(0))


# What a counter came to for a task with a known answer -> whether the count is right. Pure.

Verdict = Literal["verified", "wrong", "not checked"]
APART, APART_SHARE = 3.0, 0.002  # counts by which a count and the kernel's own account of it may differ, or a share
CLOCKS_IN_DOUBT = 0.03  # that others' work, interrupts and hypervisors may make of it
USER_ONLY = "user mode only"


@dataclass(frozen=True, slots=True)
class Portion:
    """What was counted in one portion of a task."""

    units: int
    value: float | None
    status: Status = "counted"
    note: str = ""
    account: float | None = None  # the program's own, of the same portion


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of a trial."""

    verdict: Verdict
    measured: float | None = None  # for each unit
    account: float | None = None
    why: str = ""


def judge(trial: Trial, short: Sequence[Portion], long: Sequence[Portion]) -> Judged:
    """Hold the difference between portions against what is known; disturbances add, so the least of each counts."""
    portions = [*short, *long]
    if not short or not long:
        return Judged("not checked", why="it was not tried")
    unlike = next((portion for portion in portions if portion.status != "counted" or portion.value is None), None)
    if unlike is not None:
        return Judged("not checked", why=f"{unlike.status}: {unlike.note}" if unlike.note else unlike.status)
    measured = _slope(short, long, [portion.value for portion in short], [portion.value for portion in long])
    account = _slope(short, long, [portion.account for portion in short], [portion.account for portion in long])
    if measured is None:
        return Judged("not checked", why="the two portions are equally long")
    if trial.in_kernel and any(USER_ONLY in portion.note for portion in portions):
        return Judged(
            "not checked", measured, account, "counted in user mode only here, and this happens in the kernel"
        )
    agrees = account is None or _agree(trial, measured, account, trial.long - trial.short)
    if trial.low <= measured <= trial.high:
        if agrees:
            return Judged(
                "verified",
                measured,
                account,
                USER_ONLY if any(USER_ONLY in portion.note for portion in portions) else "",
            )
        return Judged("wrong", measured, account, f"the kernel's own account differs: {account:.6g}")
    if trial.account == "CPU time" and abs(measured - trial.per_unit) <= CLOCKS_IN_DOUBT * trial.per_unit:
        why = "the two clocks differ by more than is let pass, as they do under others' load: try on a quiet machine"
        return Judged("not checked", measured, account, why)
    if account is not None and agrees:
        return Judged("not checked", measured, account, "the kernel's own account agrees: the task was disturbed here")
    return Judged("wrong", measured, account, f"{trial.low:.6g} to {trial.high:.6g} was expected")


def combined(ours: Judged, perf_stat: Judged | None) -> Judged:
    """Judge a count: it is right only if it is right by every method that counted it."""
    if ours.verdict == "verified" and perf_stat is not None and perf_stat.verdict == "wrong":
        return Judged("wrong", ours.measured, ours.account, f"perf stat: {perf_stat.measured:.6g}, {perf_stat.why}")
    return ours


def _slope(
    short: Sequence[Portion], long: Sequence[Portion], at_short: Sequence[float | None], at_long: Sequence[float | None]
) -> float | None:
    """Return by how much the least grows with each unit; None where something is not known."""
    few, many = [v for v in at_short if v is not None], [v for v in at_long if v is not None]
    units = long[0].units - short[0].units
    if len(few) < len(short) or len(many) < len(long) or units <= 0:
        return None
    return (min(many) - min(few)) / units


def _agree(trial: Trial, measured: float, account: float, units: int) -> bool:
    """Check whether the kernel's own account agrees, but for a few at the edges."""
    if trial.account == "CPU time":
        return abs(measured - account) <= CLOCKS_IN_DOUBT * account
    return abs(measured - account) <= max(APART / units, APART_SHARE * account)
