"""Events opened together for one member: read in one call, switched on and off as one, and added up."""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from castmates.counters.events.resolving import Event
from castmates.linux.event_names import IN_KERNEL
from castmates.linux.perf_event import (
    DISABLED,
    EXCLUDE_HV,
    EXCLUDE_KERNEL,
    EXCLUDE_USER,
    TRACEPOINT,
    Attr,
    Opener,
    Target,
    open_event,
    paranoid,
    read_group,
    switch,
)
from castmates.protocols import Refusal, Status

USER_ONLY = "user mode only"
ENDED = Refusal("not counted", "the member had ended before")
NO_COUNTER = Refusal("not supported", "this processor or virtual machine has no counter for it")
_ABSENT = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True)
class Reading:
    """A count so far and, in ns, for how long it was wanted and for how long it really counted."""

    count: int = 0
    enabled: int = 0
    running: int = 0


@dataclass
class Group:
    """Events of one unit on one target, the leader first."""

    target: Target
    names: list[str] = field(default_factory=list)
    fds: list[int] = field(default_factory=list)

    @property
    def leader(self) -> int:
        """The descriptor that stands for all of them; -1 while there is none."""
        return self.fds[0] if self.fds else -1

    def read(self) -> dict[str, Reading]:
        """Read all counts at one stroke."""
        numbers = read_group(self.leader, len(self.fds))
        if numbers is None:
            return {}
        enabled, running, *counts = numbers
        return {name: Reading(count, enabled, running) for name, count in zip(self.names, counts, strict=True)}


@dataclass
class Opened:
    """Everything that counts a member in one turn."""

    groups: list[Group] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)  # events that are counted nowhere
    notes: dict[str, str] = field(default_factory=dict)  # event -> what its counts lack

    def switch(self, on: bool) -> None:
        """Let all of them count, or rest."""
        for group in self.groups:
            switch(group.leader, on)

    def read(self) -> dict[str, Reading]:
        """Add up each event over threads, or CPUs, and kinds of cores; what lacks a part is left out."""
        readings_of = [(group, group.read()) for group in self.groups]
        broken = {name for group, readings in readings_of if not readings for name in group.names}
        total = add_up((group.target, readings) for group, readings in readings_of)
        return {name: reading for name, reading in total.items() if name not in broken and name not in self.refused}

    def close(self) -> None:
        """Let go of all of them; safe to call twice."""
        for group in self.groups:
            for fd in group.fds:
                os.close(fd)
        self.groups.clear()


def add_up(readings: Iterable[tuple[Target, Mapping[str, Reading]]]) -> dict[str, Reading]:
    """Add counts and times of every event over its targets.

    A thread is wanted by the counters of every kind of core at the same time, and counted by one of them.
    """
    of_target: dict[tuple[str, Target], Reading] = {}
    for target, of_events in readings:
        for name, reading in of_events.items():
            before = of_target.get((name, target), Reading())
            of_target[name, target] = Reading(
                before.count + reading.count, max(before.enabled, reading.enabled), before.running + reading.running
            )
    total: dict[str, Reading] = {}
    for (name, _), reading in of_target.items():
        before = total.get(name, Reading())
        total[name] = Reading(
            before.count + reading.count, before.enabled + reading.enabled, before.running + reading.running
        )
    return total


def open_groups(
    events: Sequence[Event], targets: Sequence[Target], resting: bool = False, opener: Opener = open_event
) -> Opened:
    """Open these events on every target, a group for each unit; what cannot be counted is noted and left out."""
    opening = _Opening(resting, opener)
    for members in _by_unit(events).values():
        for target in targets:
            opening.open_on(target, members)
    opened, refused = opening.opened, opening.refused
    if full := next((error for error in refused.values() if error.errno == errno.EMFILE), None):
        opened.close()  # a part of them would pass for the whole, and the runner needs files itself
        return Opened(refused={event.name: explain(full) for event in events})
    held = {(name, group.target) for group in opened.groups for name in group.names}
    for (name, target), error in refused.items():
        if (name, target) in held or error.errno == errno.ESRCH:
            continue  # another kind of core counts it there; a thread has ended
        if error.errno in _ABSENT and any((name, other) in held for other in targets):
            opened.notes[name] = f"not on {f'CPU {target.cpu}' if target.cpu >= 0 else 'every thread'}"
        else:
            opened.refused[name] = explain(error)
    counted = {name for name, _ in held}
    for event in events:
        if event.name not in counted:
            opened.refused.setdefault(event.name, event.refusal or ENDED)
    return opened


def _by_unit(events: Sequence[Event]) -> dict[int, list[tuple[str, Attr]]]:
    by_unit: dict[int, list[tuple[str, Attr]]] = {}
    for event in events:
        for attr in event.attrs:
            by_unit.setdefault(attr.unit, []).append((event.name, attr))
    return by_unit


@dataclass
class _Opening:
    """One opening of groups: how, what came of it, and what was refused."""

    resting: bool
    opener: Opener
    opened: Opened = field(default_factory=Opened)
    refused: dict[tuple[str, Target], OSError] = field(default_factory=dict)

    def open_on(self, target: Target, members: Sequence[tuple[str, Attr]]) -> None:
        """Open one group, or several where the kernel answers that they are never counted together."""
        group = Group(target)
        for name, attr in members:
            try:
                fd, note = self._open(attr, group)
            except OSError as error:
                alone = Group(target)
                try:
                    if error.errno != errno.EINVAL or not group.fds:
                        raise
                    fd, note = self._open(attr, alone)
                except OSError as last:
                    if (name, target) not in self.refused or self.refused[name, target].errno in _ABSENT:
                        self.refused[name, target] = last
                    continue
                group = alone
            if note:
                self.opened.notes[name] = note
            if not group.fds:
                self.opened.groups.append(group)
            group.names.append(name)
            group.fds.append(fd)

    def _open(self, attr: Attr, group: Group) -> tuple[int, str]:
        """Open one event in a group, without the kernel's part where only that is allowed and makes sense."""
        bits = DISABLED if self.resting and group.leader < 0 else 0  # a group rests with its leader
        try:
            return self.opener(attr, group.target, group.leader, bits), ""
        except PermissionError:
            if (
                attr.exclude & (EXCLUDE_KERNEL | EXCLUDE_USER)
                or attr.kind == TRACEPOINT
                or (attr.kind, attr.config) in IN_KERNEL
            ):
                raise
        user_only = attr._replace(exclude=attr.exclude | EXCLUDE_KERNEL | EXCLUDE_HV)
        return self.opener(user_only, group.target, group.leader, bits), USER_ONLY


def explain(error: OSError) -> Refusal:
    """What the kernel's refusal means."""
    if error.errno in _ABSENT:
        return NO_COUNTER
    if error.errno in (errno.EACCES, errno.EPERM):
        return Refusal(
            "not counted",
            f"perf is refused (kernel.perf_event_paranoid is {paranoid()}); let root run, once: "
            "castmates doctor --grant; inside a container its seccomp profile must allow perf_event_open too",
        )
    if error.errno == errno.EINVAL:
        return Refusal("not supported", "the kernel does not count it for processes")
    if error.errno == errno.ENOSYS:
        return Refusal("not supported", "this kernel or architecture has no perf_event_open that Castmates knows")
    if error.errno == errno.EMFILE:
        return Refusal("not counted", "too many files are open (ulimit -n)")
    return Refusal("not counted", f"perf_event_open failed ({error.strerror})")


# From two readings of an event to what it came to: counted, scaled, not counted and not supported are four things.

FULL = 0.999  # above it nothing was lost but the moments of switching


class Value(NamedTuple):
    """What an event came to between two readings."""

    value: float | None
    status: Status
    running: float | None = None
    note: str = ""


def between(before: Reading | None, after: Reading | None) -> Value:
    """Subtract two readings; a member that was on no processor was not counted, which is no zero."""
    if before is None or after is None:
        return Value(None, "not counted", None, "the kernel gave no count")
    count, enabled, running = after.count - before.count, after.enabled - before.enabled, after.running - before.running
    if enabled <= 0:
        return Value(None, "not counted", None, "the member was on no processor in this window")
    if running <= 0:
        return Value(None, "not counted", 0.0, "other events held the counters for the whole window")
    share = min(1.0, running / enabled)
    if share < FULL:
        return Value(count * enabled / running, "scaled", share, f"counted for {share:.1%} of the member's time")
    return Value(float(count), "counted", share)


def without(refusal: Refusal) -> Value:
    """No value, and why."""
    return Value(None, refusal.status, None, refusal.why)
