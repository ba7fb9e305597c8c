"""What is tried against the losses of some mixes, and why some of it cannot be tried on this machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from castmates.study.cache import Cache
from castmates.study.cache_keys import CacheKeys, Sweep
from castmates.study.mix_keys import Kind, Mitigated
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.isolation import isolates
from castmates.study.partitions.partitions import partitions
from castmates.study.placement.layout import Layout
from castmates.study.spec import UNMANAGED, Member, Mitigation, Mix, Partition, Share
from castmates.study.wanted import (
    NEAREST_FIRST,
    PREFETCHERS_OFF,
    Quota,
    WantedMix,
    elsewhere,
    reason_against,
    unmanaged,
)

NO_CACHE = "the last-level cache cannot be partitioned here (`castmates doctor` shows what to do)"
KEY = "cache.sweeps.1"  # as sentences on a single sweep call it


@dataclass(frozen=True)
class Ground:
    """The machine on which it is tried."""

    keys: CacheKeys  # of the study: who else is bounded, whether ways of I/O are used
    cache: Cache | None
    layout: Layout
    no_quota: str  # why CPU time cannot be given out; "" where it can
    study_file: str


def of_mix(rule: Mitigated, key: str, seated: tuple[Mix, Sequence[Member]], ground: Ground, notes: Notes) -> "Tried":
    """The partitions that are tried on a mix and its members, the lead first, by kind."""
    made: dict[Kind, list[Partition]] = {}
    reasons: dict[Kind, str] = {}
    for kind, sweep in sweeps(rule).items():
        if kind in rule.kinds:
            made[kind], reasons[kind] = _under_sweep(kind, sweep, key, seated, ground, notes)
    if "quota" in rule.kinds:
        reasons["quota"] = ground.no_quota
        quotas = [] if ground.no_quota else [Quota(percent, rule.period) for percent in rule.quota]
        made["quota"] = [under_quota(quota, seated[1][1:]) for quota in quotas]
    return Tried(rule, made, reasons)


@dataclass(frozen=True)
class Tried:
    """What is tried on one mix."""

    rule: Mitigated
    made: Mapping[Kind, Sequence[Partition]]
    reasons: Mapping[Kind, str]

    def on(self, mix: str) -> list[Partition]:
        """The partitions to try on the mix of this name."""
        return [each for made in self.made.values() for each in made] if mix == unmanaged(self.rule).name else []

    def mitigations(self, lacking: Mapping[str, str]) -> Iterator[Mitigation]:
        """What the estimators read of it; `lacking` has the mixes that find no seats, by name, with the reason."""
        rule, mix = self.rule, unmanaged(self.rule).name
        away = {each.place: each for each in elsewhere(rule)}
        for kind in rule.kinds:
            if kind in NEAREST_FIRST:
                yield _elsewhere(mix, kind, away.get(kind), lacking, reason_against(rule, kind))
                continue
            arms = [(mix, partition.name) for partition in self.made.get(kind, ())]
            # Masks compete for being the best one; each throttle and each quota is a choice by itself.
            for together in [arms] if kind == "ways" or not arms else [[arm] for arm in arms]:
                yield Mitigation(
                    mix=mix, kind=kind, arms=tuple(together), reason="" if together else self.reasons.get(kind, "")
                )


def under_quota(quota: Quota, antagonists: Sequence[Member]) -> Partition:
    """The partition that gives each antagonist so much CPU time."""
    shares = [Share(member=member.name, quota=quota.percent, period=quota.period) for member in antagonists]
    return Partition(name=quota.name, shares=tuple(shares))


def without_prefetching(members: Sequence[Member]) -> Partition:
    """The partition under which the cores of a whole mix do not prefetch."""
    return Partition(
        name=PREFETCHERS_OFF, shares=tuple(Share(member=member.name, prefetchers="off") for member in members)
    )


def _elsewhere(mix: str, kind: Kind, moved: WantedMix | None, lacking: Mapping[str, str], against: str) -> Mitigation:
    reason = lacking.get(moved.name, "") if moved else against
    arms = ((moved.name, UNMANAGED),) if moved and not reason else ()
    return Mitigation(mix=mix, kind=kind, arms=arms, reason=reason)


def sweeps(rule: Mitigated) -> dict[Kind, Sweep]:
    """The sweeps of partitions that are tried, by kind."""
    return {
        "ways": Sweep.model_validate({"split": list(rule.ways)}),
        "bandwidth": Sweep.model_validate({"bandwidth": {"antagonists": list(rule.bandwidth)}}),
        "code": Sweep.model_validate({"split": ["50%"], "code": list(rule.code)}),
    }


def _under_sweep(
    kind: Kind, sweep: Sweep, key: str, seated: tuple[Mix, Sequence[Member]], ground: Ground, notes: Notes
) -> tuple[list[Partition], str]:
    """The partitions of a sweep; where there are none, why."""
    if ground.cache is None or not (ground.cache.ways or ground.cache.bandwidth):
        return [], NO_CACHE
    keys = ground.keys.model_copy(update={"sweeps": [sweep], "only": []})
    tried = partitions(keys, ground.cache, ground.layout, ground.study_file)
    mix, (lead, *antagonists) = seated
    made = tried.of(lead, antagonists)
    if kind == "ways":
        made = [each for each in made if isolates(each, mix)]
    if not made:
        return [], next((remark.text.rstrip(".") for remark in tried.notes.remarks), "this machine gives none")
    for remark in tried.notes.remarks:
        notes.add(remark.about.replace(KEY, f"{key}.{kind}"), remark.text, remark.left_out)
    return made, ""
