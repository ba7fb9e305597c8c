"""What the processor held of each partition, by the records of the blocks; pure.

The kernel shows what was asked. Where a block could read the processor's registers, its record lists what they held
otherwise, and a partition is judged by that. Where they were not read, a mask that cuts through the ways that I/O fills
too is uncertain (castmates.study.partitions.io_ways).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from castmates.study import masks
from castmates.study.partitions.io_ways import cut_by
from castmates.study.spec import Partition, Plan, Share

AS_ASKED, OTHERWISE, UNCERTAIN, NOT_READ = "as asked", "otherwise", "uncertain", "not read"

Place = tuple[str, str]  # company and partition, or mix and partition
States = Mapping[Place, str]  # mix and partition -> one of the four

# Lines of schemata -> which setting of a share they are.
_SETTINGS = {"L3": "ways", "L3DATA": "ways", "L3CODE": "code", "MB": "bandwidth"}


@dataclass(frozen=True)
class Held:
    """What the measured blocks of a study found in the processor."""

    measured: frozenset[str] = frozenset()  # companies with a measured block
    unread: frozenset[Place] = frozenset()  # what some measured block did not compare; only of `compared`
    compared: frozenset[Place] = frozenset()  # what some measured block compared
    settings: Mapping[tuple[str, str, str], Mapping[str, int]] = field(default_factory=dict)  # by member: what differed


def held_by(records: Iterable[Mapping[str, Any]]) -> Held:
    """Collect what the records of these blocks have of the processor."""
    measured: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.get("status") == "measured":
            measured.setdefault(_company_of(record), []).append(_partitions_of(record))
    settings: dict[tuple[str, str, str], dict[str, int]] = {}
    for company, found in measured.items():
        for partitions in found:
            for partition, rows in partitions.items():
                for row in rows:
                    _add(settings.setdefault((company, partition, row["member"]), {}), row)
    compared = {(company, name) for company, found in measured.items() for each in found for name in each}
    unread = {(company, name) for company, name in compared if not all(name in each for each in measured[company])}
    return Held(frozenset(measured), frozenset(unread), frozenset(compared), settings)


def as_held(plan: Plan, held: Held) -> Plan:
    """The plan with what the processor held in the place of what was asked; names of partitions stay what they are."""
    if not held.settings:
        return plan
    companies = _companies(plan)
    mixes = tuple(
        mix.model_copy(
            update={"partitions": tuple(_as_held(made, companies[mix.identity], held) for made in mix.partitions)}
        )
        for mix in plan.mixes
    )
    return plan.model_copy(update={"mixes": mixes})


def states(plan: Plan, held: Held | None = None) -> dict[Place, str]:
    """By mix and partition: whether the processor held what was asked, as far as it is known."""
    found, companies = held or Held(), _companies(plan)
    return {
        (mix.name, made.name): _state(made, plan, companies[mix.identity], found)
        for mix in plan.mixes
        for made in mix.partitions
    }


def equal(plan: Plan, held: Held) -> list[tuple[str, ...]]:
    """Partitions of one mix that were asked as different ones, and that the processor held as the same."""
    by_shares: dict[tuple[str, tuple[Share, ...]], dict[str, tuple[Share, ...]]] = {}
    for asked, made in zip(plan.mixes, as_held(plan, held).mixes, strict=True):
        for partition, planned in zip(made.partitions, asked.partitions, strict=True):
            by_shares.setdefault((made.name, partition.shares), {})[planned.name] = planned.shares
    groups = (tuple(same) for same in by_shares.values() if len(set(same.values())) > 1)
    return list(dict.fromkeys(groups))


def _state(partition: Partition, plan: Plan, companies: Sequence[str], held: Held) -> str:
    places = [(company, partition.name) for company in companies if company in held.measured]
    if any((*place, share.member) in held.settings for place in places for share in partition.shares):
        return OTHERWISE
    if places and all(place in held.compared and place not in held.unread for place in places):
        return AS_ASKED
    return UNCERTAIN if cut_by(partition, plan.cache) else NOT_READ


def _as_held(partition: Partition, companies: Sequence[str], held: Held) -> Partition:
    return partition.model_copy(
        update={"shares": tuple(_share(share, partition, companies, held) for share in partition.shares)}
    )


def _share(share: Share, partition: Partition, companies: Sequence[str], held: Held) -> Share:
    changes: dict[str, int] = {}
    for company in companies:
        for setting, value in held.settings.get((company, partition.name, share.member), {}).items():
            if getattr(share, setting) is not None:
                changes[setting] = _joined(setting, changes.get(setting), value)
    return share.model_copy(update=changes) if changes else share


def _add(settings: dict[str, int], row: Mapping[str, Any]) -> None:
    setting = _SETTINGS.get(str(row["line"]))
    if setting is not None:
        value = int(row["held"], 10 if setting == "bandwidth" else 16)
        settings[setting] = _joined(setting, settings.get(setting), value)


def _joined(setting: str, known: int | None, value: int) -> int:
    """What is held on several caches, or by several machines: every way of any of them, and the loosest throttle."""
    if known is None:
        return value
    return max(known, value) if setting == "bandwidth" else masks.union([known, value])


def _companies(plan: Plan) -> dict[str, list[str]]:
    """By a mix's identity: the companies that measure it."""
    companies: dict[str, list[str]] = {mix.identity: [] for mix in plan.mixes}
    for company in plan.companies:
        for mix in company.mixes:
            if mix.identity in companies:
                companies[mix.identity].append(company.id)
    return companies


def _company_of(record: Mapping[str, Any]) -> str:
    return str(record.get("spec", {}).get("company", {}).get("id", ""))


def _partitions_of(record: Mapping[str, Any]) -> Mapping[str, list[Mapping[str, Any]]]:
    """By partition, what was held otherwise; of those alone whose registers were read."""
    partitions: Mapping[str, list[Mapping[str, Any]]] = record.get("processor", {}).get("partitions", {})
    return partitions
