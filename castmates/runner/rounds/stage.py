"""The processes of a launch, and the means to run any subset of them."""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from castmates.errors import CastmatesError
from castmates.linux.processes import threads_of
from castmates.machine.topology import CachePart, Topology
from castmates.protocols import Held
from castmates.runner.processes.freezer import Freezer, let_go, let_stand
from castmates.runner.processes.launch import Running, WorkloadFailed
from castmates.runner.processes.starts import Evictor
from castmates.runner.rounds.hardware import Hardware
from castmates.study.scenes import CACHE_TIMES, evictors_are_needed
from castmates.study.spec import Cohort, Share
from castmates.workloads.heartbeat import State

LOOK = 1.0  # seconds; how long we sleep at most without looking after the members, whose heartbeats fill a ring
LEAVE = 5.0  # seconds that members have to end by themselves: a chase of 700 MB takes two to check itself


class Stage:
    """The processes, which of them run, and what watches them."""

    def __init__(
        self,
        cast: Iterable[Running],
        freezer: Freezer,
        hardware: Hardware,
        check: Callable[[], None],
        evictors: Mapping[str, int] | None = None,
    ) -> None:
        self.cast: dict[str, Running] = {process.name: process for process in cast}
        self.evictors = evictors or {}  # processes that empty caches, each with the bytes that it writes for that
        self.freezer = freezer
        self.hardware = hardware
        self.shares: tuple[Share, ...] = ()  # in force
        self._check = check
        self._moving: set[str] = set()  # all begin frozen

    def guard_orphan(self, file: Path) -> None:
        """Let a file that a member leaves go, should the runner be killed; without processes there is none."""

    def held(self) -> dict[str, Held]:
        """Everyone, as allocators, monitors and counters know them."""
        held = {}
        for name, process in self.cast.items():
            group = self.freezer.group_of(name)
            held[name] = Held(process.pid, process.start.cpus, str(group) if group else None)
        return held

    def now_ns(self) -> int:
        """Return the time on the clock that the heartbeats are stamped with."""
        return time.monotonic_ns()

    def apply_shares(self, shares: tuple[Share, ...]) -> bool:
        """Put these shares of caches and bandwidth in force; True where a member has lost ways."""
        lost = self.hardware.apply_shares(shares)
        self.shares = shares
        return lost

    def switch(self, names: Sequence[str]) -> None:
        """Freeze and thaw until exactly these processes run."""
        leaving, coming = sorted(self._moving - set(names)), [name for name in names if name not in self._moving]
        let_stand(self.cast[name] for name in leaving)
        self._announce(names)
        for name in leaving:
            self.freezer.freeze(name)
        let_go(self.cast[name] for name in coming)
        for name in coming:
            self.freezer.thaw(name)
        self._moving = set(names)

    def exchange(self, names: Sequence[str]) -> None:
        """Pause and let go until exactly these run, as quickly as can be; who escaped is found by `switch`."""
        wanted = set(names)
        leaving, coming = sorted(self._moving - wanted), [name for name in names if name not in self._moving]
        let_stand(self.cast[name] for name in leaving)
        self._announce(names)
        if leaving:
            self.freezer.pause(leaving)
        if coming:
            let_go(self.cast[name] for name in coming)
            self.freezer.let_go(coming)
        self._moving = wanted

    def _announce(self, names: Sequence[str]) -> None:
        """Let services know of the change, before anyone is frozen or thawed: it ends their schedule of requests.

        Else what was due while they were frozen would flood them, or the queue of one scene be served in the next.
        """
        for name in self._moving:
            if (requests := self.cast[name].requests) is not None:
                requests.scene_ends(self.now_ns())
        for name in set(names) - self._moving:
            if (requests := self.cast[name].requests) is not None:
                requests.scene_begins()

    def rest_until(self, t_ns: int) -> None:
        """Sleep and read nothing, as long as that is short."""
        self.sleep_until(t_ns - int(LOOK * 1e9))
        if (left := t_ns - self.now_ns()) > 0:
            time.sleep(left / 1e9)

    def look_after(self) -> None:
        """End the launch when any process, running or frozen, has ended, or when the launch is no longer wanted."""
        self._check()
        for process in self.cast.values():
            if ended := process.ended():
                raise WorkloadFailed.of(process, ended)

    def sleep_until(self, t_ns: int) -> None:
        """Sleep, and keep up with the heartbeats meanwhile.

        Looks are rare: on a small machine this process sits on an antagonist's CPU, and each look costs it.
        """
        while (left := (t_ns - self.now_ns()) / 1e9) > 0:
            time.sleep(min(left, LOOK))
            self.read_beats()
            self.look_after()

    def forget_beats(self) -> None:
        """Forget all heartbeats so far."""
        for process in self.cast.values():
            process.forget_beats()

    def read_beats(self) -> None:
        """Read the new heartbeats of those who move."""
        for name in self._moving:
            self.cast[name].read_beats()

    def cpus_of_threads(self, name: str) -> set[int]:
        """Every CPU that some thread of this process, or of its children, may run on."""
        allowed: set[int] = set()
        for pid in self.freezer.stragglers(name):
            for thread in threads_of(pid):
                try:
                    allowed |= os.sched_getaffinity(thread)
                except ProcessLookupError:
                    continue
        return allowed

    def dismiss(self) -> list[str]:
        """Ask everyone to end, so that a program that checks its own result can report that it is wrong.

        Returns those still running when our patience was over: whether their result was right is not known.
        """
        self.look_after()
        self.switch(list(self.cast))
        for process in self.cast.values():
            process.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + LEAVE
        while time.monotonic() < deadline and not _all_ended(self.cast.values()):
            time.sleep(0.02)
        for process in self.cast.values():
            if process.reader.state is State.FAILED:
                raise WorkloadFailed.of(process, "found its own result to be wrong")
        for process in self.cast.values():
            process.read_requests()
        return [name for name, process in self.cast.items() if not _all_ended([process])]


def _all_ended(cast: Iterable[Running]) -> bool:
    return all(process.ended() or process.reader.state in (State.FINISHED, State.FAILED) for process in cast)


# Empties last-level caches before every stretch, so that scenes under all partitions begin alike: cold.
#
# Lines in ways that a member lost go on to serve it until another needs their place, and those of a member that was
# frozen stay as well. So everybody is frozen, all masks are opened, and processes of ours write twice the cache's size
# through every part of it that members use; again, while the members' occupancy shows that much of theirs is left. They
# live in the group of the runner: where an administrator has narrowed that one, the other ways are not reached, which
# the occupancy then shows. Without way masks nothing is emptied: all scenes follow one another as they are.

PASSES = 4  # at most
CLEAN = 0.02  # of the caches; what of them may be the members' still
MIB = 1 << 20
LOOK_NS = 5_000_000
LONGEST_NS = 20_000_000_000


@dataclass(frozen=True, slots=True)
class Emptied:
    """What emptying the caches once came to."""

    passes: int
    left: float | None  # share of the caches that is the members' still; None where occupancy cannot be read
    seconds: float


def evictors(topology: Topology, cohort: Cohort, own: Collection[int]) -> list[Evictor]:
    """Return who empties the caches: one for each part of a cache that members use, where some scene has way masks.

    A CPU of our own (`own`) is taken if the part has one, else an antagonist's, and the lead's last of all. A part that
    only memory of members fills, which is bound to its node, is emptied from a CPU of the same cache.
    """
    if not has_masks(cohort):
        return []
    members = [cpu for member in reversed(cohort.members) for cpu in member.cpus]
    bound = {node for member in cohort.members for node in member.nodes}
    cpus = [*sorted(own), *members]
    around = {llc.id: llc.cpus for llc in topology.llcs if set(members) & set(llc.cpus)}
    found = []
    for part in topology.cache_parts():
        if part.bytes and part.llc in around and (set(members) & set(part.cpus) or part.node in bound):
            inside = [cpu for cpu in cpus if cpu in part.cpus] or [cpu for cpu in cpus if cpu in around[part.llc]]
            found.append(_evictor(part, inside[0]))
    return found


def _evictor(part: CachePart, cpu: int) -> Evictor:
    return Evictor(cpu, CACHE_TIMES * (part.bytes or 0), part.node, bound=cpu not in part.cpus)


def about(cohort: Cohort, chosen: Sequence[Evictor], rehearsed: bool = False) -> dict[str, str]:
    """Return how caches are emptied."""
    if not has_masks(cohort):
        return {"eviction": "none: no scene has way masks"}
    if rehearsed:
        return {"eviction": "none: masks of a rehearsal move nothing"}
    if not chosen:
        return {"eviction": "none: the kernel does not show how large the last-level caches are"}
    streams = "; ".join(
        f"CPU {each.cpu} writes {each.bytes / MIB:.0f} MiB" + ("" if each.node is None else f" of node {each.node}")
        for each in chosen
    )
    whole = sum(each.bytes for each in chosen) / MIB
    return {"eviction": f"before every stretch: {streams}", "memory": f"{whole:.0f} MiB, of no member"}


def reached(emptied: Sequence[Emptied]) -> dict[str, object]:
    """Return what emptying the caches came to in a launch; nothing where it was not done."""
    if not emptied:
        return {}
    left = [each.left for each in emptied if each.left is not None]
    return {
        "times": sum(each.passes > 0 for each in emptied),
        "passes": sum(each.passes for each in emptied),
        "seconds": round(sum(each.seconds for each in emptied), 3),
        "read": len(left),
        "left": round(median(left), 4) if left else None,
        "left_most": round(max(left), 4) if left else None,
        "not_emptied": sum(each.passes == 0 or (each.left or 0.0) > CLEAN for each in emptied),
    }


def has_masks(cohort: Cohort) -> bool:
    """Check whether some scene has way masks, so that what lies in the caches could differ between partitions."""
    return evictors_are_needed(share for scene in cohort.scenes for share in scene.shares)


def change_shares(stage: Stage, shares: tuple[Share, ...], anew: bool = False) -> Emptied | None:
    """Put these shares in force, with caches emptied before; `anew` even where they are.

    None where there was nothing to empty; without passes where ways were taken away and nobody could empty them.
    """
    if shares == stage.shares and not anew:
        return None
    stage.switch([])
    emptied = None
    if stage.evictors:
        stage.apply_shares(())
        emptied = _empty(stage)
    lost = stage.apply_shares(shares)
    return emptied or (Emptied(0, None, 0.0) if lost else None)


def size_of_caches(stage: Stage) -> float:
    """Return how large the caches are that are emptied, in bytes; 0 where none is."""
    return sum(stage.evictors.values()) / CACHE_TIMES


def _empty(stage: Stage) -> Emptied:
    """Let the evictors write, until little of the members is left, or another pass would not help."""
    begin, caches = stage.now_ns(), size_of_caches(stage)
    passes, left = 0, None
    while passes < PASSES:
        _write_through(stage)
        passes += 1
        before, left = left, stage.hardware.occupied()
        if left is None or left <= CLEAN * caches or (before is not None and left >= before):
            break
    share = None if left is None else left / caches
    return Emptied(passes, share, (stage.now_ns() - begin) / 1e9)


def _write_through(stage: Stage) -> None:
    """Let all evictors run at the same time, until each has written its amount."""
    begin, waiting = stage.now_ns(), dict(stage.evictors)
    for name in waiting:
        stage.cast[name].forget_beats()
    stage.switch(list(waiting))
    while waiting:
        stage.sleep_until(stage.now_ns() + LOOK_NS)
        for name, amount in list(waiting.items()):
            records = stage.cast[name].records
            if records and (records[-1][1] - records[0][1]) * MIB >= amount:
                del waiting[name]
        if waiting and stage.now_ns() - begin > LONGEST_NS:
            name, amount = next(iter(waiting.items()))
            raise CastmatesError(
                f"{name} did not write {amount / MIB:.0f} MiB within {LONGEST_NS / 1e9:.0f} s, so the caches are not "
                "emptied before a stretch; is the machine overloaded?"
            )
    stage.switch([])
