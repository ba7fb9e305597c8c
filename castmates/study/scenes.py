"""The scenes of a cohort: the baselines once, then each mix, then each mix under its partitions."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castmates.errors import CastmatesError
from castmates.study.budget_keys import Budget
from castmates.study.cpus import name_of
from castmates.study.schedule import turns_of
from castmates.study.spec import REST, UNMANAGED, Member, Mix, Partition, Plan, Scene, SceneKind, Share

# How much memory it takes to empty the last-level caches of a cohort with way masks; it is in no member's need.

CACHE_TIMES = 2  # the size of a cache, or of a part that one memory node fills, that is written in a pass


@dataclass(frozen=True)
class CachePart:
    """What of a last-level cache one memory node fills."""

    llc: int
    node: int | None  # None where the cache is not divided
    cpus: frozenset[int]
    bytes: int


def evictors_are_needed(shares: Iterable[Share]) -> bool:
    """Whether some of these are way masks, so that what lies in the caches could differ between partitions."""
    return any(share.ways is not None or share.code is not None for share in shares)


def memory_to_evict(parts: Iterable[CachePart], members: Sequence[Member]) -> int:
    """The bytes that are written, each of them into separate memory, for the caches of these members."""
    cpus = {cpu for member in members for cpu in member.cpus}
    bound = {node for member in members for node in member.nodes}
    known = list(parts)
    used = {part.llc for part in known if part.cpus & cpus}
    return CACHE_TIMES * sum(
        part.bytes for part in known if part.llc in used and (part.cpus & cpus or part.node in bound)
    )


def scenes_of(
    mixes: Sequence[Mix], members: Mapping[str, Member], without: Collection[SceneKind] = ()
) -> tuple[Scene, ...]:
    """Each scene once: what several mixes have in common has one name; none of the kinds that are not asked for."""
    by_name: dict[str, Scene] = {}
    for scene in _scenes(mixes, members):
        if scene.kind not in without:
            by_name.setdefault(scene.name, scene)
    return tuple(by_name.values())


def left_out(budget: Budget) -> frozenset[SceneKind]:
    """Kinds of scenes that the study does not ask for."""
    asked: dict[SceneKind, bool] = {"antagonist-alone": budget.antagonists_alone, "placebo": budget.placebo}
    return frozenset(kind for kind, wanted in asked.items() if not wanted)


def _scenes(mixes: Sequence[Mix], members: Mapping[str, Member]) -> Iterator[Scene]:
    """`alone`, its independent twin, a placebo per set of antagonists' CPUs, each co-run, each antagonist alone."""
    lead, beside = mixes[0].lead, [mix for mix in mixes if mix.antagonists]
    yield Scene(name="alone", kind="alone", mix="", active=(lead,), placebos=(), partition=UNMANAGED)
    yield Scene(name="alone-again", kind="alone-again", mix="", active=(lead,), placebos=(), partition=UNMANAGED)
    for mix in beside:
        yield _placebo(mix, members)
    for mix in beside:
        yield _corun(mix)
    for mix in mixes:
        for partition in mix.partitions:
            yield from _under(partition, mix, members)
    for name in dict.fromkeys(name for mix in beside for name in mix.antagonists):
        yield Scene(
            name=f"antagonist-alone:{name}",
            kind="antagonist-alone",
            mix="",
            active=(name,),
            placebos=(),
            partition=UNMANAGED,
        )


def measures_alone(plan: Plan) -> bool:
    """Whether antagonists are measured alone, so that their own losses can be known."""
    return any(scene.kind == "antagonist-alone" for cohort in plan.cohorts for scene in cohort.scenes)


def _under(partition: Partition, mix: Mix, members: Mapping[str, Member]) -> Iterator[Scene]:
    """The mix under a partition, and the lead with the same share beside placebos; or the lead alone with it."""
    if not mix.antagonists:
        yield Scene(
            name=under("alone", partition.name), kind="alone", mix=mix.name, active=(mix.lead,), placebos=(),
            partition=partition.name, shares=partition.shares,
        )  # fmt: skip
        return
    yield _corun(mix, partition.name, partition.shares)
    if has_share(partition, mix.lead):
        # The antagonists' shares stay out: mixes whose antagonists have the same CPUs have this scene in common.
        shares = tuple(share for share in partition.shares if share.member in (mix.lead, REST))
        yield _placebo(mix, members, partition.name, shares)


def has_share(partition: Partition, member: str) -> bool:
    """Whether the partition gives this member its own share."""
    return any(share.member == member for share in partition.shares)


def placebo_cpus(mix: Mix, members: Mapping[str, Member]) -> tuple[int, ...]:
    """The CPUs that the antagonists of a mix hold."""
    return tuple(sorted(cpu for name in mix.antagonists for cpu in members[name].cpus))


def placebo_name(cpus: Sequence[int]) -> str:
    """The name of the scene in which placebos hold these CPUs."""
    return f"placebo:{name_of(cpus)}"


def under(scene: str, partition: str) -> str:
    """The name of a scene under a partition."""
    return scene if partition == UNMANAGED else f"{scene}@{partition}"


def _corun(mix: Mix, partition: str = UNMANAGED, shares: tuple[Share, ...] = ()) -> Scene:
    return Scene(
        name=under(f"corun:{mix.name}", partition), kind="corun", mix=mix.name, active=(mix.lead, *mix.antagonists),
        placebos=(), partition=partition, shares=shares,
    )  # fmt: skip


def _placebo(
    mix: Mix, members: Mapping[str, Member], partition: str = UNMANAGED, shares: tuple[Share, ...] = ()
) -> Scene:
    cpus = placebo_cpus(mix, members)
    return Scene(
        name=under(placebo_name(cpus), partition), kind="placebo", mix="", active=(mix.lead,), placebos=cpus,
        partition=partition, shares=shares,
    )  # fmt: skip


# How many mixes share a launch: as many as the study allows, memory holds, and the length of a launch permits.

MEMORY_SHARE = 0.8  # of the machine's memory that a cohort may take; the rest is for the system and its file cache

# Guesses of the start of a launch in seconds: a Model Garden job imports and traces for some ten seconds.
QUICK_LAUNCH, SLOW_LAUNCH = 1.0, 15.0
SHARE = 0.8  # of the time of rounds that slices are open
QUICK_ENVIRONMENTS = ("native", None)


@dataclass(frozen=True)
class Room:
    """How much memory there is, what each workload takes of it, and how many groups the cache can be shared among."""

    bytes: int | None = None  # None where it is not known: everything fits
    needs: Mapping[str, int] = field(default_factory=dict)  # by workload
    groups: int | None = None  # a member under partitions takes one; None where there is no end of them
    caches: Sequence[CachePart] = ()  # which are emptied under way masks


def cohorts(
    mixes: Sequence[Mix], members: Mapping[str, Member], budget: Budget, rounds: int, room: Room
) -> list[list[Mix]]:
    """Put mixes of one lead together, each into the first cohort that has room for it.

    What is in a cohort does not depend on the cohorts after it, and taking a whole one away changes no other:
    a plan stays the same while its launches are measured one by one.
    """
    drafts: list[list[Mix]] = []
    for mix in mixes:
        if why := lacks_memory(mix, members, room):
            raise CastmatesError(
                f"the mix {mix.name} {why}; take out the mix, use a smaller size of its workloads, or correct their "
                "'memory' in the catalogue."
            )
        for place, cohort in enumerate(drafts):
            if _may_share([*cohort, mix], members, budget, rounds, room):
                drafts[place] = [*cohort, mix]
                break
        else:
            drafts.append([mix])
    return drafts


def _may_share(mixes: Sequence[Mix], members: Mapping[str, Member], budget: Budget, rounds: int, room: Room) -> bool:
    """Whether one launch serves all these mixes; a mix counts once, however many partitions are tried on it."""
    started = _members_of(mixes, members)
    grouped = (
        room.groups is None
        or len(started) <= room.groups
        or not any(part.of_cache for mix in mixes for part in mix.partitions)
    )
    return (
        len({mix.antagonists for mix in mixes if mix.antagonists}) <= budget.mixes_per_launch
        and grouped
        and _fits(mixes, members, room)
        and _seconds(mixes, members, budget, rounds) <= budget.longest_launch
    )


def _seconds(mixes: Sequence[Mix], members: Mapping[str, Member], budget: Budget, rounds: int) -> float:
    """What a launch is expected to take, no window stretched and no round repeated."""
    started = _members_of(mixes, members)
    scenes = scenes_of(mixes, members, left_out(budget))
    return launch_guess(started) + rounds * round_guess(scenes, started, budget.window)


def round_guess(scenes: Iterable[Scene], members: Iterable[Member], window: float) -> float:
    """Seconds that a round of these scenes takes, before any was measured; every plan and preview uses this guess."""
    return turns_of(scenes, members) * window / SHARE


def launch_guess(members: Iterable[Member]) -> float:
    """Seconds until everyone is ready, before any launch was measured; all start at the same time."""
    return max(QUICK_LAUNCH if member.environment in QUICK_ENVIRONMENTS else SLOW_LAUNCH for member in members)


def _members_of(mixes: Iterable[Mix], members: Mapping[str, Member]) -> list[Member]:
    names = dict.fromkeys(name for mix in mixes for name in (mix.lead, *mix.antagonists))
    return [members[name] for name in names]


def _fits(mixes: Sequence[Mix], members: Mapping[str, Member], room: Room) -> bool:
    return room.bytes is None or _memory(mixes, members, room) <= MEMORY_SHARE * room.bytes


def _memory(mixes: Sequence[Mix], members: Mapping[str, Member], room: Room) -> int:
    needed = sum(room.needs.get(member.workload, 0) for member in _members_of(mixes, members))
    return needed + _memory_of_evictors(mixes, members, room)


def _memory_of_evictors(mixes: Sequence[Mix], members: Mapping[str, Member], room: Room) -> int:
    shares = (share for mix in mixes for partition in mix.partitions for share in partition.shares)
    return memory_to_evict(room.caches, _members_of(mixes, members)) if evictors_are_needed(shares) else 0


def lacks_memory(mix: Mix, members: Mapping[str, Member], room: Room) -> str:
    """What a mix takes, as a clause, where that is more than there is; "" where it fits."""
    if room.bytes is None or _fits([mix], members, room):
        return ""
    parts = " + ".join(
        f"{member.workload} {room.needs.get(member.workload, 0) / 1e9:.1f}" for member in _members_of([mix], members)
    )
    if emptying := _memory_of_evictors([mix], members, room):
        parts += f" + {emptying / 1e9:.1f} to empty its caches between partitions"
    return (
        f"takes {_memory([mix], members, room) / 1e9:.1f} GB ({parts}), but {MEMORY_SHARE:.0%} of the memory that may "
        f"be used here are {MEMORY_SHARE * room.bytes / 1e9:.1f} GB"
    )


# Which members of a plan are open-loop services, under which load, and which are one service at several loads.

LOAD = "--load"
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([KM]?)")
_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6}


def service_members(plan: Plan) -> dict[str, Member]:
    """The services of a plan, by the member's name."""
    return {member.name: member for cohort in plan.cohorts for member in cohort.members if member.requests}


def service_workloads(plan: Plan) -> set[str]:
    """The workloads that are services."""
    return {member.workload for member in service_members(plan).values()}


def load_of(member: Member) -> float | None:
    """Requests a second that its command offers; None where that is not known."""
    words = [*member.command, ""]
    found = _NUMBER.fullmatch(words[words.index(LOAD) + 1]) if LOAD in words else None
    return float(found[1]) * _FACTORS[found[2]] if found else None


def same_service(member: Member) -> tuple[object, ...]:
    """What members have in common that differ in their load alone."""
    return _without_load(member.command), member.content, member.cpus, tuple(sorted(member.variables.items()))


def _without_load(command: Sequence[str]) -> tuple[str, ...]:
    words = list(command)
    if LOAD in words:
        at = words.index(LOAD)
        del words[at : at + 2]
    return tuple(words)
