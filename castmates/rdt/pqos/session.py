"""What allocator and monitor share of pqos: one tool, one user of it at a time, and what is written down."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.group_folder import ABSENT, THERE
from castmates.linux.host import file_systems
from castmates.linux.kernel_files import below
from castmates.machine import pqos_state, pqos_text
from castmates.machine.journal import Change, Entry, Journal
from castmates.machine.lock import print_progress
from castmates.machine.pqos_text import State
from castmates.machine.pqos_tool import Interface, Pqos
from castmates.machine.resctrl_state import ALSO, FSTYPE, MOUNTED, POINT
from castmates.protocols import Say
from castmates.rdt.pqos.capabilities import parse_capabilities
from castmates.rdt.resctrl.capabilities import find_mount
from castmates.rdt.resctrl.foreign import foreign_groups, pqos_user
from castmates.rdt.resctrl.tree import KernelTree
from castmates.study.cache import Cache
from castmates.study.cpus import format_cpu_list

MOST_CLASSES = 32
SUPPORTED = re.compile(r"[4-9]\.|\d\d+\.")  # earlier ones have no --iface


class PqosSession:
    """Found the machine in one state, leaves it in the same."""

    def __init__(
        self, tool: Pqos, journal: Journal | None = None, purpose: str = "a study", say: Say = print_progress
    ) -> None:
        self.tool, self.journal, self.purpose, self.say = tool, journal or Journal(), purpose, say
        self.version = ""
        self.pause: Callable[[], None] = lambda: None  # of the series, which steps aside for every other call
        self.resume: Callable[[], None] = lambda: None
        self._former: State | None = None
        self._cache: Cache | None = None
        self._entries: list[Entry] = []
        self._classes: Entry | None = None

    @property
    def former(self) -> State:
        """What was in force before we came."""
        self._open()
        assert self._former is not None
        return self._former

    @property
    def cache(self) -> Cache:
        """What can be shared out."""
        self._open()
        assert self._cache is not None
        return self._cache

    def state(self) -> State:
        """Return what is in force now."""
        with self._undisturbed():
            return pqos_state.state_of(self.tool)

    def set(self, state: State) -> State:
        """Put a state in force, written down before; return what is then read."""
        text = pqos_state.as_text(state)
        if self._classes is None:
            change = Change(
                "cache classes", pqos_state.KIND, self.tool.interface, pqos_state.as_text(self.former), text
            )
            self._classes = self.journal.announce([change], self.purpose)[0]
            self._entries.append(self._classes)
        elif text not in self._classes.change.new.split(ALSO):
            self._classes = self.journal.amend(self._classes, self._classes.change.new + ALSO + text)
        with self._undisturbed():
            pqos_state.set_all(self.tool, text, pqos_state.as_text(pqos_state.state_of(self.tool)))
            return pqos_state.state_of(self.tool)

    def close(self) -> None:
        """Put everything back; safe to call twice."""
        self.pause()
        mine = {entry.number for entry in self._entries}
        entries, self._entries, self._classes, self._former = self._entries, [], None, None
        if entries:
            owner = self.journal.owner
            for undone in self.journal.restore(lambda entry: entry.owner == owner and entry.number in mine):
                if undone.how not in ("restored", "already"):
                    self.say(str(undone))

    def _open(self) -> None:
        if self._former is not None:
            return
        refuse_beside_others()
        if self.tool.interface == "os":
            self._announce_mount()
        self.version = pqos_text.parse_version(self.tool.call("--version"))
        if self.version != "unknown" and not SUPPORTED.match(self.version):
            raise CastmatesError(
                f"pqos {self.version} is too old: it has no --iface, without which it takes all of resctrl; install "
                "4.0 or a newer one."
            )
        former = pqos_state.state_of(self.tool)
        refuse_classes_in_use(former)
        self._cache = parse_capabilities(self.tool.call("-D"), former)
        self._former = former

    def _announce_mount(self) -> None:
        """Write down what merely starting pqos does with the kernel's interface: it mounts, and takes every class."""
        changes = [Change("resctrl mount", "resctrl-mount", str(POINT), ABSENT, MOUNTED)]
        changes += [
            Change("resctrl group of pqos", "group", str(POINT / f"COS{number}"), ABSENT, THERE)
            for number in range(1, MOST_CLASSES)
        ]
        self._entries += self.journal.announce(changes, self.purpose)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()


def refuse_beside_others(root: Path = Path("/")) -> None:
    """Refuse to start where others share the cache out: pqos would take their classes, or change them unseen."""
    if user := pqos_user():
        raise CastmatesError(f"{user} uses libpqos now, and only one may: end it, and run the same command again.")
    mount = find_mount(root)
    if mount is None:
        return
    groups = ", ".join(map(str, foreign_groups(KernelTree(below(root, mount.point)))))
    beside = f" with groups of others ({groups})" if groups else ""
    raise CastmatesError(
        f"'cache.driver' is pqos, but resctrl is mounted at {mount.point}{beside}: pqos would take all its classes, or "
        "change registers behind the kernel's back; write 'cache.driver: resctrl', or unmount it if nobody uses it."
    )


def refuse_classes_in_use(state: State) -> None:
    """Refuse where CPUs are in classes already: somebody partitions the cache with a tool like this one."""
    cpus = sorted(cpu for cpu, (_, number) in state.cores.items() if number)
    if cpus:
        raise CastmatesError(
            f"CPU {format_cpu_list(cpus)} is in a cache class of somebody else: have its owner end (pqos, rdtset, an "
            "orchestrator); if nobody needs it any more, reset the classes with: sudo pqos --iface=msr -R"
        )


def choose_interface(root: Path = Path("/"), writable: Callable[[Path], bool] | None = None) -> Interface:
    """Take the registers where they can be written, else the kernel's interface, which must be free (see above)."""
    may_write = writable or (lambda path: os.access(path, os.R_OK | os.W_OK))
    if may_write(root / "dev/cpu/0/msr"):
        return "msr"
    if FSTYPE in (file_systems(root) or ()):
        return "os"
    raise CastmatesError(
        "pqos has no way to the processor here: its registers cannot be written (run as root, after: sudo modprobe "
        "msr; a locked-down kernel does not allow it), and the kernel has no resctrl."
    )


def open_session(purpose: str, say: Say = print_progress) -> PqosSession:
    """Make the one session of a launch."""
    refuse_beside_others()
    return PqosSession(Pqos(choose_interface()), purpose=purpose, say=say)
