"""Empties last-level caches before every stretch, so that scenes under all partitions begin alike: cold.

Lines in ways that a member lost go on to serve it until another needs their place, and those of a member that was
frozen stay as well. So everybody is frozen, all masks are opened, and processes of ours write twice the cache's size
through every part of it that members use; again, while the members' occupancy shows that much of theirs is left. They
live in the group of the runner: where an administrator has narrowed that one, the other ways are not reached, which
the occupancy then shows. Without way masks nothing is emptied: all scenes follow one another as they are.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from castmates.errors import CastmatesError
from castmates.machine.topology import CachePart, Topology
from castmates.runner.processes.starts import Evictor
from castmates.runner.rounds.stage import Stage
from castmates.study.evictors import CACHE_TIMES, evictors_are_needed
from castmates.study.spec import Cohort, Share

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


def about(cohort: Cohort, chosen: Sequence[Evictor]) -> dict[str, str]:
    """Return how caches are emptied."""
    if not has_masks(cohort):
        return {"eviction": "none: no scene has way masks"}
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
