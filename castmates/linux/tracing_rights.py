"""What perf can record here for this user, and the command line that records it.

Each right is tried, by opening the event as perf would: settings, capabilities and containers all have a say in it.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import perf_event
from castmates.linux.capable_copy import PERF_PACKAGES
from castmates.linux.event_names import look_up
from castmates.linux.kernel_files import mounts, read_int
from castmates.linux.perf_event import EXCLUDE_HV, EXCLUDE_KERNEL, PERF_DEVICES, SOFTWARE, TRACEPOINT, Attr, Target
from castmates.study.spec import LATENCIES, STACKS

SCHEDULER, SYSCALLS, FAULTS, INTERRUPTS = FAMILIES = ("scheduler", "syscalls", "faults", "interrupts")
TRACEPOINTS = {
    SCHEDULER: (
        "sched:sched_switch",
        "sched:sched_waking",
        "sched:sched_wakeup",
        "sched:sched_wakeup_new",
    ),
    SYSCALLS: ("raw_syscalls:sys_enter", "raw_syscalls:sys_exit"),
    INTERRUPTS: ("irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_entry", "irq:softirq_exit"),
}
_GRANTED = Path("/var/lib/castmates")  # what root has granted lies there
GRANT, GRANT_ALL = "sudo castmates doctor --grant", "sudo castmates doctor --grant --tracing"
MOST_KIB, LEAST_KIB, ALL_KIB = 16 << 10, 128, 256 << 10  # of a CPU's buffer, and of all together
_DUMMY, _PAGE_FAULTS, _CPU_CLOCK = 9, 2, 0  # the kernel's events in software
_CONTEXT_SWITCH = 1 << 26  # a bit of perf_event_attr
_CALLCHAIN, _RAW = 1 << 5, 1 << 10  # bits of sample_type
_MYSELF = Target(0)
_USER = EXCLUDE_KERNEL | EXCLUDE_HV
_UNITS = ("cpu", "cpu_core")  # of counters, by whether the processor is hybrid
_TIMEOUT_S = 20.0  # a busy machine takes seconds to close many events


@dataclass(frozen=True, slots=True)
class Rights:
    """What can be recorded of this user's own processes."""

    tracepoints: bool  # of the scheduler and of interrupts: who woke, who waits to run, who runs instead
    switches: bool  # when a thread runs, without why it does not
    stacks: bool  # sampled stacks
    perf: str  # its version; "" where there is none
    reasons: tuple[str, ...]  # why something cannot be had, and what helps
    syscalls: bool = False
    faults: bool = False
    kernel: bool = False  # also what happens inside the kernel
    program: str = ""  # the perf that has these rights

    @property
    def level(self) -> str:
        """How much a trace can show, in a word or two."""
        if self.tracepoints and self.syscalls:
            return "everything"
        if self.syscalls:
            return "switches and system calls"
        return "switches only" if self.switches else "nothing"

    def families(self) -> tuple[str, ...]:
        """The families of events that can be recorded; of the scheduler's, at least the switches."""
        has = {SCHEDULER: self.switches, SYSCALLS: self.syscalls, FAULTS: self.faults, INTERRUPTS: self.tracepoints}
        return tuple(family for family in FAMILIES if has[family])


def rights() -> Rights:
    """Find out what can be recorded here; nothing is left behind."""
    program = shutil.which("perf") or ""
    version = _version(program)
    if not version:
        why = f"there is no perf for this kernel: install {PERF_PACKAGES}"
        return Rights(False, False, False, "", (why,))
    kernel = _opens(Attr(SOFTWARE, _PAGE_FAULTS))
    has_switches = _opens(Attr(SOFTWARE, _DUMMY, exclude=_USER), bits=_CONTEXT_SWITCH)
    has_tracepoints, has_syscalls = (_records(TRACEPOINTS[family][0]) for family in (SCHEDULER, SYSCALLS))
    granted = granted_perf(os.geteuid())
    if not has_tracepoints and os.access(granted, os.X_OK) and _may_trace(granted):
        program, has_tracepoints, has_syscalls, kernel = str(granted), True, True, True
    return Rights(
        tracepoints=has_tracepoints,
        switches=has_switches or has_tracepoints,
        stacks=kernel or _opens(Attr(SOFTWARE, _CPU_CLOCK, exclude=_USER), sampled=_CALLCHAIN),
        perf=version,
        reasons=tuple(_reasons(has_tracepoints, has_syscalls, has_switches, kernel)),
        syscalls=has_syscalls,
        faults=kernel or _opens(Attr(SOFTWARE, _PAGE_FAULTS, exclude=_USER)),
        kernel=kernel,
        program=program,
    )


def granted_perf(uid: int) -> Path:
    """Return where the perf lies to which root gives the right to see the whole machine, for one user."""
    chosen = os.environ.get("CASTMATES_STATE")
    return (Path(chosen).absolute() if chosen else _GRANTED) / "tracing" / f"perf-{uid}"


def arguments(
    events: Collection[str],
    output: Path,
    *,
    rights: Rights,
    pids: Sequence[int],
    counts: Sequence[tuple[str, int]] = (),
    control: str = "",
) -> list[str]:
    """Return perf's command line that records families of events of processes, and of all that they start.

    Of the events of `counts` one in so many is sampled.

    With `control` ("fifo:CONTROL,ACK" or "fd:CONTROL,ACK") nothing is recorded until it is sent "enable". SIGINT and
    SIGTERM end perf, which then writes the file to its end.
    """
    if unknown := sorted(set(events) - set(FAMILIES)):
        raise CastmatesError(f"there are no events '{unknown[0]}'; choose among {', '.join(FAMILIES)}")
    command = [rights.program, "record", "-q", "-k", "CLOCK_MONOTONIC", "--sample-cpu", "--switch-events", "-N", "-B"]
    command += ["-m", f"{_buffer_kib(rights)}K", "-o", str(output)]
    if control:
        command += ["-D", "-1", f"--control={control}"]
    for event in (*_events(events, rights), *(sampled(event, period, rights.kernel) for event, period in counts)):
        command += ["-e", event]
    return [*command, "-p", ",".join(map(str, pids))]


def _events(families: Collection[str], rights: Rights) -> Iterator[str]:
    """The events of these families that can be recorded; the first bears the switches."""
    point, only_user = mounted(), "" if rights.kernel else "u"
    yield f"dummy:{only_user or 'uk'}"
    for family, names in TRACEPOINTS.items():
        if family in families and (rights.syscalls if family == SYSCALLS else rights.tracepoints):
            yield from (name for name in names if point is None or _is_there(name, point))
    if FAULTS in families and rights.faults:
        yield "page-faults/period=1/" + only_user


def sampled(event: str, period: int, kernel: bool) -> str:
    """An event of which one in `period` is sampled, as perf spells it: pinned to a counter of its own, or not at all.

    If it took turns with others, samples would stand for more than the period, and nothing would show for how many.
    """
    modes = found[1] if (found := re.search(r"(?:/|(?<!:):)([ukh]+)$", event)) else ""
    name = event.removesuffix(modes).rstrip("/:") if modes else event.removesuffix("/")
    if "/" not in name and look_up(name) is None:  # of a processor; perf takes options to its own names alone
        name = f"{next((unit for unit in _UNITS if (HERE / PERF_DEVICES / unit).exists()), _UNITS[0])}/{name}"
    return f"{name}{',' if '/' in name else '/'}period={period}/{modes or ('' if kernel else 'u')}D"


def why_not_sampled(event: str, period: int, rights: Rights) -> str:
    """Why perf cannot sample an event here, in its own words; "" where it can."""
    command = [rights.program, "record", "-N", "-B", "-e", sampled(event, period, rights.kernel), "-o", "/dev/null"]
    try:
        quiet, told = (
            subprocess.run(
                [*command, much, "--", "true"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
            for much in ("-q", "-v")
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if quiet.returncode == 0:  # without a counter perf takes a clock for cycles, and says so only if asked
        return next((line.strip() for line in told.stderr.splitlines() if "fall back" in line), "")
    words = [line.strip() for line in quiet.stderr.splitlines() if line.strip() not in ("", "Error:")]
    return (words or ["it does not say why"])[0].rstrip(".")


def _is_there(tracepoint: str, point: Path) -> bool:
    """Whether this kernel has a tracepoint; one that may not be looked up counts as there."""
    folder = point / "events"
    return not os.access(folder, os.X_OK) or (folder / Path(*tracepoint.split(":"))).is_dir()


def _buffer_kib(rights: Rights) -> int:
    """How large a CPU's buffer may be: a user's by what the kernel lets users hold, unless their perf may hold more."""
    cpus = os.cpu_count() or 1
    room = min(MOST_KIB, ALL_KIB // cpus)
    if os.geteuid() != 0 and rights.program != str(granted_perf(os.geteuid())):
        try:
            room = min(room, int(Path("/proc/sys/kernel/perf_event_mlock_kb").read_text()))
        except (OSError, ValueError):
            room = LEAST_KIB
    return 1 << max(room, LEAST_KIB).bit_length() - 1  # the kernel wants a power of two


def _version(program: str) -> str:
    """The version of a perf that runs; some distributions install a wrapper that reports that there is none."""
    if not program:
        return ""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().removeprefix("perf version ") if done.returncode == 0 else ""


def _may_trace(program: Path) -> bool:
    """Try whether this perf records the scheduler: it has a capability that this process lacks."""
    command = [
        str(program),
        "record",
        "-q",
        "-N",
        "-B",
        "-e",
        TRACEPOINTS[SCHEDULER][0],
        "-o",
        "/dev/null",
        "--",
        "true",
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _records(tracepoint: str) -> bool:
    """Whether a tracepoint can be recorded with its fields, which takes more than counting it."""
    point = mounted()
    number = number_of(tracepoint, point) if point else None
    return number is not None and _opens(Attr(TRACEPOINT, number), sampled=_RAW)


def _opens(attr: Attr, bits: int = 0, sampled: int = 0) -> bool:
    try:
        os.close(perf_event.open_event(attr, _MYSELF, bits=bits, sampled=sampled))
    except OSError:
        return False
    return True


def _reasons(has_tracepoints: bool, has_syscalls: bool, has_switches: bool, kernel: bool) -> Iterator[str]:
    paranoid = perf_event.paranoid()
    if not has_switches and not has_tracepoints:
        yield (
            f"the kernel refuses users all events (kernel.perf_event_paranoid is {paranoid}): {GRANT}; in a container "
            "add --cap-add PERFMON and a seccomp profile that allows perf_event_open"
        )
    elif not kernel:
        yield f"the kernel's own part of page faults and stacks takes kernel.perf_event_paranoid 1 or less: {GRANT}"
    if mounted() is None:
        yield "tracefs is not mounted, so there are no tracepoints: sudo mount -t tracefs nodev /sys/kernel/tracing"
    elif not has_syscalls:
        yield f"system calls are recorded once users may read their two tracepoints: {GRANT}"
    if not has_tracepoints:
        yield (
            f"who woke a thread, who ran instead and interrupts need CAP_PERFMON, which shows all processes of the "
            f"machine: {GRANT_ALL}, or record as root"
        )


# Where the kernel describes its tracepoints, and what this user may read there.

HERE = Path("/")
_DESCRIBED = ("id", "format")  # the files of a tracepoint that perf reads


def mounted(root: Path = HERE) -> Path | None:
    """Return where tracefs is mounted, or None."""
    return next((Path(mount.point) for mount in mounts(root) if mount.fstype == "tracefs"), None)


def files(point: Path, tracepoints: Collection[str]) -> list[Path]:
    """List the files that perf reads in order to record these tracepoints, such as sched:sched_switch."""
    return [_folder(point, each) / name for each in tracepoints for name in _DESCRIBED]


def number_of(tracepoint: str, point: Path) -> int | None:
    """Return the kernel's number of a tracepoint; None where it has none, or this user may not read it."""
    return read_int(_folder(point, tracepoint) / "id")


def _folder(point: Path, tracepoint: str) -> Path:
    return point / "events" / Path(*tracepoint.split(":"))


# What a trace shows of members, by what its user may record: one table for records and documentation.


@dataclass(frozen=True, slots=True)
class Shown:
    """Something that a trace shows."""

    words: str
    right: str  # the field of Rights that gives it
    families: tuple[str, ...]  # of events, any of which shows it


SHOWN = (
    Shown("when threads run, on which CPU, and whether they were preempted", "switches", (SCHEDULER,)),
    Shown("who woke a thread, how long it waited to run and who ran instead", "tracepoints", (SCHEDULER,)),
    Shown("system calls, and what a thread waits in by its call", "syscalls", (SYSCALLS,)),
    Shown("page faults", "faults", (FAULTS,)),
    Shown("sampled stacks", "stacks", (STACKS,)),
    Shown("the kernel's own part of page faults and stacks", "kernel", (FAULTS, STACKS)),
    Shown("interrupts that a thread had to bear", "tracepoints", (INTERRUPTS,)),
    Shown("sampled loads, where the processor samples them", "stacks", (LATENCIES,)),
)
# What each kind of user may record; tests/real/test_privileges.py tries it.
_EVERYTHING = Rights(
    tracepoints=True, switches=True, stacks=True, perf="", reasons=(), syscalls=True, faults=True, kernel=True
)
USERS: Mapping[str, Rights] = {
    "root": _EVERYTHING,
    "user after `sudo castmates doctor --grant --tracing`": _EVERYTHING,
    "user after `sudo castmates doctor --grant`": Rights(
        tracepoints=False, switches=True, stacks=True, perf="", reasons=(), syscalls=True, faults=True, kernel=True
    ),
    "plain user (`perf_event_paranoid` 2)": Rights(
        tracepoints=False, switches=True, stacks=True, perf="", reasons=(), faults=True
    ),
}


def recordable(wanted: Iterable[str], can: Rights) -> list[str]:
    """Those of these families of which this user may record anything."""
    return [family for family in wanted if any(family in each.families and getattr(can, each.right) for each in SHOWN)]


def not_shown(wanted: Collection[str], can: Rights) -> list[Shown]:
    """What a trace of these families will not show."""
    lacking = [each for each in SHOWN if set(each.families) & set(wanted) and not getattr(can, each.right)]
    if not can.faults and not can.stacks:
        return [each for each in lacking if each.right != "kernel"]  # nothing is left that it could be a part of
    return lacking


def table(users: Mapping[str, Rights] = USERS) -> Iterable[str]:
    """The rows of the table in docs/tracing.md."""
    yield f"| | {' | '.join(users)} |"
    yield f"| --- |{' --- |' * len(users)}"
    for each in SHOWN:
        cells = ("yes" if getattr(can, each.right) else "no" for can in users.values())
        yield f"| {each.words} | {' | '.join(cells)} |"
