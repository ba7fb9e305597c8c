"""What a trace shows of members, by what its user may record: one table for records and documentation."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from castmates.linux.tracing_rights import FAULTS, INTERRUPTS, SCHEDULER, SYSCALLS, Rights
from castmates.study.tracing_design import LATENCIES, STACKS


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
