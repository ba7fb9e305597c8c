"""Events of units, opened for whole packages: each by itself, because units have few counters and do not share them."""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from castmates.counters.events.groups import Reading
from castmates.counters.events.groups import explain as explain_refusal
from castmates.counters.package.sources import Wanted
from castmates.linux.perf_event import Opener, Target, open_event, paranoid, read_group


@dataclass(frozen=True, slots=True)
class Count:
    """One event of one unit on one package."""

    wanted: Wanted
    package: int
    fd: int

    def read(self) -> Reading | None:
        """Read it; None where the kernel gives no number."""
        try:
            numbers = read_group(self.fd, 1)
        except OSError:  # its CPU went offline, for instance
            return None
        return None if numbers is None else Reading(numbers[2], numbers[0], numbers[1])


@dataclass
class OpenedUnits:
    """Everything that is counted of packages, and what was refused."""

    counts: list[Count] = field(default_factory=list)
    refused: dict[tuple[int, str], str] = field(default_factory=dict)  # package and metric -> why it has no number

    def close(self) -> None:
        """Let go of all of them; safe to call twice."""
        for count in self.counts:
            os.close(count.fd)
        self.counts.clear()


def open_units(events: Iterable[tuple[Wanted, int, int]], opener: Opener = open_event) -> OpenedUnits:
    """Open each event for its package, through this CPU; a quantity that lacks a part of itself is none."""
    opened = OpenedUnits()
    for event, package, cpu in events:
        try:
            fd = opener(event.attr, Target(-1, cpu), -1, 0)
        except OSError as error:
            opened.refused.setdefault((package, event.metric), f"{event.unit.name}: {_explain(error)}")
            continue
        opened.counts.append(Count(event, package, fd))
    whole = [count for count in opened.counts if (count.package, count.wanted.metric) not in opened.refused]
    for count in opened.counts:
        if count not in whole:
            os.close(count.fd)
    opened.counts = whole
    return opened


def _explain(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"perf is refused for whole packages (kernel.perf_event_paranoid is {paranoid()}, and 0 or lower, or "
            "CAP_PERFMON, is needed)"
        )
    if error.errno == errno.EINVAL:
        return "the kernel refuses this event (EINVAL)"
    return str(explain_refusal(error))
