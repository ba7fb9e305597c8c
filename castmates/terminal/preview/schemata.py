"""Who gets what under the partitions of a plan, in the kernel's words, for a terminal."""

from collections.abc import Iterator

from rich.table import Table

from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.curves import mask_of, schemata_of
from castmates.study.partitions.partitions import domains
from castmates.study.partitions.sweeps import cut_by_any
from castmates.study.placement.layout import Layout
from castmates.study.remarks import on_mixes, on_partitions
from castmates.study.spec import REST, UNMANAGED, Cohort, Plan, Scene, Share
from castmates.terminal.preview.isolation import io_ways

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
