"""Finds where resctrl is mounted; mounts it where that is allowed, and unmounts only what we mounted.

The kernel lets resctrl be mounted once in the whole system, and an unmount removes everybody's groups.
"""

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.host import file_systems
from castmates.machine.facts import container_hints
from castmates.machine.journal import Change, Journal
from castmates.machine.lock import print_progress
from castmates.machine.resctrl_state import ABSENT, FSTYPE, MOUNTED, POINT, options_of
from castmates.protocols import HeldOtherwise, Say
from castmates.rdt.resctrl.capabilities import find_mount
from castmates.rdt.resctrl.foreign import Tasks
from castmates.rdt.resctrl.groups import ResctrlJournal
from castmates.rdt.resctrl.tree import Tree
from castmates.rdt.resctrl.wanted_schemata import CODE, DATA, L3, MB, Schemata
from castmates.study import masks
from castmates.study.cache import Cache

KIND = "resctrl-mount"
BY_HAND = f"sudo mount -t {FSTYPE} {FSTYPE} {POINT}"
ON_HOST = f"mount it on the host ({BY_HAND}) and start the container with -v {POINT}:{POINT}"


@dataclass
class Lease:
    """A mounted resctrl that several parts of this process use; what we mounted goes with the last of them."""

    point: Path
    options: list[str]
    journal: Journal | None = None  # of the mount, where it is ours
    users: int = field(default=0)

    def release(self) -> list[str]:
        """Let go; list in sentences what could not be put back."""
        self.users -= 1
        if self.users or _leases.get(self.point) is not self:
            return []
        del _leases[self.point]
        if self.journal is None:
            return []
        mine, target = self.journal.owner, str(self.point)
        undone = self.journal.restore(
            lambda entry: entry.owner == mine and (entry.change.kind, entry.change.target) == (KIND, target)
        )
        return [str(entry) for entry in undone if entry.how != "restored"]


_leases: dict[Path, Lease] = {}  # what this process uses now, by mount point


def lease(cdp: bool = False, purpose: str = "a study") -> Lease:
    """Use the mounted resctrl, or mount it; where neither can be, an error explains why in one sentence."""
    mount = find_mount()
    if mount is None:
        made = Lease(POINT, ["cdp"] if cdp else [], Journal())
        if why := hopeless():
            raise CastmatesError(why)
        wanted = " ".join([MOUNTED, *made.options])
        assert made.journal is not None
        change = Change("resctrl mount", KIND, str(made.point), ABSENT, wanted)
        for error in made.journal.apply([change], purpose).values():
            raise CastmatesError(refused(error, made.options)) from None
    else:
        point = Path(mount.point)
        made = _leases.get(point) or Lease(point, options_of(mount))
    made.users += 1
    return _leases.setdefault(made.point, made)


def why_not_mounted(root: Path = Path("/")) -> str:
    """Explain in one sentence why resctrl is not mounted and what to do, or "" where it is."""
    if find_mount(root) is not None:
        return ""
    known = file_systems(root)
    if known is not None and FSTYPE not in known:
        return (
            "this machine has no resctrl: its processor has no cache allocation or monitoring, or its kernel was built"
            " without it, or a hypervisor hides it (castmates doctor shows which)."
        )
    if container_hints(root):
        return f"resctrl is not mounted in this container, where {POINT} is empty or absent: {ON_HOST}."
    return f"resctrl is not mounted: let root mount it once ({BY_HAND}), or run `sudo castmates doctor --grant`."


def hopeless() -> str:
    """Explain why resctrl is not mounted and trying is useless (no such file system, or not root), or return ""."""
    known = file_systems()
    if (known is not None and FSTYPE not in known) or os.geteuid() != 0:
        return why_not_mounted()
    return ""


def refused(error: OSError, options: list[str]) -> str:
    """Explain in one sentence why the kernel refused to mount, and what to do."""
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    if error.errno == errno.EBUSY:
        return (
            f"resctrl cannot be mounted at {POINT} ({code}): it is mounted already where this process cannot see it,"
            " in another mount namespace or on this container's host, and only one mount is possible; use that one."
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        where = "a container may not" if container_hints(Path("/")) else "this process lacks CAP_SYS_ADMIN"
        return f"resctrl cannot be mounted at {POINT} ({code}): {where}; {ON_HOST}."
    if error.errno == errno.ENOENT:
        return f"resctrl cannot be mounted ({code}): there is no {POINT}; {why_not_mounted()}"
    if error.errno in (errno.EINVAL, errno.EOPNOTSUPP) and options:
        return (
            f"resctrl cannot be mounted with '{','.join(options)}' ({code}): this processor or kernel does not have"
            " that; take it out of the study."
        )
    return f"resctrl cannot be mounted at {POINT} ({code}, {error.strerror}); try by hand: {BY_HAND}."


# What the processor's registers hold of the shares that the kernel was given: read and compared, never written.
#
# The kernel's schemata show what was written there. The processor may hold something else: ways that I/O fills too may
# come only together, and a throttle may become another one.

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


# A mounted resctrl as one run uses it: what its allocator and its monitor share.


@dataclass(frozen=True)
class Mounted:
    """The files and threads of a resctrl, where changes are noted, and how to let go of it."""

    tree: Tree
    tasks: Tasks
    journal: ResctrlJournal
    domain_of: Mapping[int, int]  # CPU -> its last-level cache
    options: Sequence[str] = ()  # of the mount
    say: Say = print_progress
    release: Callable[[], list[str]] = list  # lists in sentences what could not be put back
    read_register: ReadRegister | None = None  # of the processor; None where there is none to ask
    family: int = 0  # of the processor; 0 where it shows none
