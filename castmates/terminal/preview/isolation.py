"""How a study will divide its losses: under which partition, and on how many launches."""

from collections import Counter
from collections.abc import Iterator, Mapping

from rich.table import Table

from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.curves import mask_of, schemata_of
from castmates.study.masks import union
from castmates.study.partitions.partitions import domains
from castmates.study.partitions.sweeps import cut_by_any, some_of
from castmates.study.placement.layout import Layout
from castmates.study.remarks import on_mixes, on_partitions
from castmates.study.spec import REST, UNMANAGED, Cohort, Plan, Scene, Share


def line(plan: Plan, named: str | None) -> str:
    """A sentence for a terminal on the isolating partitions of the mixes; "" where no cache is shared out."""
    return " ".join(filter(None, [_division(plan, named), _uncertain(plan, named)]))


def _uncertain(plan: Plan, named: str | None) -> str:
    """Which partitions are left out because the processor may join ways, or that the named one is such a one."""
    from castmates.analysis.partitions.attribution_parts import separating

    table = separating(plan)
    names = list(dict.fromkeys(table.loc[table["uncertain"], "partition"]))
    if not names or (named is not None and named not in names):
        return ""
    shared = f"the ways {io_ways(plan)} that I/O fills too"
    why = f"some but not all of {shared}, and some processors give these together only"
    if named is not None:
        return f"Masks of {named} have {why}: lead and antagonists may share ways under it."
    return f"Left out is {some_of(names)}: masks there have {why}."


def _division(plan: Plan, named: str | None) -> str:
    from castmates.analysis.partitions.attribution_parts import CHOOSING_SHARE, FEWEST_TO_CHOOSE, candidates
    from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES

    if not any(mix.partitions for mix in plan.mixes if mix.antagonists):
        return ""
    known = candidates(plan, named)
    counts = Counter(zip(known["mix"], known["member"], strict=True))
    mixes = list(dict.fromkeys((mix.name, mix.lead) for mix in plan.mixes if mix.antagonists))
    most, apart = max(counts.values(), default=0), sum(mix in counts for mix in mixes)
    which = f"{apart} of {len(mixes)} mixes" if apart < len(mixes) else "every mix"
    if not most:
        return "How much cache ways give back stays unknown: no partition gives lead and antagonists separate ways."
    if most == 1:
        how = f"{named}, which the study names" if named else "the only partition that isolates"
        return f"The loss of {which} is divided under {how}; all its launches are used for the estimate."
    tried = {mix.identity: (mix.name, mix.lead) for mix in plan.mixes if mix.partitions and mix.antagonists}
    cohorts = {cohort.id: cohort for cohort in plan.cohorts}
    measuring: Counter[tuple[str, str]] = Counter()
    for name, count in Counter(launch.cohort.id for launch in plan.launches).items():
        there = (tried[mix.identity] for mix in cohorts[name].mixes if mix.identity in tried)
        measuring.update(dict.fromkeys(there, count))
    fewest = min(measuring[mix] for mix, partitions in counts.items() if partitions > 1)
    chosen = round(CHOOSING_SHARE * fewest)
    instead = "naming one in 'attribution.isolated' leaves all of them for the estimate"
    if chosen < FEWEST_TO_CHOOSE or fewest - chosen < FEWEST_LAUNCHES:
        return (
            f"To choose one of {most} isolating partitions takes {FEWEST_TO_CHOOSE + FEWEST_LAUNCHES} launches, and "
            f"{fewest} are planned; {instead}."
        )
    return (
        f"The loss of {which} is divided under the best of {most} partitions, chosen on {chosen} of {fewest} launches "
        f"and estimated on the others; {instead}."
    )


def shared(plan: Plan, others: Mapping[str, int]) -> Iterator[str]:
    """Which partitions have ways that other programs on the machine have now, too."""
    own: dict[str, int] = {}
    for made in (made for mix in plan.mixes for made in mix.partitions):
        shares = [share for share in made.shares if share.member != REST]
        own[made.name] = union([own.get(made.name, 0), *((each.ways or 0) | (each.code or 0) for each in shares)])
    for name, mask in others.items():
        if names := [partition for partition, ways in own.items() if ways & mask]:
            yield f"Ways of {some_of(names)} are shared with {name}: they isolate nobody until it is gone."


def io_ways(plan: Plan) -> str:
    """The mask of the ways that I/O fills too."""
    return f"{plan.cache.shareable:#x}" if plan.cache else ""


# Who gets what under the partitions of a plan, in the kernel's words, for a terminal.

EVERYBODY_ELSE = "everybody else"


def remarks(plan: Plan) -> Iterator[str]:
    """What was left out or changed."""
    for what, notes in (("Mixes", on_mixes(plan.notes)), ("Partitions", on_partitions(plan.notes))):
        if notes:
            yield f"\n{what}, as this machine allows them:"
            yield from (f"  {note}" for note in notes)


def lines(plan: Plan, layout: Layout) -> Iterator[str | Table]:
    """The schemata of every scene, cohort by cohort."""
    if plan.cache is None:
        return
    for cohort in plan.cohorts:
        if any(scene.shares for scene in cohort.scenes):
            yield f"\nSchemata of the scenes of cohort {cohort.id}"
            yield _table(cohort, plan.cache, layout)
            if any(cut_by_any((share.ways, share.code), plan.cache) for share in _shares(cohort)):
                yield (
                    f"  or more: such a mask has some but not all of the ways {io_ways(plan)} that I/O fills too, and "
                    "some processors give these together only."
                )
            everything = schemata_of(Share(member=""), _domains(cohort, layout), plan.cache)
            yield (
                f"  In its scenes without a partition everybody has everything: {everything} "
                f"({masks.size_words(plan.cache.usable, plan.cache)})."
            )


def _shares(cohort: Cohort) -> Iterator[Share]:
    return (share for scene in cohort.scenes for share in scene.shares)


def _table(cohort: Cohort, cache: Cache, layout: Layout) -> Table:
    table = Table(box=None, header_style="dim")
    for name in ("partition", "scenes", "who", "schemata", "ways"):
        table.add_column(name, overflow="fold")
    for partition in dict.fromkeys(scene.partition for scene in cohort.scenes if scene.partition != UNMANAGED):
        scenes = [scene for scene in cohort.scenes if scene.partition == partition]
        first = [f"@{partition}", " ".join(scene.name.removesuffix(f"@{partition}") for scene in scenes)]
        for who, schemata, ways in rows(cohort, scenes, cache, layout):
            table.add_row(*first, who, schemata, ways)
            first = ["", ""]
    return table


def rows(cohort: Cohort, scenes: list[Scene], cache: Cache, layout: Layout) -> list[tuple[str, str, str]]:
    """Who, schemata and ways under one partition; members that get the same share a row."""
    members: dict[tuple[str, str], list[str]] = {}
    shares = {share.member: share for scene in scenes for share in scene.shares}
    active = {name for scene in scenes for name in scene.active}
    for member in cohort.members:
        if member.name in active:
            share = shares.get(member.name, Share(member=member.name))
            name = f"lead {member.name}" if member.role == "lead" else member.name
            members.setdefault(_words(share, domains(member, layout), cache), []).append(name)
    rest = shares.get(REST, Share(member=REST))
    members.setdefault(_words(rest, _domains(cohort, layout), cache), []).append(EVERYBODY_ELSE)
    return [(", ".join(who), schemata, size) for (schemata, size), who in members.items()]


def _words(share: Share, places: tuple[int, ...], cache: Cache) -> tuple[str, str]:
    mask = mask_of(share)
    size = masks.size_words(cache.usable if mask is None else mask, cache)
    mark = " or more" if cut_by_any((share.ways, share.code), cache) else ""
    quota = f" CPU:{share.quota}% of each {share.period} ms" if share.quota else ""
    prefetching = f" prefetchers:{share.prefetchers}" if share.prefetchers else ""
    return schemata_of(share, places, cache) + quota + prefetching, f"{size}{mark}"


def _domains(cohort: Cohort, layout: Layout) -> tuple[int, ...]:
    return tuple(sorted({place for member in cohort.members for place in domains(member, layout)}))
