"""Event files: what a source of occupancy and traffic gives, as the kernel shows it, with its failures."""

from dataclasses import dataclass
from typing import Literal, Protocol

from castmates.rdt.fake.counters import Counters
from castmates.rdt.fake.group import Group
from castmates.rdt.fake.kernel import Kernel
from castmates.rdt.fake.lost_counts import UNAVAILABLE, LostCount
from castmates.rdt.fake.shape import Shape

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
