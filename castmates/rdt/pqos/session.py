"""What allocator and monitor share of pqos: one tool, one user of it at a time, and what is written down."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux.cgroups import ABSENT, THERE
from castmates.linux.host import file_systems
from castmates.linux.kernel_files import below
from castmates.machine import pqos_tool, resctrl_state
from castmates.machine.journal import Change, Entry, Journal
from castmates.machine.lock import print_progress
from castmates.machine.pqos_tool import Interface, Pqos, State
from castmates.machine.resctrl_state import ALSO, FSTYPE, MOUNTED, POINT
from castmates.protocols import Held, Say
from castmates.rdt.pqos.classes import DEFAULT, Arrangement, arrange, as_state, parse_capabilities, schemata_of
from castmates.rdt.resctrl.capabilities import find_mount
from castmates.rdt.resctrl.foreign import Tasks, foreign_groups, pqos_user
from castmates.rdt.resctrl.tree import KernelTree
from castmates.rdt.resctrl.wanted_schemata import differences, loses_ways, name_of, one_line
from castmates.study.cache import Cache
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import REST, Share

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
            return resctrl_state.state_of(self.tool)

    def set(self, state: State) -> State:
        """Put a state in force, written down before; return what is then read."""
        text = resctrl_state.as_text(state)
        if self._classes is None:
            change = Change(
                "cache classes", resctrl_state.KIND, self.tool.interface, resctrl_state.as_text(self.former), text
            )
            self._classes = self.journal.announce([change], self.purpose)[0]
            self._entries.append(self._classes)
        elif text not in self._classes.change.new.split(ALSO):
            self._classes = self.journal.amend(self._classes, self._classes.change.new + ALSO + text)
        with self._undisturbed():
            resctrl_state.set_all(self.tool, text, resctrl_state.as_text(resctrl_state.state_of(self.tool)))
            return resctrl_state.state_of(self.tool)

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
        self.version = pqos_tool.parse_version(self.tool.call("--version"))
        if self.version != "unknown" and not SUPPORTED.match(self.version):
            raise CastmatesError(
                f"pqos {self.version} is too old: it has no --iface, without which it takes all of resctrl; install "
                "4.0 or a newer one."
            )
        former = resctrl_state.state_of(self.tool)
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


# Cache ways and memory bandwidth through Intel's pqos, where resctrl cannot be used.


class PqosAllocator:
    """Puts the CPUs of members into classes; a member has what its CPUs have."""

    name = "pqos"

    def __init__(
        self, session: PqosSession, tasks: Tasks, say: Say = print_progress, beyond_site: bool = False
    ) -> None:
        self.session, self.tasks, self.say, self._beyond_site = session, tasks, say, beyond_site
        self._members: Mapping[str, Held] = {}
        self._arrangement: Arrangement | None = None
        self._seen: State | None = None  # what was read last

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Look what there is, and refuse where others are."""
        self._members = members
        self._seen = self.session.former
        self.apply([])

    def apply(self, shares: Sequence[Share]) -> bool:
        """Give out these shares, and what was found to those not named, and prove that they were taken.

        True where a member has lost ways: nothing evicts what lies in them.
        """
        former, cache = self.session.former, self.session.cache
        self._check(shares)
        wanted = arrange(shares, self._members, former, cache, self._beyond_site)
        before, self._seen = self._seen or former, self.session.set(as_state(wanted, former))
        self._arrangement = wanted
        if wrong := self._differences(self._seen):
            raise CastmatesError(
                f"pqos took what was asked but shows something else ({'; '.join(wrong)}): somebody else has changed "
                "it, or this processor changes such masks; then leave them out of the study."
            )
        return any(self._lost(before, self._seen, cpu) for cpu in former.cores)

    def read_back(self) -> dict[str, str]:
        """Read what is in force, by member, in one line of the kernel's words; what CPUs differ in stands apart."""
        self._seen = state = self.session.state()
        schemata = {name: self._line_of(held.cpus, state) for name, held in self._members.items()}
        if self._arrangement and self._arrangement.classes[DEFAULT] != schemata_of(
            self.session.former, DEFAULT, self.session.cache
        ):
            schemata[REST] = one_line(schemata_of(state, DEFAULT, self.session.cache))
        return schemata

    def misplaced(self) -> list[str]:
        """List in words which CPUs are not in their class, and which threads may leave their member's CPUs."""
        sentences = []
        if self._arrangement and self._seen:
            cores = self._arrangement.cores
            wrong = {cpu: its for cpu, (_, its) in self._seen.cores.items() if its != cores.get(cpu, its)}
            sentences += [f"CPU {cpu} is in class {its} and not in {cores[cpu]}" for cpu, its in wrong.items()]
        threads = self.tasks.threads(list(self._members.values()))
        for name, held in self._members.items():
            for tid in threads[held.pid]:
                if away := _allowed(tid) - set(held.cpus):
                    sentences.append(
                        f"thread {tid} of {name} may run on CPU {format_cpu_list(away)}, where it has no share"
                    )
        return sentences

    def restore(self) -> None:
        """Put everything back as it was found; safe to call twice."""
        self._arrangement = None
        self.session.close()

    def about(self) -> dict[str, str]:
        """Describe what is driven and how."""
        cache = self.session.cache
        throttle, holes = cache.bandwidth, "with" if cache.sparse else "without"
        return {
            "allocation": f"pqos {self.session.version}, interface {self.session.tool.interface}, by CPU",
            "ways": f"{cache.ways}, masks of at least {cache.least_ways}, {holes} holes",
            "way_bytes": str(cache.way_bytes or "unknown"),
            "ways shared with I/O": f"{cache.shareable:x}",
            "bandwidth": f"{throttle.unit}, from {throttle.least} in steps of {throttle.step}" if throttle else "none",
            "classes": str(cache.groups + 1),
            "default class": one_line(schemata_of(self.session.former, DEFAULT, cache)),
        }

    def _check(self, shares: Sequence[Share]) -> None:
        """Refuse what was planned for another cache: the plan is made without starting pqos."""
        cache = self.session.cache
        for share in shares:
            for mask in (share.ways, share.code):
                if mask is not None and (mask & ~cache.full or mask.bit_count() < cache.least_ways):
                    raise CastmatesError(
                        f"{name_of(share.member)} was given the way mask {mask:x}, but pqos reports that masks here "
                        f"are within {cache.full:x} and have at least {cache.least_ways} ways: write masks that fit."
                    )

    def _differences(self, state: State) -> list[str]:
        """Return what is not as it was given; throttles may be rounded up."""
        assert self._arrangement is not None
        cache, sentences = self.session.cache, []
        for number, schemata in self._arrangement.classes.items():
            there = differences(schemata, schemata_of(state, number, cache), cache)
            sentences += [f"class {number}: {difference}" for difference in there]
        return sentences + [
            f"CPU {cpu} is in class {state.cores[cpu][1]} instead of {number}"
            for cpu, number in self._arrangement.cores.items()
            if state.cores.get(cpu, (0, number))[1] != number
        ]

    def _lost(self, before: State, after: State, cpu: int) -> bool:
        cache, domain = self.session.cache, before.cores[cpu][0]
        earlier, later = (
            {
                resource: {at: mask for at, mask in values.items() if at == domain}
                for resource, values in schemata_of(state, state.cores[cpu][1], cache).items()
            }
            for state in (before, after)
        )
        return loses_ways(earlier, later)

    def _line_of(self, cpus: Sequence[int], state: State) -> str:
        numbers = sorted({state.cores[cpu][1] for cpu in cpus if cpu in state.cores})
        return " and ".join(one_line(schemata_of(state, number, self.session.cache)) for number in numbers)


def _allowed(tid: int) -> set[int]:
    try:
        return os.sched_getaffinity(tid)
    except ProcessLookupError:
        return set()
