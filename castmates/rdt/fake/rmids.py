"""RMIDs: taken, given back, and kept in limbo while the cache is full of what they marked."""

import errno
from collections import deque
from collections.abc import Callable

from castmates.rdt.fake.kernel import Kernel
from castmates.rdt.fake.shape import Shape
from castmates.rdt.fake.texts import refusal

INTERVAL = 1.0  # seconds between two looks of a domain's limbo worker
Occupancy = Callable[[int, int], int | None]  # of an RMID in a domain, in bytes; None where it cannot be read


class Rmids:
    """All RMIDs but 0, which is the default group's; also keeps the time, which its owner advances."""

    def __init__(self, shape: Shape, kernel: Kernel, occupancy: Occupancy) -> None:
        self.shape, self.kernel, self._occupancy = shape, kernel, occupancy
        self.now = 0.0
        self.most = shape.cache_bytes  # that the threshold can be
        self.threshold = 0
        self.free: deque[int] = deque(range(1, shape.rmids))
        self.limbo: dict[int, set[int]] = {}  # RMID -> domains in which it is still to be found clean
        self._due: dict[int, float] = {}  # domain -> when its worker looks next
        self.domains: set[int] = set(shape.domains)
        if shape.rmids:
            self.set_threshold(shape.cache_bytes // shape.rmids)

    def set_threshold(self, wanted: int) -> None:
        """Return below which occupancy an RMID counts as clean."""
        if wanted > self.most:
            raise refusal(errno.EINVAL)
        self.threshold = wanted // self.shape.scale * self.shape.scale

    def take(self, closid: int = 0) -> int:
        """Take the one that has been free for longest; where ids belong to classes, of this one."""
        if not self.free:
            raise refusal(errno.EBUSY if self.limbo else errno.ENOSPC)
        of_class = self.shape.rmids_of_class
        rmid = next((each for each in self.free if not of_class or each // of_class == closid), None)
        if rmid is None:
            raise refusal(errno.ENOSPC)
        self.free.remove(rmid)
        return rmid

    def dirt(self, closid: int) -> int:
        """Return how many ids of a class are in limbo, where they belong to classes."""
        of_class = self.shape.rmids_of_class
        return sum(rmid // of_class == closid for rmid in self.limbo) if of_class else 0

    def give(self, rmid: int) -> None:
        """Give one back; what it left in the cache may keep it in limbo."""
        dirty = self._dirty_domains(rmid) if "llc_occupancy" in self.shape.events else set()
        if not dirty:
            self.free.append(rmid)
            return
        self.limbo[rmid] = dirty
        for domain in dirty:
            self._due.setdefault(domain, self.now + INTERVAL)

    def _dirty_domains(self, rmid: int) -> set[int]:
        if self.kernel.limbo_for_all:
            return set(self.domains)
        # Only the domain of the CPU that removes the group is looked at; the lowest one stands for it here.
        here = min(self.domains)
        occupancy = self._occupancy(rmid, here)
        clean = occupancy is None or occupancy <= self.threshold
        return self.domains - {here} if clean else set(self.domains)

    def advance(self, seconds: float) -> None:
        """Let time pass, and the limbo workers look at their RMIDs."""
        end = self.now + seconds
        while self._due and (next_look := min(self._due.values())) <= end:
            self.now = next_look
            for domain in [each for each, due in self._due.items() if due == next_look]:
                self._look(domain)
        self.now = end

    def _look(self, domain: int) -> None:
        for rmid in sorted(rmid for rmid, domains in self.limbo.items() if domain in domains):
            occupancy = self._occupancy(rmid, domain)
            if occupancy is not None and occupancy < self.threshold:
                self._found_clean(rmid, domain)
        if any(domain in domains for domains in self.limbo.values()):
            self._due[domain] += INTERVAL
        else:
            del self._due[domain]

    def _found_clean(self, rmid: int, domain: int) -> None:
        self.limbo[rmid].discard(domain)
        if not self.limbo[rmid]:
            del self.limbo[rmid]
            self.free.append(rmid)

    def drop_domain(self, domain: int) -> None:
        """Count everything in a domain as clean that has gone offline."""
        self.domains.discard(domain)
        self._due.pop(domain, None)
        for rmid in sorted(rmid for rmid, domains in self.limbo.items() if domain in domains):
            self._found_clean(rmid, domain)

    def add_domain(self, domain: int) -> None:
        """Watch a domain that has come online."""
        self.domains.add(domain)
