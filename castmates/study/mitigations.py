"""What is tried against the losses of some mixes, and why some of it cannot be tried on this machine."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from castmates.study.cache import Cache
from castmates.study.class_names import without_class
from castmates.study.mix_keys import PERIOD, ArrangedMix, Kind, MadeMix, Mitigated
from castmates.study.model import Study
from castmates.study.partition_keys import CacheKeys, Sweep
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.partitions import isolates, partitions
from castmates.study.placement.layout import Layout
from castmates.study.placement_keys import design
from castmates.study.spec import UNMANAGED, Member, Mitigation, Mix, Partition, Share

# The mixes that a study asks for, in all their arrangements, before anybody has a seat.

# Where antagonists sit, nearest first: on the lead's own CPUs, then the distances as a study writes them.
SAME_CPUS = "cpu"
NEAREST_FIRST = (SAME_CPUS, "smt", "core", "llc", "socket", "other-socket")
MANY = 4  # copies of a workload, from which on a sentence counts them
BETWEEN = ":"  # a mix and its place; no workload's name has one


@dataclass(frozen=True)
class Quota:
    """How much CPU time an antagonist may take."""

    percent: int  # of its CPUs
    period: int  # milliseconds

    @property
    def name(self) -> str:
        """What its partition is called."""
        return f"quota-{self.percent}" + (f"-every-{self.period}ms" if self.period != PERIOD else "")


@dataclass(frozen=True)
class WantedMix:
    """A mix in one arrangement."""

    lead: str
    antagonists: tuple[str, ...]
    place: str = ""  # of NEAREST_FIRST; "": wherever placement puts them
    quotas: tuple[Quota, ...] = ()
    fewest: bool = True  # of its rule, no other has fewer antagonists at this place
    optional: bool = False  # left out, with the reason, where the machine has no such place

    @property
    def name(self) -> str:
        """What it is called: `ranking+stream`, `ranking+stream+stream:smt`."""
        together = "+".join([self.lead, *sorted(self.antagonists)])
        return f"{together}{BETWEEN}{self.place}" if self.place else together

    @property
    def in_short(self) -> str:
        """What a sentence calls it: `ranking+40 stream:smt` where the name itself is long."""
        counts = Counter(self.antagonists)
        if max(counts.values(), default=0) < MANY:
            return self.name if self.place else "+".join(self.members)
        each = [name if count == 1 else f"{count} {name}" for name, count in counts.items()]
        return "+".join([self.lead, *each]) + (f"{BETWEEN}{self.place}" if self.place else "")

    @property
    def members(self) -> tuple[str, ...]:
        """Everybody's workload, the lead's first."""
        return (self.lead, *self.antagonists)


def wanted_mixes(study: Study) -> list[WantedMix]:
    """Every lead beside every antagonist, then what is written out or drawn, in all its arrangements; each once."""
    crossed = [WantedMix(lead, (name,)) for lead in study.leads for name in study.antagonists]
    written = [each for rule in study.listed_mixes for each in _arranged(rule)]
    against = [each for rule in study.mitigations for each in (unmanaged(rule), *elsewhere(rule))]
    unique: dict[str, WantedMix] = {}
    for each in [*crossed, *written, *against, *_for_prediction(study)]:
        known = unique.setdefault(each.name, each)
        if known != each:
            unique[each.name] = _both(known, each)
    return list(unique.values())


def _for_prediction(study: Study) -> list[WantedMix]:
    """What the study measures to predict the rest of a grid."""
    if study.predict is None:
        return []
    drawn = design(study.predict, study.seed)
    return [WantedMix(lead, (name,)) for lead, name in (*drawn.fitted, *drawn.check)]


def unmanaged(rule: Mitigated) -> WantedMix:
    """The mix of which nothing is changed."""
    return WantedMix(rule.lead, tuple(rule.antagonists), rule.distance or "")


def elsewhere(rule: Mitigated) -> list[WantedMix]:
    """The same mix with its antagonists further away, as far as that is to be tried."""
    return [
        WantedMix(rule.lead, tuple(rule.antagonists), kind, optional=True)
        for kind in rule.kinds
        if kind in NEAREST_FIRST and not reason_against(rule, kind)
    ]


def reason_against(rule: Mitigated, place: str) -> str:
    """Why moving the antagonists there changes nothing; "" where it does."""
    if place == "core" and rule.distance != "smt":
        return "its antagonists are on other cores already (`distance: smt` puts them on the siblings)"
    now = NEAREST_FIRST.index(rule.distance or "core")
    return "its antagonists are that far away already" if NEAREST_FIRST.index(place) <= now else ""


PREFETCHERS_OFF = "prefetchers-off"  # the partition under which nobody's cores prefetch


def place_of(mix: str) -> str:
    """Where the antagonists of a mix of this name sit; "" where no rule of the mix decides."""
    return mix.partition(BETWEEN)[2]


def overcommits(mix: str) -> bool:
    """Whether in a mix of this name the antagonists run on the lead's CPUs."""
    return place_of(mix) == SAME_CPUS


def with_place(antagonists: str, mix: str) -> str:
    """The antagonists of a mix, `stream+stream`, as they are named in tables: `stream+stream:smt`.

    The class of their nodes stands with the lead alone.
    """
    names, place = without_class(antagonists), place_of(mix)
    return f"{names}{BETWEEN}{place}" if place else names


def _arranged(rule: ArrangedMix) -> Iterator[WantedMix]:
    if isinstance(rule, MadeMix):
        yield WantedMix(rule.lead, tuple(rule.antagonists), fewest=rule.insists)
        return
    places: Sequence[str] = [SAME_CPUS] if rule.share.cpus else rule.distance or [""]
    quotas = tuple(Quota(percent, rule.share.period) for percent in rule.share.quota)
    for place in places:
        for count in sorted(rule.count):
            yield WantedMix(rule.lead, tuple(rule.antagonists) * count, place, quotas, count == min(rule.count))


def _both(one: WantedMix, other: WantedMix) -> WantedMix:
    """A mix that is written twice has the quotas of both, and is refused where either insists on it."""
    return WantedMix(
        one.lead,
        one.antagonists,
        one.place,
        tuple(dict.fromkeys((*one.quotas, *other.quotas))),
        one.fewest or other.fewest,
        one.optional and other.optional,
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
