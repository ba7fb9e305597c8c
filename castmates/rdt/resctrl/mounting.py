"""Finds where resctrl is mounted; mounts it where that is allowed, and unmounts only what we mounted.

The kernel lets resctrl be mounted once in the whole system, and an unmount removes everybody's groups.
"""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.host import file_systems
from castmates.machine.facts import container_hints
from castmates.machine.journal import Change, Journal
from castmates.machine.resctrl_state import ABSENT, FSTYPE, MOUNTED, POINT, options_of
from castmates.rdt.resctrl.capabilities import find_mount

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
        _mount(made, purpose)
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


def _mount(made: Lease, purpose: str) -> None:
    if why := hopeless():
        raise CastmatesError(why)
    wanted = " ".join([MOUNTED, *made.options])
    assert made.journal is not None
    change = Change("resctrl mount", KIND, str(made.point), ABSENT, wanted)
    for error in made.journal.apply([change], purpose).values():
        raise CastmatesError(refused(error, made.options)) from None


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
