"""Groups: who is in them, which CPUs they have, how they come, move and go."""

import errno
from collections import deque
from collections.abc import Callable, Iterator

from castmates.rdt.fake.controls import EXCLUSIVE, Controls
from castmates.rdt.fake.group import SHAREABLE, Group
from castmates.rdt.fake.kernel import Kernel, Processes, Status, Thread, refusal
from castmates.rdt.fake.monitors import Monitors
from castmates.rdt.fake.shape import Shape

# RMIDs: taken, given back, and kept in limbo while the cache is full of what they marked.

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


class Groups:
    """All groups of one mount."""

    def __init__(
        self, kernel: Kernel, controls: Controls, rmids: Rmids, monitors: Monitors, processes: Processes, status: Status
    ) -> None:
        self.kernel, self.controls, self.rmids, self.monitors = kernel, controls, rmids, monitors
        self.processes, self.status = processes, status
        self.default = Group("", 0, 0)
        self._controls = [self.default]
        monitors.own(self.default)

    def __iter__(self) -> Iterator[Group]:
        for group in self._controls:
            yield group
            yield from group.monitoring

    @property
    def modes(self) -> dict[int, str]:
        """The mode of every CLOSID in use."""
        return {group.closid: group.mode for group in self._controls}

    def make_control(self, name: str) -> Group:
        """Make a control group: with a CLOSID, an RMID, and what a new group may take."""
        group = Group(name, 0, 0)
        if self.kernel.rmid_first:
            self._take_rmid(group)
        try:
            group.closid = self.controls.take_closid(self.rmids.dirt)
        except OSError:
            self.status.say("Out of CLOSIDs")
            if self.kernel.rmid_first:
                self._give_rmid(group)
            raise
        try:
            if not self.kernel.rmid_first:
                self._take_rmid(group)
        except OSError:
            self.controls.give_closid(group.closid)
            raise
        try:
            self.controls.begin(group.closid, self.modes, self.status)
        except OSError:
            self._give_rmid(group)
            self.controls.give_closid(group.closid)
            raise
        self._controls.append(group)
        return group

    def make_monitoring(self, control: Group, name: str) -> Group:
        """Make a monitoring group within a control group."""
        group = Group(name, control.closid, 0, control)
        self._take_rmid(group)
        control.monitoring.append(group)
        return group

    def _take_rmid(self, group: Group) -> None:
        if not self.controls.shape.monitors:
            return
        try:
            group.rmid = self.rmids.take(group.closid)
        except OSError:
            self.status.say("Out of RMIDs")
            raise
        self.monitors.own(group)

    def _give_rmid(self, group: Group) -> None:
        group.removed = True
        if self.controls.shape.monitors:
            self.monitors.counters.take_all(group.rmid)
            self.rmids.give(group.rmid)

    def remove(self, group: Group) -> None:
        """Remove a group: its threads and CPUs fall to the one above it."""
        heir = group.control or self.default
        for thread in self.threads(group):
            thread.closid, thread.rmid = heir.closid, heir.rmid
        if group.control is not None:
            group.control.monitoring.remove(group)
            self._give_rmid(group)
            return
        self.default.cpus |= group.cpus
        self._controls.remove(group)
        self._give_rmid(group)
        self.controls.give_closid(group.closid)
        for part in group.monitoring:
            self._give_rmid(part)

    def remove_all(self) -> None:
        """Leave the default group alone with everything, as umount does."""
        for thread in self.processes:
            thread.closid = thread.rmid = 0
        for group in [each for each in self if each is not self.default]:
            self._give_rmid(group)

    def move(self, group: Group, control: Group, name: str) -> None:
        """Rename a monitoring group, and make it part of this control group with its threads."""
        if group.control is not None and group.control is not control:
            threads = self.threads(group)
            group.control.monitoring.remove(group)
            control.monitoring.append(group)
            group.control, group.closid = control, control.closid
            for thread in threads:
                thread.closid = group.closid
        group.name = name

    def threads(self, group: Group) -> list[Thread]:
        """Return the threads that tasks lists: with those of its monitoring groups, in the order of their births."""
        if group.control is None:
            allocates = self.controls.shape.allocates  # without allocation the kernel lists no task here
            return [thread for thread in self.processes if allocates and thread.closid == group.closid]
        rmid, closid = group.rmid, group.closid
        return [thread for thread in self.processes if thread.rmid == rmid and thread.closid == closid]

    def admit(self, group: Group, thread: Thread) -> None:
        """Move a thread into a group; a monitoring group takes it from its own control group only."""
        if group.control is not None and thread.closid != group.closid:
            self.status.say("Can't move task to different control group")
            raise refusal(errno.EINVAL)
        thread.closid, thread.rmid = group.closid, group.rmid

    def membership(self, thread: Thread) -> str:
        """Write /proc/<tid>/cpu_resctrl_groups."""
        control = next(group for group in self._controls if group.closid == thread.closid)
        part = next((group.name for group in control.monitoring if group.rmid == thread.rmid), "")
        return f"res:{control.name or '/'}\nmon:{part}\n"

    def ruling(self, thread: Thread, cpu: int) -> tuple[Group, Group]:
        """Return the groups whose controls rule a thread on a CPU, and to which it is counted."""
        seat = next((group for group in self._controls[1:] if cpu in group.cpus), self.default)
        watched = next((group for group in seat.monitoring if cpu in group.cpus), seat)
        closid, rmid = thread.closid or seat.closid, thread.rmid or watched.rmid
        control = next(group for group in self._controls if group.closid == closid)
        counted = next((group for group in self if group.rmid == rmid), control)
        return control, counted

    def assign_cpus(self, group: Group, cpus: frozenset[int]) -> None:
        """Give a group these CPUs instead of those that it has."""
        (self._assign_to_control if group.control is None else self._assign_to_monitoring)(group, cpus)

    def _assign_to_control(self, group: Group, cpus: frozenset[int]) -> None:
        dropped = group.cpus - cpus
        if dropped and group is self.default:
            self.status.say("Can't drop CPUs from default group")
            raise refusal(errno.EINVAL)
        self.default.cpus |= dropped
        added = cpus - group.cpus
        for other in self._controls:
            if other is not group and other.cpus & added:
                other.cpus -= added
                for part in other.monitoring:
                    part.cpus &= other.cpus
        group.cpus = set(cpus)
        for part in group.monitoring:
            part.cpus.clear()

    def _assign_to_monitoring(self, group: Group, cpus: frozenset[int]) -> None:
        control = group.control or self.default
        if cpus - control.cpus:
            self.status.say("Can only add CPUs to mongroup that belong to parent")
            raise refusal(errno.EINVAL)
        for other in control.monitoring:
            if other is not group:
                other.cpus -= cpus - group.cpus
        group.cpus = set(cpus)

    def drop_cpu(self, cpu: int) -> None:
        """Take a CPU that goes offline out of its group."""
        for group in self:
            group.cpus.discard(cpu)

    def set_mode(self, group: Group, mode: str) -> None:
        """Change a control group's mode."""
        if mode == group.mode:
            return
        if mode == SHAREABLE:
            group.mode = mode
        elif mode == EXCLUSIVE:
            if not self.controls.may_be_exclusive(group.closid, self.modes, self.status):
                raise refusal(errno.EINVAL)
            group.mode = mode
        else:
            self.status.say(self._no_such_mode(group, mode))
            raise refusal(errno.EINVAL)

    def _no_such_mode(self, group: Group, mode: str) -> str:
        if mode != "pseudo-locksetup":
            return "Unknown or unsupported mode"
        if group is self.default:
            return "Cannot pseudo-lock default group"
        if any(schema.peer for schema in self.controls.schemas):
            return "CDP enabled"
        return "Pseudo-locking not supported"
