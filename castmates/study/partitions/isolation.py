"""Which partitions isolate: lead and antagonists have separate ways of a cache that they share, none is throttled."""

from collections.abc import Iterable, Sequence

from castmates.study.schemata import overlap
from castmates.study.spec import Mix, Partition

MOST_NAMED = 8  # partitions in one sentence


def isolates(partition: Partition, mix: Mix) -> bool:
    """Whether the ways alone keep its members apart; a throttle would give back what is not the cache's.

    Ways of two caches are always separate, so what counts are the antagonists that meet the lead on a cache.
    """
    shares = {share.member: share for share in partition.shares}
    own, others = shares.get(mix.lead), [shares.get(name) for name in mix.antagonists if name not in mix.apart]
    if own is None or not others or any(share.bandwidth is not None for share in partition.shares):
        return False
    return all(share is not None and not overlap(own, share) for share in others)


def refusal(named: str | None, mixes: Iterable[Mix]) -> str:
    """Why the partition that a study names cannot isolate; "" where it can, or where there are no partitions."""
    tried = [(mix, partition) for mix in mixes if mix.antagonists for partition in mix.partitions]
    if named is None or not tried:
        return ""
    isolating = list(dict.fromkeys(made.name for mix, made in tried if isolates(made, mix)))
    if named in isolating:
        return ""
    exists = any(made.name == named for _, made in tried)
    why = (
        "under which lead and antagonists share ways, or one of them is throttled"
        if exists
        else "but 'cache.sweeps' makes no such partition of a mix on this machine"
    )
    return f"'attribution.isolated' is '{named}', {why}; {_advice(isolating)}."


def _advice(isolating: Sequence[str]) -> str:
    if not isolating:
        return "add a sweep that gives them separate ways, such as `split: 4`, or leave the key out"
    more = f" and {len(isolating) - MOST_NAMED} more" if len(isolating) > MOST_NAMED else ""
    return f"name one that keeps them apart ({', '.join(isolating[:MOST_NAMED])}{more}), or leave the key out"
