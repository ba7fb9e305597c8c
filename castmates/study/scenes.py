"""The scenes of a cohort: the baselines once, then each mix, then each mix under its partitions."""

from collections.abc import Iterator, Mapping, Sequence

from castmates.study.cpus import name_of
from castmates.study.spec import REST, UNMANAGED, Member, Mix, Partition, Plan, Scene, Share


def scenes_of(mixes: Sequence[Mix], members: Mapping[str, Member], antagonists_alone: bool = True) -> tuple[Scene, ...]:
    """Each scene once: what several mixes have in common has one name."""
    by_name: dict[str, Scene] = {}
    for scene in _scenes(mixes, members):
        if antagonists_alone or scene.kind != "antagonist-alone":
            by_name.setdefault(scene.name, scene)
    return tuple(by_name.values())


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
