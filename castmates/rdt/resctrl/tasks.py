"""Which threads a member has, and in which resctrl group each of them is."""

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from castmates.linux import processes
from castmates.linux.processes import Process, read_process, read_table, threads_of
from castmates.rdt.resctrl.tree import Tree

UNMOUNTED = "no group: resctrl is not mounted any more"


class Place(NamedTuple):
    """The groups of a thread; "" is the default control group, or no separate monitoring group."""

    control: str
    monitoring: str


class Tasks(Protocol):
    """Looks after threads; a fake has its own."""

    shows_places: bool  # whether `place` knows; otherwise only the lists of the groups do

    def threads(self, leaders: Collection[int]) -> Mapping[int, list[int]]:
        """List the living threads of each process and of all that came from it."""

    def place(self, tid: int) -> Place | None:
        """Return where a thread is; None where it has ended."""


class KernelTasks:
    """Those of this machine."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, int]] = {}  # leader -> number -> start, which name a process for ever
        self.shows_places = processes.shows_resctrl_groups()

    def threads(self, leaders: Collection[int]) -> Mapping[int, list[int]]:
        """List the living threads of each process and of all that came from it."""
        table = read_table()
        children: dict[int, list[int]] = {}
        for process in table.values():
            children.setdefault(process.parent, []).append(process.pid)
        return {leader: self._of(leader, table, children) for leader in leaders}

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
