"""What the processor held of each partition, by the records of the launches; pure.

The kernel shows what was asked. Where a launch could read the processor's registers, its record lists what they held
otherwise, and a partition is judged by that. Where they were not read, a mask that cuts through the ways that I/O fills
too is uncertain (castmates.study.partitions.sweeps).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.node_classes import cache_of
from castmates.study.partitions.sweeps import cut_by
from castmates.study.spec import Partition, Plan, Share

AS_ASKED, OTHERWISE, UNCERTAIN, NOT_READ = "as asked", "otherwise", "uncertain", "not read"
SHARED = "shared"  # with groups of others
BEYOND = "beyond"  # members filled more ways than they have

ByCache = Mapping[int, int]  # cache -> what was held there

Place = tuple[str, str]  # cohort and partition, or mix and partition
States = Mapping[Place, str]  # mix and partition -> one of these six

# Lines of schemata -> which setting of a share they are.
MASKS = ("ways", "code")
_SETTINGS = {"L3": "ways", "L3DATA": "ways", "L3CODE": "code", "MB": "bandwidth"}


@dataclass(frozen=True)
class HeldPartitions:
    """What the measured launches of a study found in the processor."""

    measured: frozenset[str] = frozenset()  # cohorts with a measured launch
    unread: frozenset[Place] = frozenset()  # what some measured launch did not compare; only of `compared`
    compared: frozenset[Place] = frozenset()  # what some measured launch compared
    # By cohort, partition and member: the settings that differed, and on which caches.
    settings: Mapping[tuple[str, str, str], Mapping[str, ByCache]] = field(default_factory=dict)
    caches: Mapping[Place, frozenset[int]] = field(default_factory=dict)  # by cohort and member: those that it uses
    shared: Mapping[Place, Mapping[str, None]] = field(default_factory=dict)  # who else had ways of members
    beyond: Mapping[Place, Mapping[str, str]] = field(default_factory=dict)  # by member: the ways it filled, in words


def held_by(records: Iterable[Mapping[str, Any]]) -> HeldPartitions:
    """Collect what the records of these launches have of the processor."""
    measured: dict[str, list[Mapping[str, Any]]] = {}
    caches: dict[Place, frozenset[int]] = {}
    shared: dict[Place, dict[str, None]] = {}
    beyond: dict[Place, dict[str, str]] = {}
    for record in records:
        if record.get("status") == "measured":
            cohort = str(record.get("spec", {}).get("cohort", {}).get("id", ""))
            measured.setdefault(cohort, []).append(_partitions_of(record))
            for member, used in record.get("processor", {}).get("caches", {}).items():
                caches[cohort, member] = caches.get((cohort, member), frozenset()).union(used)
            for partition, groups in record.get("processor", {}).get("shared", {}).items():
                shared.setdefault((cohort, partition), {}).update(dict.fromkeys(map(str, groups)))
            for partition, members in record.get("processor", {}).get("beyond", {}).items():
                words = {member: f"{filled:g} of {ways}" for member, (filled, ways) in members.items()}
                beyond.setdefault((cohort, partition), {}).update(words)
    settings: dict[tuple[str, str, str], dict[str, dict[int, int]]] = {}
    for cohort, found in measured.items():
        for partitions in found:
            for partition, rows in partitions.items():
                for row in rows:
                    _add(settings.setdefault((cohort, partition, row["member"]), {}), row)
    compared = {(cohort, name) for cohort, found in measured.items() for each in found for name in each}
    unread = {(cohort, name) for cohort, name in compared if not all(name in each for each in measured[cohort])}
    return HeldPartitions(frozenset(measured), frozenset(unread), frozenset(compared), settings, caches, shared, beyond)


def as_held(plan: Plan, held: HeldPartitions) -> Plan:
    """The plan with what the processor held in the place of what was asked; names of partitions stay what they are."""
    if not held.settings:
        return plan
    cohorts = _cohorts(plan)
    mixes = tuple(
        mix.model_copy(
            update={"partitions": tuple(_as_held(made, cohorts[mix.identity], held) for made in mix.partitions)}
        )
        for mix in plan.mixes
    )
    return plan.model_copy(update={"mixes": mixes})


def states(plan: Plan, held: HeldPartitions | None = None) -> dict[Place, str]:
    """By mix and partition: whether the processor held what was asked, as far as it is known."""
    found, cohorts = held or HeldPartitions(), _cohorts(plan)
    return {
        (mix.name, made.name): _state(made, cache_of(plan, mix.machine), cohorts[mix.identity], found)
        for mix in plan.mixes
        for made in mix.partitions
    }


def sharers(plan: Plan, held: HeldPartitions) -> dict[Place, tuple[str, ...]]:
    """By mix and partition: the groups of others that had ways of its members."""
    found, cohorts = {}, _cohorts(plan)
    for mix in plan.mixes:
        for made in mix.partitions:
            groups = [name for one in cohorts[mix.identity] for name in held.shared.get((one, made.name), ())]
            found[mix.name, made.name] = tuple(dict.fromkeys(groups))
    return found


def equal(plan: Plan, held: HeldPartitions) -> list[tuple[str, ...]]:
    """Partitions of one mix that were asked as different ones, and that the processor held as the same."""
    by_shares: dict[tuple[str, tuple[Share, ...]], dict[str, tuple[Share, ...]]] = {}
    for asked, made in zip(plan.mixes, as_held(plan, held).mixes, strict=True):
        for partition, planned in zip(made.partitions, asked.partitions, strict=True):
            by_shares.setdefault((made.name, partition.shares), {})[planned.name] = planned.shares
    groups = (tuple(same) for same in by_shares.values() if len(set(same.values())) > 1)
    return list(dict.fromkeys(groups))


def _state(partition: Partition, cache: Cache | None, cohorts: Sequence[str], held: HeldPartitions) -> str:
    places = [(cohort, partition.name) for cohort in cohorts if cohort in held.measured]
    if any(held.shared.get(place) for place in places):
        return SHARED
    if any((*place, share.member) in held.settings for place in places for share in partition.shares):
        return OTHERWISE
    if any(held.beyond.get(place) for place in places):
        return BEYOND
    if places and all(place in held.compared and place not in held.unread for place in places):
        return AS_ASKED
    return UNCERTAIN if cut_by(partition, cache) else NOT_READ


def _as_held(partition: Partition, cohorts: Sequence[str], held: HeldPartitions) -> Partition:
    return partition.model_copy(
        update={"shares": tuple(_share(share, partition, cohorts, held) for share in partition.shares)}
    )


def _share(share: Share, partition: Partition, cohorts: Sequence[str], held: HeldPartitions) -> Share:
    """What was held of one share: apart for every cache of the member where these differ."""
    found: dict[str, dict[int, int]] = {}
    caches: set[int] = set()
    for cohort in cohorts:
        caches |= held.caches.get((cohort, share.member), frozenset())
        for setting, by_cache in held.settings.get((cohort, partition.name, share.member), {}).items():
            if getattr(share, setting) is not None:
                for cache, value in by_cache.items():
                    _join(found.setdefault(setting, {}), setting, cache, value)
    if not found:
        return share
    caches |= {cache for by_cache in found.values() for cache in by_cache}
    # Records list what differs; on its other caches the member has what was asked.
    whole = {name: {cache: by.get(cache, getattr(share, name)) for cache in caches} for name, by in found.items()}
    changes = {name: _together(name, by_cache.values()) for name, by_cache in whole.items()}
    made = share.model_copy(update=changes)
    ways = {
        cache: masks.union(whole.get(name, {}).get(cache, getattr(share, name) or 0) for name in MASKS)
        for cache in sorted(caches)
    }
    return made.model_copy(update={"by_cache": tuple(ways.items())}) if len(set(ways.values())) > 1 else made


def _add(settings: dict[str, dict[int, int]], row: Mapping[str, Any]) -> None:
    setting = _SETTINGS.get(str(row["line"]))
    if setting is not None:
        value = int(row["held"], 10 if setting == "bandwidth" else 16)
        _join(settings.setdefault(setting, {}), setting, int(row["domain"]), value)


def _join(by_cache: dict[int, int], setting: str, cache: int, value: int) -> None:
    """Note what several launches, or machines, held on one cache."""
    by_cache[cache] = _together(setting, [by_cache.get(cache, value), value])


def _together(setting: str, values: Iterable[int]) -> int:
    """What is held somewhere: every way of any of them, and the loosest throttle."""
    return max(values) if setting == "bandwidth" else masks.union(values)


def _cohorts(plan: Plan) -> dict[str, list[str]]:
    """By a mix's identity: the cohorts that measure it."""
    cohorts: dict[str, list[str]] = {mix.identity: [] for mix in plan.mixes}
    for cohort in plan.cohorts:
        for mix in cohort.mixes:
            if mix.identity in cohorts:
                cohorts[mix.identity].append(cohort.id)
    return cohorts


def _partitions_of(record: Mapping[str, Any]) -> Mapping[str, list[Mapping[str, Any]]]:
    """By partition, what was held otherwise; of those alone whose registers were read."""
    partitions: Mapping[str, list[Mapping[str, Any]]] = record.get("processor", {}).get("partitions", {})
    return partitions
