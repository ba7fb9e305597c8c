"""Empties last-level caches of what their former holders left there: taking ways from a member evicts nothing.

Lines in ways that a member lost go on to serve it until another needs their place. So whenever a mask shrinks,
everybody is frozen, all masks are opened, and a process of ours streams twice the cache's size through it. It lives in
the group of the runner: where an administrator has narrowed that one, the other ways are not reached.
"""

from collections.abc import Collection, Mapping

from castmates.errors import CastmatesError
from castmates.machine.topology import Topology
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Company, Share

TIMES = 2  # the cache's size that is read
MIB = 1 << 20
LOOK_NS = 5_000_000
LONGEST_NS = 20_000_000_000


def evictors(topology: Topology, company: Company, own: Collection[int]) -> dict[int, int]:
    """Return the bytes to stream, by CPU: one for each cache with members, where some scene has way masks.

    A CPU of our own (`own`) is taken if the cache has one, else an antagonist's, and the lead's last of all.
    """
    if not has_masks(company):
        return {}
    members = [cpu for member in reversed(company.members) for cpu in member.cpus]
    amounts = {}
    for llc in topology.llcs:
        if llc.bytes and set(members) & set(llc.cpus):
            amounts[next(cpu for cpu in (*sorted(own), *members) if cpu in llc.cpus)] = TIMES * llc.bytes
    return amounts


def about(company: Company, amounts: Mapping[int, int]) -> dict[str, str]:
    """Return how caches are emptied where masks are taken away."""
    if not has_masks(company):
        return {"eviction": "none: no scene has way masks"}
    if not amounts:
        return {"eviction": "none: the kernel does not show how large the last-level caches are"}
    streams = "; ".join(f"CPU {cpu} streams {amount / MIB:.0f} MiB" for cpu, amount in amounts.items())
    return {"eviction": f"whenever a member loses ways: {streams}"}


def has_masks(company: Company) -> bool:
    """Check whether some scene has way masks, so that ways can be lost."""
    shares = [share for scene in company.scenes for share in scene.shares]
    return any(share.ways is not None or share.code is not None for share in shares)


def change_shares(stage: Stage, shares: tuple[Share, ...], anew: bool = False) -> None:
    """Put these shares in force, with caches emptied where a member lost ways; `anew` even where they should be."""
    if shares == stage.shares and not anew:
        return
    stage.switch([])
    if stage.apply_shares(shares) and stage.evictors:
        stage.apply_shares(())
        for name, amount in stage.evictors.items():
            _evict(stage, name, amount)
        stage.apply_shares(shares)


def _evict(stage: Stage, name: str, amount: int) -> None:
    evictor, begin = stage.cast[name], stage.now_ns()
    stage.switch([name])
    evictor.forget_beats()
    before = None
    while True:
        stage.sleep_until(stage.now_ns() + LOOK_NS)
        if evictor.records:
            before = evictor.records[0][1] if before is None else before
            if (evictor.records[-1][1] - before) * MIB >= amount:
                break
        if stage.now_ns() - begin > LONGEST_NS:
            raise CastmatesError(
                f"{name} did not stream {amount / MIB:.0f} MiB within {LONGEST_NS / 1e9:.0f} s, so the caches are not "
                "emptied after masks were shrunk; is the machine overloaded?"
            )
    stage.switch([])
