"""Cuts by roles and members on their CPUs -> the partitions to try on a mix, as far as the machine can make them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.study import masks
from castmates.study.cache import Cache, rate_words
from castmates.study.curves import overlap
from castmates.study.partition_keys import CacheKeys
from castmates.study.partitions.amounts import Notes
from castmates.study.partitions.sweeps import Cut, Part, cuts, some_of
from castmates.study.placement.layout import Layout
from castmates.study.spec import REST, Member, Mix, Partition, Plan, Share

_NOT_BOUNDED = "this user may not set the masks of the default group"


@dataclass(frozen=True)
class Partitions:
    """What a study tries on the cache of one machine."""

    cuts: Sequence[Cut]
    cache: Cache | None
    layout: Layout
    notes: Notes
    played: set[str] = field(default_factory=set)  # names of the cuts that some mix has the members for

    @property
    def divides(self) -> bool:
        """Whether ways of a cache are divided between a lead and its antagonists."""
        shared = (
            part for cut in self.cuts if not cut.alone for part in (cut.lead, cut.antagonists, *cut.named.values())
        )
        return any(part.mask is not None for part in shared)

    def of(self, lead: Member, antagonists: Sequence[Member]) -> list[Partition]:
        """The partitions to try on these members; on the lead alone where there are no antagonists."""
        wanted = [cut for cut in self.cuts if cut.alone is not bool(antagonists)]
        tried = [partition for cut in wanted if (partition := partition_of(cut, lead, antagonists)) is not None]
        self.played.update(partition.name for partition in tried)
        if antagonists and len(antagonists_apart(lead, antagonists, self.layout, self.cache)) == len(antagonists):
            # Those that divide no ways: there is no cache that the members share.
            kept = [made for made in tried if all(share.ways is None for share in made.shares)]
            if len(kept) < len(tried):
                names = " beside ".join([lead.workload, *(member.workload for member in antagonists)])
                self.notes.add("cache", f"no ways are divided for {names}: they share no last-level cache.")
            tried = kept
        return tried if tried and self._can_be_made([lead, *antagonists]) else []

    def note_unplayed(self) -> None:
        """Note which cuts no mix has the members for, once all mixes were asked."""
        if unplayed := [cut.name for cut in self.cuts if cut.name not in self.played]:
            self.notes.add("cache", f"{some_of(unplayed)} left out: no mix has the members that they are for.")

    def _can_be_made(self, members: Sequence[Member]) -> bool:
        """Whether the machine has a group, and a cache that it can share out, for everybody."""
        cache, name = self.cache, " beside ".join([members[0].workload, *(member.workload for member in members[1:])])
        if cache is None:
            return False
        if len(members) > cache.groups:
            self.notes.add(
                "cache",
                f"the partitions of {name} are left out: they take {len(members)} groups, one for each member, "
                f"and this user can have {cache.groups} here (`castmates doctor` shows what helps).",
            )
            return False
        unknown = {member.name for member in members if not set(domains(member, self.layout)) <= set(cache.domains)}
        if unknown:
            self.notes.add(
                "cache",
                f"the partitions of {name} are left out: the last-level cache of {', '.join(sorted(unknown))} "
                "is none of those that this machine can share out.",
            )
        return not unknown


def partitions(keys: CacheKeys, cache: Cache | None, layout: Layout, study_file: str) -> Partitions:
    """What a study asks for on this machine; where the cache cannot be shared out, nothing, with a note."""
    notes = Notes()
    cache = cache.beyond_site if cache and keys.beyond_site else cache
    if keys.sweeps and (cache is None or not (cache.ways or cache.bandwidth)):
        notes.add(
            "cache",
            "the last-level cache cannot be partitioned here (resctrl is not mounted, or the machine lacks it), "
            "so the partitions of 'cache.sweeps' are left out; `castmates doctor` shows what to do.",
        )
        return Partitions([], None, layout, notes)
    throttle = cache.bandwidth.allowed if cache and cache.bandwidth else None
    if keys.sweeps and cache and (cache.allowed is not None or throttle is not None):
        parts = [f"{masks.popcount(cache.usable)} of {cache.ways} ways ({cache.usable:#x})"] if cache.ways else []
        parts += [rate_words(throttle, cache.bandwidth.unit)] if throttle is not None and cache.bandwidth else []
        notes.add(
            "cache",
            f"programs are found in a class with {listed(parts)}; partitions and everything else stay within "
            "it, unless 'cache.beyond_site' is true.",
        )
    possible = _cuts(keys, cache, study_file, notes) if cache is not None and keys.sweeps else []
    return Partitions(possible, cache, layout, notes)


def _cuts(keys: CacheKeys, cache: Cache, study_file: str, notes: Notes) -> list[Cut]:
    """All cuts that can be made; where the rest of the machine cannot be bounded, those that leave it alone."""
    if cache.rest:
        return cuts(keys, cache, study_file, notes)
    if keys.rest is None:
        notes.add(
            "cache.rest",
            f"everybody else on the machine keeps all ways, because {_NOT_BOUNDED}; "
            "`sudo castmates doctor --grant --default-group` permits it.",
        )
        keys = keys.model_copy(update={"rest": "all"})
    possible = cuts(keys, cache, study_file, notes)
    if bounding := [cut.name for cut in possible if cut.rest is not None]:
        notes.add(
            "cache.rest",
            f"{some_of(bounding)} left out: they bound everybody else on the machine, and {_NOT_BOUNDED}; without "
            "'rest' in the study they bound nobody else, and `sudo castmates doctor --grant --default-group` "
            "permits it.",
        )
    return [cut for cut in possible if cut.rest is None]


def partition_of(cut: Cut, lead: Member, antagonists: Sequence[Member]) -> Partition | None:
    """The cut with members in their roles; None where it gives none of them anything, or names another workload too."""
    if not cut.named.keys() <= {lead.workload, *(member.workload for member in antagonists)}:
        return None
    parts = [(lead.name, _part(lead, cut.lead, cut))]
    parts += [(member.name, _part(member, cut.antagonists, cut)) for member in antagonists]
    shares = [
        Share(member=name, ways=part.mask, code=part.code, bandwidth=part.bandwidth)
        for name, part in parts
        if part != Part()
    ]
    if not shares:
        return None
    if cut.rest is not None:
        shares.append(Share(member=REST, ways=cut.rest))
    return Partition(name=cut.name, shares=tuple(shares), curve=cut.curve)


def _part(member: Member, role: Part, cut: Cut) -> Part:
    """What its role gets, unless something is written for the workload itself."""
    own = cut.named.get(member.workload, Part())
    masked = role if own.mask is None else own
    return replace(masked, bandwidth=role.bandwidth if own.bandwidth is None else own.bandwidth)


def domains(member: Member, layout: Layout) -> tuple[int, ...]:
    """The last-level caches around a member's CPUs; -1 for one that is not known."""
    caches = {layout.by_id[cpu].llc for cpu in member.cpus}
    return tuple(sorted(-1 if cache is None else cache for cache in caches))


def antagonists_apart(lead: Member, others: Sequence[Member], layout: Layout, cache: Cache | None) -> tuple[str, ...]:
    """Those that share no last-level cache with the lead, as far as that is known.

    A virtual machine may show each core a last-level cache that it does not have; they are believed where the kernel
    can share them out.
    """
    around = Counter(core.llc for core in layout.cores)
    if max(around.values(), default=0) < 2 and not (cache and cache.ways):
        return ()
    home, places = set(domains(lead, layout)), {member.name: set(domains(member, layout)) for member in others}
    return tuple(name for name, away in places.items() if not home & away and -1 not in home | away)


def check_workloads(keys: CacheKeys, playing: Iterable[str], study_file: str) -> None:
    """Refuse masks and throttles for workloads that play in no mix."""
    there = set(playing)
    for number, sweep in enumerate(keys.sweeps, start=1):
        for name in sweep.named:
            if name not in there:
                raise CastmatesError(
                    f"{study_file}: 'cache.sweeps.{number}' names '{name}', which plays in no mix of this study "
                    f"(there are: {', '.join(sorted(there))}; and the roles lead, antagonists and rest)."
                )


# Which partitions isolate: lead and antagonists have separate ways of a cache that they share, none is throttled.

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


# The partitions of a plan by their names.


def partitions_by_name(plan: Plan) -> dict[str, Partition]:
    """Each partition; of those of several mixes with one name the last."""
    return {each.name: each for mix in plan.mixes for each in mix.partitions}


def curve_names(plan: Plan) -> dict[str, str]:
    """What each partition has in common with those that differ from it in the lead's ways alone."""
    return {name: each.curve or name for name, each in partitions_by_name(plan).items()}


def masked(plan: Plan) -> set[str]:
    """Those that the cache's driver gives out."""
    return {name for name, each in partitions_by_name(plan).items() if each.of_cache}
