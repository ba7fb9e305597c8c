"""Event files: what a source of occupancy and traffic gives, as the kernel shows it, with its failures."""

import errno
from dataclasses import dataclass
from typing import Literal, Protocol

from castmates.rdt.fake.group import Group
from castmates.rdt.fake.kernel import Kernel, Status, refusal
from castmates.rdt.fake.shape import Shape

# Counters for traffic that belong to an id and an event in a domain (AMD's ABMC, `mbm_assign_mode`).

MODES = ("mbm_event", "default")
NOT_ENABLED = "mbm_event counter assignment mode is not enabled"
Holder = tuple[int, str]  # RMID and event


class Counters:
    """Who has a counter in each domain; without any in the hardware all ids are counted."""

    def __init__(self, shape: Shape, kernel: Kernel, status: Status) -> None:
        self.shape, self.kernel, self.status = shape, kernel, status
        self.mode = MODES[0]
        self.events = [event for event in shape.events if event.startswith("mbm_")]
        self._held: dict[int, set[Holder]] = {domain: set() for domain in shape.domains}

    @property
    def told(self) -> bool:
        """Whether the kernel shows a mode at all, be it the only one."""
        return self.kernel.assigns_counters

    @property
    def known(self) -> bool:
        """Whether the hardware has such counters, and the kernel knows them."""
        return self.kernel.assigns_counters and bool(self.shape.mbm_counters)

    @property
    def on(self) -> bool:
        """Whether an id is counted only where it has a counter."""
        return self.known and self.mode == MODES[0]

    def has(self, rmid: int, event: str, domain: int) -> bool:
        """Check whether an event of an id is counted."""
        return not self.on or (rmid, event) in self._held[domain]

    def assign_all(self, rmid: int) -> None:
        """Give a new id its counters, as long as there are some; mkdir goes on without, and only info shows it."""
        for event in self.events if self.on else []:
            for domain in self._held:
                try:
                    self.assign(rmid, event, domain)
                except OSError:
                    break

    def assign(self, rmid: int, event: str, domain: int) -> None:
        """Give an event of an id a counter."""
        if self.has(rmid, event, domain):
            return
        if not self.free(domain):
            self.status.say(f"Failed to allocate counter for {event} in domain {domain}")
            raise refusal(errno.ENOSPC)
        self._held[domain].add((rmid, event))

    def take(self, rmid: int, event: str, domain: int) -> None:
        """Take a counter back."""
        self._held[domain].discard((rmid, event))

    def take_all(self, rmid: int) -> None:
        """Take back what an id has."""
        for held in self._held.values():
            held -= {holder for holder in held if holder[0] == rmid}

    def free(self, domain: int) -> int:
        """Count the counters that nobody has."""
        return self.shape.mbm_counters - len(self._held[domain])

    def show_modes(self) -> str:
        """Write info/L3_MON/mbm_assign_mode: the mode that holds comes first."""
        if not self.known:
            return f"[{MODES[1]}]\n"
        return f"[{self.mode}]\n" + "".join(f"{mode}\n" for mode in MODES if mode != self.mode)

    def set_mode(self, mode: str) -> None:
        """Change the mode, which takes all counters back."""
        self.status.clear()
        if mode not in MODES:
            self.status.say("Unsupported assign mode")
            raise refusal(errno.EINVAL)
        if not self.known and mode == MODES[0]:
            self.status.say(f"{MODES[0]} mode is not supported")
            raise refusal(errno.EINVAL)
        if mode == self.mode or not self.known:
            return
        self.mode = mode
        for held in self._held.values():
            held.clear()

    def show_numbers(self, free: bool) -> str:
        """Write num_mbm_cntrs, or available_mbm_cntrs."""
        if free:
            self._need_mode()
        numbers = (self.free(domain) if free else self.shape.mbm_counters for domain in self._held)
        return ";".join(f"{domain}={number}" for domain, number in zip(self._held, numbers, strict=True)) + "\n"

    def show_group(self, rmid: int) -> str:
        """Write a group's mbm_L3_assignments."""
        self._need_mode()
        return "".join(
            f"{event}:" + ";".join(f"{at}={'e' if self.has(rmid, event, at) else '_'}" for at in self._held) + "\n"
            for event in self.events
        )

    def change_group(self, rmid: int, text: str) -> None:
        """Take what is written there: `mbm_total_bytes:0=e;1=_`, with * for all domains."""
        self.status.clear()
        self._need_mode()
        for line in text.splitlines():
            event, _, caches = line.partition(":")
            for pair in caches.split(";"):
                domain, _, state = pair.partition("=")
                if event not in self.events or state not in ("e", "_") or not (domain == "*" or domain.isdecimal()):
                    raise refusal(errno.EINVAL)
                for at in self._held if domain == "*" else [int(domain)]:
                    (self.assign if state == "e" else self.take)(rmid, event, at)

    def _need_mode(self) -> None:
        if not self.on:
            self.status.say(NOT_ENABLED)
            raise refusal(errno.EINVAL)


Failure = Literal["Unavailable", "Error", "Unassigned"]
OCCUPANCY = "llc_occupancy"


class Source(Protocol):
    """Where numbers come from: a modelled machine, a rule, a test."""

    def occupancy(self, group: Group, domain: int) -> float:
        """Return the bytes that lie in a domain's cache for a group, without those of its monitoring groups.

        Also asked for groups that were removed, as long as their RMID is in limbo.
        """

    def traffic(self, group: Group, domain: int, local: bool) -> float:
        """Return the bytes that a group itself has moved through a domain since it was made: all, or local ones."""


class SetNumbers:
    """Shows what it was given, by path and domain; of everything else that there is nothing."""

    def __init__(self, local_share: float = 0.75) -> None:
        self.lying: dict[tuple[str, int], float] = {}  # bytes in the cache
        self.moved: dict[tuple[str, int], float] = {}  # bytes since the group was made
        self.local_share = local_share

    def occupancy(self, group: Group, domain: int) -> float:
        """Return what lies there."""
        return self.lying.get((group.path, domain), 0)

    def traffic(self, group: Group, domain: int, local: bool) -> float:
        """Return what was moved."""
        return self.moved.get((group.path, domain), 0) * (self.local_share if local else 1)


@dataclass(slots=True)
class _Fault:
    how: Failure
    reads: int | None  # that are left; None: all


class Monitors:
    """Reads events by RMID."""

    def __init__(self, shape: Shape, kernel: Kernel, source: Source, counters: Counters) -> None:
        self.shape, self.kernel, self.source, self.counters = shape, kernel, source, counters
        self.owners: dict[int, Group] = {}  # RMID -> who has it, or had it last
        self._faults: dict[tuple[int, str, int], _Fault] = {}  # RMID, event, domain
        self._lost: dict[tuple[int, str, int], LostCount] = {}  # as above, of ids that were lost once

    def fail(self, rmid: int, event: str, domain: int, how: Failure | None, reads: int | None) -> None:
        """Let reads of an event fail: so many, or all until the next order; None ends it."""
        if how is None:
            self._faults.pop((rmid, event, domain), None)
        else:
            self._faults[rmid, event, domain] = _Fault(how, reads)

    def own(self, group: Group) -> None:
        """Count a new owner of an id from zero, with counters as far as there are some."""
        self.owners[group.rmid] = group
        self._lost = {place: lost for place, lost in self._lost.items() if place[0] != group.rmid}
        self.counters.assign_all(group.rmid)

    def lose(self, rmid: int, domain: int) -> None:
        """Stop tracking the traffic of an id."""
        for event in self.counters.events:
            units = self._moved(rmid, event, domain)
            first = LostCount(units, units, self.kernel.forgets_lost_counts)
            self._lost.setdefault((rmid, event, domain), first).lose()

    def track(self, rmid: int, domain: int) -> None:
        """Track it again."""
        for event in self.counters.events:
            self._lost[rmid, event, domain].track(self._moved(rmid, event, domain))

    def _moved(self, rmid: int, event: str, domain: int) -> int:
        """Return the traffic in the hardware's units."""
        return int(self.source.traffic(self.owners[rmid], domain, local=event == "mbm_local_bytes")) // self.shape.scale

    def show(self, group: Group, event: str, domain: int, parts: int = 1) -> str:
        """Write an event file: a control group's is the sum with its monitoring groups', as far as they can be read.

        Of a domain that has so many parts each reads the same.
        """
        total, failure = 0, ""
        read = False
        for part in (group, *group.monitoring):
            value = self._read(part.rmid, event, domain)
            if isinstance(value, int):
                total, read = total + value, True
            else:
                failure = value
        return f"{total // parts // self.shape.scale * self.shape.scale}\n" if read else f"{failure}\n"

    def occupancy(self, rmid: int, domain: int) -> int | None:
        """Return an RMID's occupancy in bytes; None where it cannot be read."""
        value = self._read(rmid, OCCUPANCY, domain)
        return value if isinstance(value, int) else None

    def _read(self, rmid: int, event: str, domain: int) -> int | Failure:
        fault = self._faults.get((rmid, event, domain))
        if fault is not None:
            if fault.reads is not None:
                fault.reads -= 1
                if not fault.reads:
                    del self._faults[rmid, event, domain]
            return fault.how
        if rmid not in self.owners:
            return 0
        scale = self.shape.scale
        if event == OCCUPANCY:
            return int(self.source.occupancy(self.owners[rmid], domain)) // scale * scale
        if not self.counters.has(rmid, event, domain):
            return "Unassigned"
        moved = self._moved(rmid, event, domain)
        if (rmid, event, domain) in self._lost:
            count = self._lost[rmid, event, domain].read(moved)
            return UNAVAILABLE if count is None else count * scale
        return moved * scale


# Traffic of an id that the hardware has stopped tracking, as AMD's does with ids that do not run, and tracks again.

UNAVAILABLE: Literal["Unavailable"] = "Unavailable"
WIDTH = 44  # bits of AMD's counters


@dataclass
class LostCount:
    """The hardware's counter of one event in one domain, and the kernel's count of it, in the hardware's units."""

    count: int  # the kernel's
    previous: int  # of the hardware, that the kernel saw last
    forgets: bool  # the kernel forgets it where there is no count (15292f1b4c55); else it then sees an overflow
    begun_at: int | None = None  # what had been moved when tracking began anew; None while there is none
    is_new: bool = False  # nobody has read it since: the first read has no value

    def lose(self) -> None:
        """Stop tracking."""
        self.begun_at = None

    def track(self, moved: int) -> None:
        """Begin anew, at zero."""
        self.begun_at, self.is_new = moved, True

    def read(self, moved: int) -> int | None:
        """Return the kernel's count once so much has been moved in all; None for Unavailable."""
        if self.begun_at is None or self.is_new:
            self.is_new = False
            if self.forgets:
                self.previous = 0
            return None
        value = moved - self.begun_at
        self.count += (value - self.previous) % (1 << WIDTH)
        self.previous = value
        return self.count
