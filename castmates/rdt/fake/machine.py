"""The machine and kernel behind a resctrl file system in memory: mount, CPUs, time, failures and /proc."""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from castmates.rdt.fake.controls import Controls
from castmates.rdt.fake.group import Group, Handle, Node
from castmates.rdt.fake.groups import Groups, Rmids
from castmates.rdt.fake.kernel import Kernel, Processes, Status, Thread, refusal
from castmates.rdt.fake.layout import ROOT_FOLDER, Layout
from castmates.rdt.fake.monitors import Counters, Failure, Monitors, Source
from castmates.rdt.fake.shape import Shape, Throttle

OPTIONS = ("cdp", "cdpl2", "mba_MBps", "debug")  # in the order in which /proc/mounts names them


class FakeMachine:
    """All that outlives a mount; whatever calls on it does so as the thread that `acting` names."""

    def __init__(self, shape: Shape, kernel: Kernel, source: Source, mount_point: str) -> None:
        self.shape, self.kernel, self.mount_point = shape, kernel, mount_point
        self.processes = Processes()
        self._mutex = threading.RLock()
        self._callers = threading.local()
        self._status = Status()
        self._online = set(shape.cpus)
        self._monitors = Monitors(shape, kernel, source, Counters(shape, kernel, self._status))
        self._rmids = Rmids(shape, kernel, self._monitors.occupancy)
        self._options: tuple[str, ...] = ()
        self._layout: Layout | None = None
        self._bare = Node("", ROOT_FOLDER, None, None)  # the mount point while nothing is mounted there
        self._open: set[Handle] = set()

    @property
    def known(self) -> bool:
        """Whether the machine has anything that resctrl serves; without it there is no mount point."""
        return self.shape.allocates or self.shape.monitors

    @property
    def mounted(self) -> bool:
        """Whether it is mounted."""
        return self._layout is not None

    @contextmanager
    def acting(self, tid: int) -> Iterator[None]:
        """Do what follows, in this Python thread, as that thread of the machine; else init does it."""
        before = getattr(self._callers, "tid", 1)
        self._callers.tid = tid
        try:
            yield
        finally:
            self._callers.tid = before

    @property
    def _caller(self) -> Thread:
        return self.processes.thread(getattr(self._callers, "tid", 1))

    def mount(self, options: str = "") -> None:
        """Mount it with options such as "cdp,debug"."""
        with self._mutex:
            if self._caller.uid != 0:
                raise refusal(errno.EPERM)
            if not self.known:
                raise refusal(errno.ENOENT)
            wanted = [option for option in options.split(",") if option]
            if any(option not in OPTIONS or not self._offers(option) for option in wanted):
                raise refusal(errno.EINVAL)
            if self.mounted:
                raise refusal(errno.EBUSY)
            self._options = tuple(option for option in OPTIONS if option in wanted)
            controls = Controls(self.shape, self.kernel, self._online_caches, self._options)
            groups = Groups(self.kernel, controls, self._rmids, self._monitors, self.processes, self._status)
            groups.default.cpus = set(self._online)
            self._status.clear()
            self._layout = Layout(groups, "debug" in self._options, lambda: self._caller, lambda: self._online)

    def _offers(self, option: str) -> bool:
        throttle = self.shape.throttle
        if option == "mba_MBps":
            return throttle is not None and throttle.linear and any("mbm" in event for event in self.shape.events)
        second = self.shape.second is not None and self.shape.second.cdp
        return {"cdp": self.shape.cdp, "cdpl2": second, "debug": self.kernel.knows_debug}.get(option, False)

    def umount(self) -> None:
        """Unmount it: all groups and limits go."""
        with self._mutex:
            if self._caller.uid != 0:
                raise refusal(errno.EPERM)
            if self._layout is None:
                raise refusal(errno.EINVAL)
            if self._open:
                raise refusal(errno.EBUSY)
            self._layout.groups.remove_all()
            self._layout.root.remove()
            self._layout, self._options = None, ()

    @property
    def online_domains(self) -> list[int]:
        """Name the domains that have a CPU online."""
        return self._online_caches["L3"]

    @property
    def _online_caches(self) -> dict[str, list[int]]:
        """The caches that have a CPU online, by level."""
        levels = {"L3": self.shape.domains, "L2": self.shape.second.caches if self.shape.second else {}}
        return {
            level: sorted(number for number, cpus in caches.items() if self._online & set(cpus))
            for level, caches in levels.items()
        }

    def set_online(self, cpu: int, online: bool) -> None:
        """Switch a CPU off or on; a domain goes with its last CPU and comes back with no limits."""
        with self._mutex:
            if cpu not in self.shape.cpus:
                raise refusal(errno.ENOENT)
            before = self._online_caches
            if online:
                self._online.add(cpu)
            else:
                self._online.discard(cpu)
            for level, now in self._online_caches.items():
                for number in set(before[level]) ^ set(now):
                    self._change_domain(level, number, number in now)
            if self._layout is not None and online:
                self._layout.groups.default.cpus.add(cpu)
            elif self._layout is not None:
                self._layout.groups.drop_cpu(cpu)

    def _change_domain(self, level: str, number: int, comes: bool) -> None:
        watched = level == "L3"
        if watched:
            (self._rmids.add_domain if comes else self._rmids.drop_domain)(number)
        if self._layout is not None:
            controls = self._layout.groups.controls
            (controls.add_domain if comes else controls.drop_domain)(level, number)
            if watched:
                (self._layout.add_domain if comes else self._layout.drop_domain)(number)

    @property
    def now(self) -> float:
        """Seconds since the machine began."""
        return self._rmids.now

    def advance(self, seconds: float) -> None:
        """Let time pass; RMIDs in limbo are looked at once a second."""
        with self._mutex:
            self._rmids.advance(seconds)

    def fail(
        self, path: str, event: str, how: Failure | None, domain: int | None = None, reads: int | None = None
    ) -> None:
        """Let reads of a group's event fail: so many, or all until the next order (None); in one domain or in all."""
        with self._mutex:
            rmid = self.group(path).rmid
            for each in self.shape.domains if domain is None else (domain,):
                self._monitors.fail(rmid, event, each, how, reads)

    def proc(self, name: str) -> str:
        """Read /proc/<name>: "mounts", "filesystems" or "<tid>/cpu_resctrl_groups", as far as it is about resctrl."""
        with self._mutex:
            if name == "filesystems":
                return "nodev\tresctrl\n" if self.known else ""
            if name == "mounts":
                options = ",".join(("rw", "relatime", *self._options))
                return f"resctrl {self.mount_point} resctrl {options} 0 0\n" if self.mounted else ""
            tid, _, file = name.partition("/")
            try:
                thread = self.processes.thread(int(tid))
            except (OSError, ValueError):
                raise refusal(errno.ENOENT) from None
            if file != "cpu_resctrl_groups":
                raise refusal(errno.ENOENT)
            return "res:\nmon:\n" if self._layout is None else self._layout.groups.membership(thread)

    def lose(self, path: str, domain: int) -> None:
        """Let the hardware stop tracking a group's traffic in a domain, as AMD's does with ids that do not run."""
        with self._mutex:
            self._monitors.lose(self.group(path).rmid, domain)

    def track(self, path: str, domain: int) -> None:
        """Let it track a group again that it has lost."""
        with self._mutex:
            self._monitors.track(self.group(path).rmid, domain)

    # What a modelled machine needs to know.

    @property
    def groups(self) -> list[Group]:
        """All groups, each control group before its monitoring groups; the default one first."""
        return [] if self._layout is None else list(self._layout.groups)

    def group(self, path: str) -> Group:
        """Find a group by its path."""
        group = next((group for group in self.groups if group.path == path), None)
        if group is None:
            raise refusal(errno.ENOENT)
        return group

    def mask(self, group: Group, domain: int, code: bool = False) -> int:
        """Return the mask that rules a group in a domain: of data, or of code where the two are distinguished.

        It is the processor's, which may have more ways than the kernel wrote.
        """
        written = self._value(group, domain, ("L3", "L3CODE" if code else "L3DATA"), self.shape.full)
        return held_mask(self.shape, written)

    def bandwidth(self, group: Group, domain: int) -> int:
        """Return the bandwidth that a group may have in a domain, in the machine's unit, as the processor rounds it."""
        written = self._value(group, domain, ("MB",), self.shape.throttle.most if self.shape.throttle else 0)
        return held_throttle(self.shape, written)

    def msr(self, cpu: int, number: int) -> int:
        """Read a register of a CPU, as /dev/cpu/*/msr does; for root."""
        with self._mutex:
            if cpu not in self._online:
                raise refusal(errno.ENXIO)
            if self._caller.uid != 0:
                raise refusal(errno.EPERM)
            controls = None if self._layout is None else self._layout.groups.controls
            return register(self.shape, controls, cpu, number)

    def _value(self, group: Group, domain: int, names: tuple[str, ...], otherwise: int) -> int:
        with self._mutex:
            schemas = [] if self._layout is None else self._layout.groups.controls.schemas
            values = [each.values[domain][group.closid] for each in schemas if each.name in names]
            return values[0] if values else otherwise

    def ruling(self, tid: int, cpu: int) -> tuple[Group, Group]:
        """Return the groups whose limits rule a thread on a CPU, and to which its events are counted."""
        with self._mutex:
            if self._layout is None:
                raise refusal(errno.ENODEV)
            return self._layout.groups.ruling(self.processes.thread(tid), cpu)


# What the processor makes of the values that the kernel gives it: seen in its registers and its caches only.
#
# The kernel's schemata go on showing what was written. Each resource has registers of its own, one for each class.

# First registers. Intel's throttles are shares that are withheld; AMD's are limits.
MASKS_FROM, SECOND_MASKS_FROM = 0xC90, 0xD10
DELAYS_FROM, LIMITS_FROM, SLOW_LIMITS_FROM = 0xD50, 0xC000_0200, 0xC000_0280


def held_mask(shape: Shape, mask: int) -> int:
    """Return the ways that a mask gives: of those that are tied all or none."""
    return mask | shape.tied if mask & shape.tied else mask


def held_throttle(shape: Shape, value: int) -> int:
    """Return the throttle that holds."""
    return value if shape.throttle is None else shape.throttle.becomes.get(value, value)


def register(shape: Shape, controls: Controls | None, cpu: int, number: int) -> int:
    """Return what a register of a CPU holds; of one that there is not the processor refuses to speak."""
    if shape.is_arm:
        raise refusal(errno.ENOENT)  # Linux has no /dev/cpu there
    for resource, first, count in _kinds(shape):
        if 0 <= (place := number - first) < count:
            return _held(shape, controls, cpu, resource, place)
    raise refusal(errno.EIO)


def _kinds(shape: Shape) -> Iterator[tuple[str, int, int]]:
    """Yield the resources with their first register, and how many they have."""
    for resource, first, ways in (("L3", MASKS_FROM, shape.last), ("L2", SECOND_MASKS_FROM, shape.second)):
        if ways:
            yield resource, first, ways.closids
    for resource, limits, throttle in (("MB", LIMITS_FROM, shape.throttle), ("SMBA", SLOW_LIMITS_FROM, shape.slow)):
        if throttle:
            yield resource, DELAYS_FROM if throttle.linear else limits, throttle.closids


def _held(shape: Shape, controls: Controls | None, cpu: int, resource: str, place: int) -> int:
    if ways := {"L3": shape.last, "L2": shape.second}.get(resource):
        domain = next((number for number, cpus in ways.caches.items() if cpu in cpus), None)
        mask = _written(controls, resource, domain, place, ways.full)
        return held_mask(shape, mask) if resource == "L3" else mask
    throttle = (shape.throttle if resource == "MB" else shape.slow) or Throttle()
    domain = next(number for number, cpus in shape.domains.items() if cpu in cpus)
    known = None if resource == "MB" and controls is not None and controls.mbps else controls
    value = throttle.becomes.get(asked := _written(known, resource, domain, place, throttle.most), asked)
    return 100 - value if throttle.linear else value


def _written(controls: Controls | None, resource: str, domain: int | None, place: int, otherwise: int) -> int:
    """Return what the kernel wrote into one of these registers; with CDP each class has two, data's and code's."""
    schemas = [] if controls is None else [each for each in controls.schemas if each.resource == resource]
    if not schemas:
        return otherwise
    if domain is None:  # this CPU has no such cache
        raise refusal(errno.EIO)
    return schemas[place % len(schemas)].values[domain][place // len(schemas)]
