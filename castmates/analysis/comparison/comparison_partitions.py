"""The partitions of two studies: which of them are the same question, by name and by what they give."""

from collections.abc import Mapping
from dataclasses import dataclass

from castmates.analysis.comparison.launches import plain_members
from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.class_caches import cache_of
from castmates.study.schemata import mask_of
from castmates.study.spec import REST, UNMANAGED, Mix, Partition, Plan

Gift = tuple[tuple[str, str], ...]  # plain member -> its share in words; who has everything is not there
Place = tuple[str, str]  # mix and partition

SAME, DIFFER, NONE = "same", "differ", ""


@dataclass(frozen=True)
class Match:
    """A partition of A and the one of B that it is compared with."""

    mix: str
    a: str
    b: str
    masks: str  # same, differ, "" without a partition


def gifts(plan: Plan) -> dict[Place, Gift]:
    """What each partition of each mix gives to whom, in words that leave CPUs out."""
    names = plain_members(plan)
    by_place = {}
    for mix in plan.mixes:
        for partition in mix.partitions:
            by_place[mix.name, partition.name] = _gift(mix, partition, names, cache_of(plan, mix.machine))
    return by_place


def matches(a: Mapping[Place, Gift], b: Mapping[Place, Gift]) -> list[Match]:
    """By name first; then, within a mix, those that give the same under another name. Each partition once."""
    pairs = [
        Match(mix, name, name, SAME if a[mix, name] == b[mix, name] else DIFFER) for mix, name in a if (mix, name) in b
    ]
    taken = {(match.mix, match.b) for match in pairs}
    for mix, name in a:
        if (mix, name) not in b:
            same = [
                other
                for other in b
                if other[0] == mix and other not in taken and other not in a and b[other] == a[mix, name]
            ]
            if same:
                taken.add(same[0])
                pairs.append(Match(mix, name, same[0][1], SAME))
    return pairs


def gift_words(gift: Gift) -> str:
    """ranking 0xf (4 ways, 6 MiB), stream 0xff0 (8 ways, 12 MiB)."""
    return ", ".join(f"{who} {share}" for who, share in gift) or "everything to everybody"


def unmanaged(mix: str) -> Match:
    """A mix without a partition is the same question everywhere."""
    return Match(mix, UNMANAGED, UNMANAGED, NONE)


def _gift(mix: Mix, partition: Partition, names: Mapping[tuple[str, str], str], cache: Cache | None) -> Gift:
    words = {}
    for share in partition.shares:
        mask, parts = mask_of(share), []
        if mask is not None and share.ways is not None:
            parts.append(f"{share.ways:#x} ({_size(mask, cache)})")
        if share.code is not None:
            parts.append(f"code {share.code:#x}")
        if share.bandwidth is not None:
            unit = cache.bandwidth.unit if cache and cache.bandwidth else ""
            parts.append(f"bandwidth {share.bandwidth} {unit}".strip())
        if share.quota is not None:
            parts.append(f"{share.quota} % of its CPUs' time in each {share.period} ms")
        words[_who(mix, share.member, names)] = " ".join(parts)
    return tuple(sorted(words.items(), key=lambda pair: (pair[0] == "others", pair[0])))


def _who(mix: Mix, member: str, names: Mapping[tuple[str, str], str]) -> str:
    return "others" if member == REST else names.get((mix.name, member), member)


def _size(mask: int, cache: Cache | None) -> str:
    """In ways and, where the machine reports it, in bytes: the same mask is less on a smaller cache."""
    if cache is not None:
        return masks.size_words(mask, cache)
    count = masks.popcount(mask)
    return "1 way" if count == 1 else f"{count} ways"
