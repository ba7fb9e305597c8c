"""The counters of traffic that groups are assigned (ABMC): each domain has so many, for all groups together."""

import errno
from collections.abc import Iterable

from castmates.rdt.fake.kernel import Kernel
from castmates.rdt.fake.shape import Shape
from castmates.rdt.fake.status import Status
from castmates.rdt.fake.texts import c_string, refusal, strip

EVENT_MODE, DEFAULT_MODE = "mbm_event", "default"
OCCUPANCY = "llc_occupancy"


class Counters:
    """Who has a counter of which event where; all have one where the machine or its kernel does not assign them."""

    def __init__(self, shape: Shape, kernel: Kernel, domains: Iterable[int], status: Status) -> None:
        self.most = shape.counters if kernel.assigns_counters else 0
        self.mode = EVENT_MODE if self.most else DEFAULT_MODE
        self._events = [event for event in shape.events if event != OCCUPANCY]
        self._status = status
        self._held: dict[int, set[tuple[int, str]]] = {domain: set() for domain in domains}  # (RMID, event)

    def begin(self, rmid: int) -> None:
        """Assign a new group what is left; a group goes without where nothing is."""
        for event in self._events if self.mode == EVENT_MODE else ():
            for domain in self._held:
                if not self.left(domain):
                    break
                self._held[domain].add((rmid, event))

    def end(self, rmid: int) -> None:
        """Take a group's counters back."""
        for held in self._held.values():
            held.difference_update({each for each in held if each[0] == rmid})

    def counts(self, rmid: int, event: str, domain: int) -> bool:
        """Check whether an event of a group is counted."""
        return self.mode != EVENT_MODE or event == OCCUPANCY or (rmid, event) in self._held.get(domain, ())

    def left(self, domain: int) -> int:
        """How many counters nobody has."""
        return self.most - len(self._held[domain])

    def show_mode(self) -> str:
        """Write info/L3_MON/mbm_assign_mode."""
        return "".join(f"[{mode}]\n" if mode == self.mode else f"{mode}\n" for mode in (EVENT_MODE, DEFAULT_MODE))

    def set_mode(self, data: bytes) -> None:
        """Take what is written to it."""
        mode = strip(c_string(data))
        if mode not in (EVENT_MODE, DEFAULT_MODE):
            raise refusal(errno.EINVAL)
        self.mode = mode

    def show_most(self) -> str:
        """Write info/L3_MON/num_mbm_cntrs."""
        return ";".join(f"{domain}={self.most}" for domain in self._held) + "\n"

    def show_left(self) -> str:
        """Write info/L3_MON/available_mbm_cntrs."""
        return ";".join(f"{domain}={self.left(domain)}" for domain in self._held) + "\n"

    def show(self, rmid: int) -> str:
        """Write a group's mbm_L3_assignments."""
        return "".join(
            f"{event}:"
            + ";".join(f"{domain}={'e' if (rmid, event) in held else '_'}" for domain, held in self._held.items())
            + "\n"
            for event in self._events
        )

    def assign(self, rmid: int, data: bytes) -> None:
        """Take what is written to it: "mbm_total_bytes:0=e;1=_", with * for all domains."""
        self._status.clear()
        for line in filter(None, c_string(data).split("\n")):
            event, _, wishes = line.partition(":")
            if event not in self._events:
                self._status.say(f"Invalid event {event}")
                raise refusal(errno.EINVAL)
            for wish in wishes.split(";"):
                place, _, how = wish.partition("=")
                for domain in self._held if place == "*" else (int(place),):
                    self._assign_one(rmid, event, domain, how)

    def _assign_one(self, rmid: int, event: str, domain: int, how: str) -> None:
        if how == "_":
            self._held[domain].discard((rmid, event))
        elif (rmid, event) not in self._held[domain] and not self.left(domain):
            self._status.say(f"Failed to allocate counter for {event} in domain {domain}")
            raise refusal(errno.ENOSPC)
        else:
            self._held[domain].add((rmid, event))
