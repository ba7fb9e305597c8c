"""What the processor's registers hold of the shares that the kernel was given: read and compared, never written.

The kernel's schemata show what was written there. The processor may hold something else: ways that I/O fills too may
come only together, and a throttle may become another one.
"""

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from castmates.protocols import HeldOtherwise
from castmates.rdt.resctrl.schemata import CODE, DATA, L3, MB, Schemata
from castmates.rdt.resctrl.tree import Tree
from castmates.study import masks
from castmates.study.cache import Cache

# A register for each class of service, from these on.
MASKS_FROM = 0xC90  # Intel and AMD; with separate masks for code and data two for each class, data's first
DELAYS_FROM = 0xD50  # Intel: the share of the bandwidth that is withheld, in per cent
LIMITS_FROM = 0xC000_0200  # AMD

HOW = "read once under each partition, by class of service, and compared with what the kernel was asked"
DEFAULT = 0  # the class of the default group

ReadRegister = Callable[[int, int], int]  # CPU and number -> value; OSError where it cannot be read


class Registers:
    """The registers behind the groups of one mounted resctrl."""

    def __init__(self, read: ReadRegister, tree: Tree, cache: Cache, domain_of: Mapping[int, int]) -> None:
        self._read, self._tree, self._cache = read, tree, cache
        self._cpu_of = {domain: cpu for cpu, domain in sorted(domain_of.items(), reverse=True)}  # the lowest of each
        self._classes = {"": DEFAULT}  # group -> its class of service
        self.lacking = ""  # why they are not compared

    def find_class(self, path: str, write: Callable[[Schemata], None] | None) -> None:
        """Find a group's class of service: where the mount shows it, else by the register that follows its mask.

        For that the group, which is still empty, is given two values one after the other by `write`; without `write`
        it is left as it is.
        """
        if self.lacking:
            return
        try:
            found = self._shown_class(path)
            if found is None and write is not None:
                found = self._followed_class(write)
        except OSError as error:
            self.give_up(error)
            return
        if found is None:
            self.lacking = "the classes of service of the groups could not be found; mount resctrl with -o debug"
        else:
            self._classes[path] = found

    def differences(
        self, member: str, path: str, asked: Schemata, domains: Collection[int]
    ) -> list[HeldOtherwise] | None:
        """List what the processor holds otherwise for a group on these caches; None where that cannot be read."""
        wanted = [
            (line, domain, value)
            for line, values in asked.items()
            for domain, value in values.items()
            if domain in domains and not self._is_free(line, value)
        ]
        if self.lacking or any(self._place(line, DEFAULT) is None for line, _, _ in wanted):
            return None
        found = []
        try:
            for line, domain, value in wanted:
                if (held := self._held(line, domain, self._classes[path])) != value:
                    found.append(HeldOtherwise(member, line, domain, value, held))
        except OSError as error:
            self.give_up(error)
            return None
        return found

    def give_up(self, error: OSError) -> None:
        """Note why no register is read."""
        help_ = "root and `modprobe msr` show what the processor holds"
        self.lacking = f"the processor's registers cannot be read ({os.strerror(error.errno or 0)}): {help_}"

    def _is_free(self, line: str, value: int) -> bool:
        """Check whether it is no throttle at all, in a unit that the processor has no register for."""
        most = self._cache.bandwidth.most if self._cache.bandwidth else None
        return line == MB and value == most and self._place(MB, DEFAULT) is None

    def _held(self, line: str, domain: int, number: int) -> int:
        """Return what the processor holds, in the kernel's words."""
        place = self._place(line, number)
        if place is None or domain not in self._cpu_of:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        value = self._read(self._cpu_of[domain], place)
        return 100 - value if line == MB and place < LIMITS_FROM else value

    def _place(self, line: str, number: int) -> int | None:
        """Return the number of a register; None for a setting that has none."""
        if line == MB:
            unit = self._cache.bandwidth.unit if self._cache.bandwidth else ""
            first = {"%": DELAYS_FROM, "1/8 GB/s": LIMITS_FROM}.get(unit)  # MB/s are a loop in the kernel
            return None if first is None else first + number
        return {L3: MASKS_FROM + number, DATA: MASKS_FROM + 2 * number, CODE: MASKS_FROM + 2 * number + 1}.get(line)

    def _shown_class(self, path: str) -> int | None:
        """Return the class that a mount with `debug` shows."""
        with suppress(OSError, ValueError):
            return int(self._tree.read(f"{path}/ctrl_hw_id"))
        return None

    def _followed_class(self, write: Callable[[Schemata], None]) -> int | None:
        """Return the class whose register, and no other, changes when the group's setting does."""
        domain = next((domain for domain in self._cache.domains if domain in self._cpu_of), None)
        if domain is None:
            return None
        line, values = self._two_values()
        seen: list[list[int]] = []
        self._all(line, domain)  # where they cannot be read it fails here, before anything is written
        with self._tree.locked():
            for value in values:
                write({line: {domain: value}})
                seen.append(self._all(line, domain))
        changed = [number for number, (one, other) in enumerate(zip(*seen, strict=True)) if one != other]
        return changed[0] if len(changed) == 1 else None

    def _two_values(self) -> tuple[str, Sequence[int]]:
        """Return a line of the schemata and two values that a group may have there."""
        cache = self._cache
        if cache.ways:
            return DATA if cache.cdp else L3, (masks.make(masks.fewest(cache)), cache.full)
        if cache.bandwidth is None or self._place(MB, DEFAULT) is None:
            return MB, ()
        return MB, (cache.bandwidth.rounded(cache.bandwidth.least), cache.bandwidth.most)

    def _all(self, line: str, domain: int) -> list[int]:
        """Return what every class holds there."""
        count = int(self._tree.read(f"info/{line}/num_closids"))
        places = [self._place(line, number) for number in range(count)]
        return [self._read(self._cpu_of[domain], place) for place in places if place is not None]
