"""Partitions in a plan: scenes, cohorts, groups, and that nothing is ever measured again."""

import random
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.results.plans import remembered_cache
from castmates.study import mixes
from castmates.study.curves import schemata_of
from castmates.study.model import Workload
from castmates.study.partitions.partitions import curve_names
from castmates.study.placement.layout import Cpu, Layout
from castmates.study.planning import extend
from castmates.study.scenes import CachePart, Room, memory_to_evict
from castmates.study.spec import REST, UNMANAGED, Mix, Plan, Share
from castmates.terminal.preview.isolation import rows
from tests.unit.caches import PERCENT, cache
from tests.unit.makers import plan, prepared, study, workloads

SPLIT = {"sweeps": [{"split": [4, 8]}]}
ALONE = {"sweeps": [{"lead_ways": [2, 6]}]}


def swept(keys, leads=("x",), antagonists=("a",), on=None, measured=(), **more):
    return plan(study(leads, antagonists, cache=keys, **more), measured=measured, cache=on or cache(shareable=0))


def scenes(one: Plan) -> dict[str, dict[str, int | None]]:
    """By name: who has which ways."""
    every = [scene for launch in one.launches for scene in launch.cohort.scenes]
    return {scene.name: {share.member: share.ways for share in scene.shares} for scene in every}


def names_of(mix: Mix) -> set[str]:
    return {partition.name for partition in mix.partitions}


def paths(one: Plan) -> set[str]:
    return {launch.path for launch in one.launches}


def test_scenes_of_a_split():
    one = swept(SPLIT)
    assert scenes(one) == {
        "alone": {}, "alone-again": {}, "placebo:1": {}, "corun:x+a": {}, "antagonist-alone:a@1": {},
        "corun:x+a@split-4": {"x@0": 0xF, "a@1": 0xFF0, REST: 0xFF0},
        "placebo:1@split-4": {"x@0": 0xF, REST: 0xFF0},
        "corun:x+a@split-8": {"x@0": 0xFF, "a@1": 0xF00, REST: 0xF00},
        "placebo:1@split-8": {"x@0": 0xFF, REST: 0xF00},
    }  # fmt: skip
    assert len({launch.cohort.id for launch in one.launches}) == 1
    assert [mix.name for mix in one.mixes] == ["x+a"] * 3
    kinds = {scene.name: (scene.kind, scene.mix, scene.partition) for scene in one.launches[0].cohort.scenes}
    assert kinds["corun:x+a@split-4"] == ("corun", "x+a", "split-4")
    assert kinds["placebo:1@split-4"] == ("placebo", "", "split-4")


def test_scenes_of_the_lead_alone():
    one = swept(ALONE)
    assert {name: given for name, given in scenes(one).items() if "@lead" in name} == {
        "alone@lead-2": {"x@0": 0x3, REST: 0xFFC},
        "alone@lead-6": {"x@0": 0x3F, REST: 0xFC0},
    }
    assert [(mix.name, mix.antagonists) for mix in one.mixes] == [("x+a", ("a@1",)), ("x", ()), ("x", ())]


def test_a_study_of_leads_alone_needs_no_antagonist():
    one = swept(ALONE, antagonists=())
    assert set(scenes(one)) == {"alone", "alone-again", "alone@lead-2", "alone@lead-6"}
    with pytest.raises(CastmatesError, match="nothing to measure"):
        swept(SPLIT, antagonists=())
    with pytest.raises(CastmatesError, match="nothing is left to measure: cache: the last-level cache cannot be"):
        plan(study(["x"], [], cache=ALONE))


def test_mixes_with_antagonists_on_the_same_cpus_share_the_placebo_under_a_partition():
    one = swept(SPLIT, antagonists=("a", "b"))
    names = [name for name in scenes(one) if name.endswith("@split-4")]
    assert sorted(names) == ["corun:x+a@split-4", "corun:x+b@split-4", "placebo:1@split-4"]


def test_where_the_lead_has_everything_there_is_no_placebo_at_its_mask():
    one = swept({"sweeps": [{"antagonist_cap": 2}, {"bandwidth": {"antagonists": "20%"}}]})
    names = {name for name in scenes(one) if "@cap" in name or "-mb" in name}
    assert names == {"corun:x+a@cap-2", "corun:x+a@antagonists-mb20"}
    throttled = next(s for s in one.launches[0].cohort.scenes if s.name == "corun:x+a@antagonists-mb20")
    assert throttled.shares == (Share(member="a@1", bandwidth=20),)


def test_a_machine_without_allocation_goes_on_and_says_so():
    for here in (None, cache(0, shareable=0, bandwidth=None)):
        one = plan(study(["x"], ["a"], cache=SPLIT), cache=here)
        assert set(scenes(one)) == {"alone", "alone-again", "placebo:1", "corun:x+a", "antagonist-alone:a@1"}
        assert one.cache is None
        assert tuple(map(str, one.notes)) == (
            "cache: the last-level cache cannot be partitioned here (resctrl is not mounted, or the machine lacks it), "
            "so the partitions of 'cache.sweeps' are left out; `castmates doctor` shows what to do.",
        )
    bare = plan(study(["x"], ["a"]))
    assert not bare.notes
    assert {launch.path for launch in bare.launches} == {launch.path for launch in one.launches}


def test_a_machine_that_can_only_throttle_throttles():
    keys = {"sweeps": [{"split": "all"}, {"lead_ways": 2}, {"bandwidth": {"antagonists": "20%"}}]}
    one = swept(keys, on=cache(0, shareable=0))
    assert {scene for scene in scenes(one) if "@" in scene and "antagonist-alone" not in scene} == {
        "corun:x+a@antagonists-mb20"
    }
    assert "cache.sweeps.1: nothing is left of this sweep on this machine." in map(str, one.notes)
    assert schemata_of(Share(member="a@1", bandwidth=20), (0,), cache(0, shareable=0)) == "MB:0=20"


def test_controls_have_no_partitions():
    control = {"positive": {"lead": "y", "antagonists": ["b"]}, "negative": None}
    keys = study(["x"], ["a"], cache=SPLIT, controls=control)
    one = plan(keys, programs=workloads("x", "y", "a", "b"), cache=cache())
    of_control = [launch.cohort for launch in one.launches if launch.cohort.lead.workload == "y"]
    assert of_control
    assert all(scene.partition == UNMANAGED for cohort in of_control for scene in cohort.scenes)


def test_masks_by_workload_hold_where_that_workload_plays():
    keys = {"sweeps": [{"name": "mine", "masks": {"a": "00f"}}]}
    one = swept(keys, antagonists=("a", "b"))
    assert {name for name in scenes(one) if "@mine" in name} == {"corun:x+a@mine"}
    assert not one.notes[1:]
    beside = {"sweeps": [{"name": "mine", "masks": {"lead": "00f", "a": "f00", "rest": "f00"}}, {"split": 4}]}
    tried = {mix.name for mix in swept(beside, antagonists=("a", "b")).mixes if "mine" in names_of(mix)}
    assert tried == {"x+a"}
    with pytest.raises(CastmatesError, match=r"'cache.sweeps.1' names 'c', which plays in no mix of this study"):
        swept({"sweeps": [{"name": "mine", "masks": {"c": "00f"}}]})


def test_a_workload_is_throttled_where_it_plays():
    one = swept({"sweeps": [{"split": 4, "bandwidth": {"a": ["20%", "50%"]}}]}, antagonists=("a", "b"))
    tried = {(mix.name, partition.name) for mix in one.mixes for partition in mix.partitions}
    assert tried == {("x+a", "split-4-a-mb20"), ("x+a", "split-4-a-mb50")}
    under = next(scene for scene in one.launches[0].cohort.scenes if scene.name == "corun:x+a@split-4-a-mb20")
    assert under.shares[1] == Share(member="a@1", ways=0xFF0, bandwidth=20)


def test_a_partition_that_no_mix_has_the_members_for_is_told():
    keys = {"sweeps": [{"lead_ways": [2, 4], "bandwidth": {"a": "20%"}}, {"split": 4}]}
    one = swept(keys)
    assert {partition.name for mix in one.mixes for partition in mix.partitions} == {"split-4"}
    assert tuple(map(str, one.notes)) == (
        "cache: lead-2-a-mb20 and lead-4-a-mb20 left out: no mix has the members that they are for.",
    )
    many = swept({"sweeps": [{"lead_ways": "1-8", "bandwidth": {"a": "20%"}}, {"split": 4}]})
    assert "lead-5-a-mb20 and 3 more left out" in str(many.notes[0])


def test_a_mix_with_more_members_than_groups_has_no_partitions():
    big = {"mixes": [{"lead": "x", "antagonists": ["a", "a", "a"]}], "cache": SPLIT}
    one = plan(study(["x"], ["a"], **big), cpus=range(5), cache=cache(groups=3, shareable=0))
    assert {mix.name for mix in one.mixes if mix.partitions} == {"x+a"}
    assert tuple(map(str, one.notes)) == (
        "cache: the partitions of x beside a beside a beside a are left out: they take 4 groups, one for each member, "
        "and this user can have 3 here (`castmates doctor` shows what helps).",
    )


def test_a_cohort_with_partitions_has_no_more_members_than_groups():
    names = ("a", "b", "c", "d")
    one = study(["x"], names, cache=SPLIT)
    here = cache(groups=3, shareable=0)
    split = plan(one, cache=here, room=Room(groups=3))
    for cohort in {launch.cohort.id: launch.cohort for launch in split.launches}.values():
        assert len(cohort.members) <= 3 or not any(mix.partitions for mix in cohort.mixes)
    # without partitions nobody needs a group
    assert len({launch.cohort.id for launch in plan(study(["x"], names), room=Room(groups=3)).launches}) == 1


def test_what_empties_the_caches_takes_memory_of_its_own():
    """504 MiB take 1 GB: no member's need has it, and a cohort that filled the memory was planned all the same."""
    llcs = (
        CachePart(0, None, frozenset(range(4)), 252 * 10**6),
        CachePart(1, None, frozenset(range(4, 8)), 252 * 10**6),
    )
    one, here = study(["x"], ["a"], cache=SPLIT), cache(shareable=0)
    needs = {"x": 3 * 10**8, "a": 3 * 10**8}
    assert plan(one, cache=here, room=Room(bytes=10**9, needs=needs)).launches
    with pytest.raises(CastmatesError, match=r"takes 1\.1 GB \(x 0\.3 \+ a 0\.3 \+ 0\.5 to empty its caches between"):
        plan(one, cache=here, room=Room(bytes=10**9, needs=needs, caches=llcs))
    assert plan(study(["x"], ["a"]), cache=here, room=Room(bytes=10**9, needs=needs, caches=llcs)).launches


def test_a_part_of_a_divided_cache_counts_where_its_cpus_or_its_memory_are_used():
    parts = [
        CachePart(0, 0, frozenset({0, 1}), 100),
        CachePart(0, 1, frozenset({2, 3}), 100),
        CachePart(1, 2, frozenset({4}), 100),
    ]

    def needed(cpus, nodes):
        return memory_to_evict(parts, [SimpleNamespace(cpus=cpus, nodes=nodes)])

    assert [needed((0,), ()), needed((0, 2), ()), needed((0,), (1,)), needed((0,), (2,)), needed((0, 4), ())] == [
        200, 400, 400, 200, 400,
    ]  # fmt: skip


def test_a_cache_that_the_kernel_does_not_share_out():
    apart = cache(domains=(5,), shareable=0)
    one = plan(study(["x"], ["a"], cache=SPLIT), cache=apart)
    assert not any(mix.partitions for mix in one.mixes)
    assert "the last-level cache of a@1, x@0 is none of those that this machine can share out" in str(one.notes[0])


def test_an_added_sweep_value_workload_or_antagonist_measures_nothing_again():
    before = swept(SPLIT)
    grown = {"sweeps": [{"split": [4, 6, 8]}, {"lead_ways": 2}]}
    for after in (
        swept(grown, measured=before.launches),
        swept(SPLIT, antagonists=("a", "b"), measured=before.launches),
        swept(SPLIT, leads=("x", "y"), measured=before.launches),
    ):
        assert paths(before) < paths(after)
        added = [launch for launch in after.launches if launch.path not in paths(before)]
        old = {mix.identity for mix in before.mixes}
        assert not any(mix.identity in old for launch in added for mix in launch.cohort.mixes)
    added = [launch for launch in swept(grown, measured=before.launches).launches if launch.path not in paths(before)]
    assert {scene.partition for launch in added for scene in launch.cohort.scenes} == {UNMANAGED, "split-6", "lead-2"}
    assert len(added) == 5


@pytest.mark.parametrize(
    "changed", [{"rest": "all"}, {"avoid_shared": True}, {"sweeps": [{"split": [4, 8], "position": "high"}]}]
)
def test_other_shares_are_another_measurement(changed):
    before = plan(study(["x"], ["a"], cache=SPLIT), cache=cache())
    after = plan(study(["x"], ["a"], cache=SPLIT | changed), measured=before.launches, cache=cache())
    split = {mix.identity for mix in before.mixes if mix.partitions}
    assert split.isdisjoint(mix.identity for mix in after.mixes)
    assert before.mixes[0] in after.mixes


def test_how_often_the_cache_is_read_is_no_part_of_what_is_measured():
    before = swept(SPLIT, budget={"launches": 2})
    after = swept({**SPLIT, "monitor": 2}, budget={"launches": 3}, measured=before.launches)
    assert [launch.design.monitor for launch in after.launches] == [10, 10, 2]


def test_long_sweeps_are_split_into_cohorts_that_each_have_their_baselines():
    budget = {"rounds": 10, "window": 1.0, "longest_launch": 167}
    one = swept({"sweeps": [{"split": "all"}]}, budget=budget)
    cohorts = {launch.cohort.id: launch.cohort for launch in one.launches}.values()
    assert len(cohorts) > 1
    for cohort in cohorts:
        assert 1 + 10 * 1.25 * len(cohort.scenes) <= 167
        assert {"alone", "alone-again", "placebo:1", "corun:x+a"} <= {scene.name for scene in cohort.scenes}
    found = [mix.identity for cohort in cohorts for mix in cohort.mixes]
    assert sorted(found) == sorted(mix.identity for mix in one.mixes)


AMOUNTS = st.lists(st.integers(1, 11), min_size=1, max_size=4, unique=True)
KEYS = st.fixed_dictionaries(
    {
        "sweeps": st.lists(
            st.one_of(
                st.builds(lambda ways: {"split": ways}, AMOUNTS),
                st.builds(lambda ways: {"lead_ways": ways}, AMOUNTS),
                st.builds(lambda ways: {"antagonist_cap": ways}, AMOUNTS),
            ),
            max_size=2,
        )
    }
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(KEYS, st.sets(st.sampled_from("abc"), min_size=1), st.integers(0, 10_000), st.booleans()), max_size=4
    )
)
def test_any_history_of_sweeps_keeps_the_promises(tmp_path_factory, history):
    measured = {}
    file = tmp_path_factory.mktemp("results") / "plan.json"
    machine, room = cache(groups=3, shareable=0), Room(groups=3)
    known = False  # whether resctrl was ever mounted
    for keys, antagonists, luck, mounted in history:
        known |= mounted
        here = (machine if mounted else None) or remembered_cache(file)
        one = study(["x"], sorted(antagonists), cache=keys, budget={"launches": 2})
        now = plan(one, measured=measured.values(), cache=here, room=room)
        file.write_text(now.canonical())
        if known:  # from then on, it makes no difference whether it is mounted
            assert now == plan(one, measured=measured.values(), cache=machine, room=room)
        planned = {launch.path: launch for launch in now.launches}
        assert len(planned) == len(now.launches)
        for path, launch in measured.items():
            if now.wanted.keys() & {mix.identity for mix in launch.cohort.mixes}:
                assert planned[path] == launch
        for mix in now.mixes:
            assert sum(mix in launch.cohort.mixes for launch in now.launches) >= 2
        for launch in now.launches:
            cohort = launch.cohort
            assert len(cohort.members) <= 3 or not any(mix.partitions for mix in cohort.mixes)
            names = [scene.name for scene in cohort.scenes]
            assert len(names) == len(set(names))
            for scene in cohort.scenes:
                assert (scene.partition == UNMANAGED) == (not scene.shares)
        some = random.Random(luck).sample(now.launches, k=luck % (len(now.launches) + 1))
        measured |= {launch.path: launch for launch in some}
        assert plan(one, measured=measured.values(), cache=here, room=room) == now


def test_schemata_in_the_kernels_words():
    share = Share(member="x", ways=0xF0, code=0xF, bandwidth=50)
    assert schemata_of(share, (0, 8), cache()) == "L3:0=0f0;8=0f0 MB:0=50;8=50"
    assert schemata_of(share, (0,), cache(cdp=True)) == "L3CODE:0=00f L3DATA:0=0f0 MB:0=50"
    assert schemata_of(Share(member="x"), (0,), cache(20, bandwidth=None)) == "L3:0=fffff"


def test_members_around_different_caches():
    two = Layout(tuple(Cpu(cpu, core=cpu, llc=cpu // 2, node=0) for cpu in range(4)), memory=(0,))
    here = cache(domains=(0, 1), shareable=0)
    programs = workloads("x", a=Workload(command="a", cores=2))
    one = study(["x"], ["a"], cache=SPLIT, placement={"lead": "1", "antagonists": "0,2", "reserve": 0})
    cast = mixes.resolve(one, mixes.Programs(programs, prepared(programs), "p"), mixes.Host(two, here), "study.yaml")
    cohort = extend(one, cast, {"x": "", "a": ""}, "k").launches[0].cohort
    under = [scene for scene in cohort.scenes if scene.partition == "split-4"]
    assert rows(cohort, under, here, two) == [
        ("lead x@1", "L3:0=00f MB:0=100", "4 ways, 6 MiB"),
        ("a@0.2, everybody else", "L3:0=ff0;1=ff0 MB:0=100;1=100", "8 ways, 12 MiB"),
    ]


# Cores and last-level caches: of two EPYC 9755 and two EPYC 7742 as AMD publishes them, and as lstopo counts them on
# two machines in the tests of hwloc (64amd64-4s2n4ca2co, 32amd64-4s2n4c-cgroup2).
REAL = [(256, 32), (128, 32), (64, 8), (32, 8)]


def cast_on(cores, caches, lead, antagonists=(1,), threads=1, bandwidth=PERCENT, **keys):
    size = cores // caches
    cpus = (Cpu(cpu, core=cpu // threads, llc=cpu // size, node=0, package=0) for cpu in range(cores))
    here = Layout(tuple(cpus), memory=(0,))
    others = {f"a{number}": Workload(command="a", cores=one) for number, one in enumerate(antagonists)}
    programs = workloads(x=Workload(command="x", cores=lead), **others)
    mix = {"lead": "x", "antagonists": list(others)}
    one = study([], [], mixes=[mix], **keys)
    host = mixes.Host(here, cache(domains=tuple(range(caches)), shareable=0, bandwidth=bandwidth))
    return mixes.resolve(one, mixes.Programs(programs, prepared(programs), "p"), host, "study.yaml"), here


@pytest.mark.parametrize(("cores", "caches"), REAL)
def test_members_that_share_no_last_level_cache_divide_no_ways(cores, caches):
    size = cores // caches
    lists = {"lead": f"{size}-{2 * size - 1}", "antagonists": "0"}
    for keys in (
        {},
        {"cache": SPLIT},
        {"cache": {"sweeps": [*SPLIT["sweeps"], {"bandwidth": {"antagonists": "20%"}}]}},
    ):
        cast, _ = cast_on(cores, caches, size, placement=lists, **keys)
        assert {mix.apart for mix in cast.mixes} == {("a0@0",)}
        assert {name for mix in cast.mixes for name in names_of(mix)} <= {"antagonists-mb20"}
        assert len(cast.cautions) == 1
        assert f"x (CPU {lists['lead']}) shares no last-level cache with a0 (CPU 0)" in cast.cautions[0]
        assert any("share no last-level cache" in note for note in map(str, cast.notes)) == bool(keys)
    asked, _ = cast_on(cores, caches, size, placement={"llc": "separate"}, cache=SPLIT)
    assert not asked.cautions


@pytest.mark.parametrize("antagonists", [(1,), (1, 1), (2,)])
@pytest.mark.parametrize(("cores", "caches"), REAL)
def test_a_study_that_divides_a_cache_has_its_members_around_one(cores, caches, antagonists):
    size = cores // caches
    most = size - sum(antagonists)
    for lead in range(1, size + 1):
        if lead > most:
            with pytest.raises(CastmatesError, match=f"a lead of {lead} core.*; take {most} for the lead"):
                cast_on(cores, caches, lead, antagonists, cache=SPLIT)
            continue
        cast, here = cast_on(cores, caches, lead, antagonists, cache=SPLIT)
        assert len({here.by_id[cpu].llc for member in cast.members.values() for cpu in member.cpus}) == 1
        assert {name for mix in cast.mixes for name in names_of(mix)} == {"split-4", "split-8"}
        assert not cast.cautions


@pytest.mark.parametrize(
    ("by_core", "smt", "says"), [(True, "share", True), (True, "avoid", False), (False, "share", False)]
)
def test_a_throttle_that_holds_for_the_whole_core_is_said_to_hold_for_the_sibling_too(by_core, smt, says):
    throttled = {"sweeps": [*SPLIT["sweeps"], {"bandwidth": {"antagonists": ["20%", "50%"]}}]}
    bandwidth = PERCENT.model_copy(update={"by_core": by_core})
    cast, _ = cast_on(16, 1, 1, threads=2, bandwidth=bandwidth, placement={"smt": smt}, cache=throttled)
    assert cast.cautions == (
        (
            "a0@3 and x@2 share a core, and a core is throttled as the slower of its threads (thread_throttle_mode is "
            "max): antagonists-mb20 and antagonists-mb50 throttle both.",
        )
        if says
        else ()
    )


def test_a_lead_larger_than_a_cache_shares_a_part_and_the_plan_says_so():
    cast, _ = cast_on(256, 32, 12, cache=SPLIT)
    assert {mix.apart for mix in cast.mixes} == {()}
    assert re.search(
        r"^x \(CPU .*\) lies on 2 last-level caches, of which a0 \(CPU \d+\) shares a part", *cast.cautions
    )


def test_partitions_lie_within_the_class_in_which_programs_are_found():
    narrow = cache(15, shareable=0, allowed=0xFF, bandwidth=PERCENT.model_copy(update={"allowed": 50}))
    sweeps = [{"split": "all"}, {"lead_ways": "all"}, {"bandwidth": {"antagonists": "all"}}]
    one = swept({"sweeps": sweeps}, on=narrow)
    every = [share.ways for mix in one.mixes for made in mix.partitions for share in made.shares if share.ways]
    assert {mask & ~0xFF for mask in every} == {0}
    names = {name for mix in one.mixes for name in names_of(mix)}
    assert names == {f"{kind}-{ways}" for kind in ("split", "lead") for ways in range(1, 8)} | {
        f"antagonists-mb{rate}" for rate in (10, 20, 30, 40)
    }
    assert "cache: programs are found in a class with 8 of 15 ways (0xff) and 50 %; " in str(one.notes[0])
    written = {"sweeps": [{"name": "mine", "masks": {"lead": "7f00", "antagonists": "ff"}}]}
    with pytest.raises(CastmatesError, match=r"7f00 goes beyond 00ff, the ways of the class in which programs are f"):
        swept(written, on=narrow)
    beyond = swept(written | {"beyond_site": True}, on=narrow)
    assert {name for mix in beyond.mixes for name in names_of(mix)} == {"mine"}
    assert not beyond.notes
    # Another class is another measurement, without partitions too.
    assert not {mix.identity for mix in beyond.mixes} & {mix.identity for mix in one.mixes}


NOT_HIS = cache(shareable=0, rest=False)
WRITTEN = {"name": "mine", "masks": {"lead": "f", "antagonists": "ff0", "rest": "f00"}}


def test_who_may_not_bound_the_rest_of_the_machine_leaves_it_alone_and_is_told():
    one = swept(SPLIT | {"sweeps": [*SPLIT["sweeps"], WRITTEN]}, on=NOT_HIS)
    given = {name: who for name, who in scenes(one).items() if who}
    assert given["corun:x+a@split-4"] == {"x@0": 0xF, "a@1": 0xFF0}
    assert not any(REST in who for who in given.values())
    assert len(given) == 4  # without what was written for the rest
    assert [note for note in map(str, one.notes) if "everybody else on the machine keeps all ways" in note]
    assert [note for note in map(str, one.notes) if "mine left out" in note and "grant --default-group" in note]
    assert paths(one) == paths(swept(SPLIT | {"rest": "all"}))


def test_who_asks_to_bound_it_and_may_not_has_no_such_partitions():
    one = swept(SPLIT | {"rest": "antagonists"}, on=NOT_HIS)
    assert not any(scenes(one).values())
    assert any(
        "split-4 and split-8 left out" in note and "grant --default-group" in note for note in map(str, one.notes)
    )
    assert paths(swept(SPLIT)) == paths(swept(SPLIT | {"rest": "antagonists"}))
    assert not swept(SPLIT | {"rest": "all"}, on=NOT_HIS).notes


def test_partitions_that_differ_by_the_leads_ways_alone_are_of_one_curve():
    sweeps = [
        {"name": "a-4", "split": [4, 6], "position": ["low", "high"]},
        {"overlap": [2], "lead": [6]},
        {"antagonist_cap": [4], "lead": [6]},
        {"masks": {"lead": "0x00f", "antagonists": "0xff0"}},
    ]
    assert curve_names(swept({"sweeps": sweeps})) == {
        "a-4-split-4": "a-4-split",
        "a-4-split-6": "a-4-split",
        "a-4-split-4-high": "a-4-split-high",
        "a-4-split-6-high": "a-4-split-high",
        "overlap-2-lead-6": "overlap-2-lead",
        "cap-4-lead-6": "cap-4-lead",
        "lead-00f-antagonists-ff0": "lead-00f-antagonists-ff0",
    }
