"""Whose are the groups that are not ours: they hold classes and monitoring ids, and may change masks meanwhile."""

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from castmates.linux import cgroups, processes
from castmates.linux.kernel_files import read_text
from castmates.linux.owner import born_of, delegated_to, is_gone, maker_of_resctrl_group, myself
from castmates.linux.processes import Process, name_of, read_process, read_table, threads_of
from castmates.protocols import Held
from castmates.rdt.resctrl.tree import Tree
from castmates.rdt.resctrl.wanted_schemata import MASKS, Schemata, parse

PQOS_LOCK = Path("/var/lock/libpqos")  # "pid starttime" of who uses it

# Who gives names like these; the first that fits counts.
OWNERS = (
    (re.compile(r"COS\d+"), "pqos, whose mere start makes them"),
    (re.compile(r"pqos-.+"), "pqos -I"),
    (re.compile(r"pcm.*", re.IGNORECASE), "Intel PCM"),
    (re.compile(r"(BE|LSR?|LSE)"), "koordinator"),
    (re.compile(r"(docker-|cri-containerd-|crio-|libpod-)?[0-9a-f]{64}(\.scope)?"), "a container runtime"),
    (re.compile(r"(pod_|k8s|kube).*"), "Kubernetes"),
)
KNOWN_FILES = {"cpus", "cpus_list", "mode", "schemata", "size", "tasks", "info", "mon_data", "mon_groups"}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A group that is not ours."""

    path: str  # "COS1", "mon_groups/x", "COS1/mon_groups/y"
    owner: str  # in words; "" where the name shows nothing
    tasks: int
    exclusive: bool  # no other mask may overlap with its mask

    def __str__(self) -> str:
        words = [f"made by {self.owner}"] if self.owner else []
        words.append(f"{self.tasks} tasks" if self.tasks else "empty")
        return f"{self.path} ({', '.join([*words, 'exclusive'] if self.exclusive else words)})"


def control_groups(tree: Tree) -> list[str]:
    """Name the control groups besides the default one."""
    return [name for name in tree.names("") if name not in KNOWN_FILES and _is_group(tree, name)]


def monitoring_groups(tree: Tree, control: str = "") -> list[str]:
    """List the paths of the monitoring groups inside a control group, the default one if none is named."""
    folder = f"{control}/mon_groups".lstrip("/")
    with suppress(OSError):  # there is no such folder where nothing can be monitored
        return [f"{folder}/{name}" for name in tree.names(folder)]
    return []


def foreign_groups(tree: Tree) -> list[Foreign]:
    """List every group that neither this process made nor root gave to this user."""
    control = control_groups(tree)
    monitoring = [path for parent in ["", *control] for path in monitoring_groups(tree, parent)]
    return [_look_at(tree, path) for path in control + monitoring if not _is_ours(Path(path).name)]


def living(tree: Tree) -> dict[str, Schemata]:
    """What groups of others have that hold tasks or CPUs, by their names."""
    found = {}
    for group in foreign_groups(tree):
        with suppress(OSError):  # a monitoring group has no schemata, and any may just have been removed
            schemata = parse(tree.read(f"{group.path}/schemata"))
            if group.tasks or tree.read(f"{group.path}/cpus_list").strip():
                found[group.path] = schemata
    return found


def overlapping(tree: Tree, given: Collection[tuple[Schemata, Collection[int]]]) -> list[str]:
    """Name the living groups of others that share ways with any of these schemata on its domains."""
    ours = [
        (line, domain, mask)
        for schemata, domains in given
        for line in MASKS
        for domain, mask in schemata.get(line, {}).items()
        if domain in domains
    ]
    return [
        name
        for name, theirs in living(tree).items()
        if any(mask & theirs.get(line, {}).get(domain, 0) for line, domain, mask in ours)
    ]


def pqos_user() -> str:
    """Name the process that uses libpqos now, or ""."""
    words = (read_text(PQOS_LOCK) or "").split()
    if len(words) == 2 and all(word.isdecimal() for word in words) and born_of(int(words[0])) == int(words[1]):
        return f"process {words[0]} ({name_of(int(words[0]))})"
    return ""


def _is_ours(name: str) -> bool:
    return maker_of_resctrl_group(name) == myself() or delegated_to(name) == os.geteuid()


def _look_at(tree: Tree, path: str) -> Foreign:
    tasks, mode = "", ""
    with suppress(OSError):  # it has just been removed
        tasks = tree.read(f"{path}/tasks")
    with suppress(OSError):  # a monitoring group has none
        mode = tree.read(f"{path}/mode").strip()
    return Foreign(path, _owner(Path(path).name), len(tasks.split()), mode in ("exclusive", "pseudo-locked"))


def _owner(name: str) -> str:
    if maker := maker_of_resctrl_group(name):
        return f"castmates, process {maker.pid}" + (", which has ended" if is_gone(maker) else "")
    if (uid := delegated_to(name)) is not None:
        return f"`castmates doctor --grant` for user {uid}"
    return next((owner for pattern, owner in OWNERS if pattern.fullmatch(name)), "")


def _is_group(tree: Tree, name: str) -> bool:
    try:
        return "tasks" in tree.names(name)
    except OSError:  # a file, or it has just been removed
        return False


# Which threads a member has, and in which resctrl group each of them is.

UNMOUNTED = "no group: resctrl is not mounted any more"


class Place(NamedTuple):
    """The groups of a thread; "" is the default control group, or no separate monitoring group."""

    control: str
    monitoring: str


class Tasks(Protocol):
    """Looks after threads; a fake has its own."""

    shows_places: bool  # whether `place` knows; otherwise only the lists of the groups do

    def threads(self, held: Collection[Held]) -> Mapping[int, list[int]]:
        """List, by the process, the living threads of each and of all that came from it."""

    def place(self, tid: int) -> Place | None:
        """Return where a thread is; None where it has ended."""


class KernelTasks:
    """Those of this machine."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, int]] = {}  # leader -> number -> start, which name a process for ever
        self.shows_places = processes.shows_resctrl_groups()

    def threads(self, held: Collection[Held]) -> Mapping[int, list[int]]:
        """List, by the process, the living threads of each and of all that came from it.

        A control group lists its own; for members without one the processes of the whole host are read.
        """
        found = {each.pid: cgroups.threads(Path(each.cgroup)) for each in held if each.cgroup}
        if leaders := [each.pid for each in held if not each.cgroup]:
            table = read_table()
            children: dict[int, list[int]] = {}
            for process in table.values():
                children.setdefault(process.parent, []).append(process.pid)
            found |= {leader: self._of(leader, table, children) for leader in leaders}
        return found

    def place(self, tid: int) -> Place | None:
        """Return where a thread is; None where it has ended."""
        try:
            return parse_place(processes.resctrl_groups_of(tid))
        except (FileNotFoundError, ProcessLookupError):
            return None

    def _of(self, leader: int, table: Mapping[int, Process], children: Mapping[int, list[int]]) -> list[int]:
        """Follow one family: descendants, the leader's session, and processes that were seen in it before."""
        known = self._known.get(leader) or _born(leader)
        born = known.get(leader, 0)
        queue = [pid for pid, start in known.items() if pid in table and table[pid].born == start]
        if leader not in table or table[leader].born == born:
            queue += [p.pid for p in table.values() if leader in (p.group, p.session) and p.born >= born]
        family: dict[int, int] = {}
        while queue:
            pid = queue.pop()
            if pid not in family and pid != os.getpid():
                family[pid] = table[pid].born
                queue += children.get(pid, [])
        self._known[leader] = {leader: born} | family
        return [tid for pid in family if table[pid].alive for tid in threads_of(pid)]


def parse_place(text: str) -> Place:
    """Read `res:<group>` and `mon:<group>`: the default group is "/", and both are empty where none is mounted."""
    groups = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return Place(groups.get("res", "").strip("/") if groups.get("res") else UNMOUNTED, groups.get("mon", ""))


def listed(tree: Tree, path: str) -> set[int]:
    """List the threads in a group as its own file lists them."""
    return {int(word) for word in tree.read(f"{path}/tasks".lstrip("/")).split()}


def _born(pid: int) -> dict[int, int]:
    process = read_process(pid)
    return {pid: process.born} if process else {}
