"""Counters for traffic that belong to an id and an event in a domain (AMD's ABMC, `mbm_assign_mode`)."""

import errno

from castmates.rdt.fake.kernel import Kernel
from castmates.rdt.fake.shape import Shape
from castmates.rdt.fake.status import Status
from castmates.rdt.fake.texts import refusal

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
