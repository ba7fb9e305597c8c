"""The order of slices: every cycle has every scene, neighbours are balanced, and the same seed is the same order."""

from collections import Counter
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.study.schedule import MANY, Orders, Stretch, stretches
from castmates.study.spec import REST, UNMANAGED, Scene, Share
from tests.unit.windows_maker import cohort, mix, plan

SEEDS = st.integers(0, 2**32 - 1).map(str)


def scenes(count, **more):
    about = {"kind": "corun", "mix": "", "active": ("lead@0",), "placebos": (), "partition": UNMANAGED} | more
    return tuple(Scene(name=f"s{number}", **about) for number in range(count))


def order(count, cycles, seed):
    return [[scene.name for scene in cycle] for cycle in Orders().draw(Stretch((), scenes(count), seed), cycles)]


@given(st.integers(1, 15), st.integers(1, 40), SEEDS)
def test_every_cycle_has_every_scene_once_and_none_follows_itself(count, cycles, seed):
    found = order(count, cycles, seed)
    assert len(found) == cycles
    assert all(sorted(cycle) == sorted(f"s{number}" for number in range(count)) for cycle in found)
    if count > 1:
        assert all(one != other for one, other in pairwise([name for cycle in found for name in cycle]))


@given(st.integers(2, 12), st.integers(1, 60), SEEDS)
def test_each_scene_follows_each_other_one_about_equally_often(count, cycles, seed):
    met = Counter(pairwise([name for cycle in order(count, cycles, seed) for name in cycle]))
    times = [met[f"s{a}", f"s{b}"] for a in range(count) for b in range(count) if a != b]
    assert max(times) - min(times) <= 4, "independent random orders differ by ten and more after 60 cycles"


@given(st.integers(1, 9), st.integers(1, 30), SEEDS)
def test_a_alone_that_many_scenes_are_held_against_comes_twice_in_all_cycles_but_the_watched_one(count, cycles, seed):
    alone = scenes(1, kind="alone")[0].model_copy(update={"name": "alone"})
    stretch = Stretch((), (alone, *scenes(count)), seed)
    found = [[scene.name for scene in cycle] for cycle in Orders().draw(stretch, cycles)]
    times = [2 if count >= MANY else 1] * (cycles - 1) + [1]
    assert [cycle.count("alone") for cycle in found] == times
    assert all(set(cycle) == {"alone", *(f"s{number}" for number in range(count))} for cycle in found)
    assert stretch.turns == count + times[0] or cycles == 1
    assert all(one != other for one, other in pairwise([name for cycle in found for name in cycle]))


SHAPES = {
    "pair": [["a@1"]],
    "two": [["a@1"], ["b@1"]],
    "three": [["a@1"], ["b@1"], ["c@1"]],
    "six": [[f"{name}@1"] for name in "abcdef"],
    "several at once": [["a@1"], ["b@2"], ["a@1", "b@2"]],
}
BASELINES = {"alone", "alone-again", "placebo", "antagonist-alone"}


def after_frozen(shape, seed, rounds):
    """By member and scene of a launch: slices with one before them, and the share of these before which it was frozen.

    `rounds` are the cycles of each, which change from round to round as the runner learns, and in spare rounds.
    """
    (launch,) = plan([cohort("c", *(mix("lead@0", *beside) for beside in SHAPES[shape]))], launches=1).launches
    launch, orders = launch.model_copy(update={"seed": seed}), Orders()
    met = Counter()
    for number, cycles in enumerate(rounds, start=1):
        for stretch in stretches(launch, number):
            slices = [scene for cycle in orders.draw(stretch, cycles) for scene in cycle]
            for before, scene in pairwise(slices):
                met.update((name, scene.kind, scene.name, name in before.active) for name in scene.active)
    known = {place[:3] for place in met}
    return {place: (slices := met[*place, True] + met[*place, False], met[*place, False] / slices) for place in known}


@pytest.mark.parametrize("shape", SHAPES)
def test_in_a_launch_every_scene_of_a_member_comes_as_often_after_it_was_frozen(shape):
    """In every launch within one slice and a half, and on average within 2.5 points (alone once had 5 more)."""
    excess = []
    for seed in range(60):
        found = after_frozen(shape, seed, [(4, 4, 4), (3, 5, 2, 2), (12,)][seed % 3])
        for (member, kind, _), (slices, share) in found.items():
            if kind == "corun":
                others = [one for (who, of, _), (_, one) in found.items() if who == member and of in BASELINES]
                assert max(abs(share - other) for other in others) * slices < 1.5
            if kind == "corun" and member == "lead@0":
                excess.append(found["lead@0", "alone", "alone"][1] - share)
    assert abs(fmean(excess)) < 0.025


@given(SEEDS)
def test_the_same_seed_is_the_same_order_and_a_longer_one_begins_alike(seed):
    assert order(6, 9, seed) == order(6, 9, seed)
    assert order(6, 9, seed)[:4] == order(6, 4, seed)


def test_places_in_a_cycle_are_nobodys_own():
    """A scene that was always measured first would have whatever a cycle begins with."""
    firsts = Counter(order(5, 1, str(seed))[0][0] for seed in range(400))
    assert set(firsts) == {f"s{number}" for number in range(5)}
    assert min(firsts.values()) > 40
    assert len({tuple(cycle) for cycle in order(5, 40, "7")}) > 20


def launch_of(made=None):
    """A launch with scenes under no partition and under two."""
    launch = plan([cohort("c", mix("lead@0", "stream@1"))], launches=2).launches[0]
    shares = {name: (Share(member="lead@0", ways=ways),) for name, ways in (("a", 0xF), ("b", 0x3))}
    more = [
        one.model_copy(update={"name": f"{one.name}@{name}", "shares": own, "partition": name})
        for name, own in shares.items()
        for one in launch.cohort.scenes
    ]
    together = launch.cohort.model_copy(update={"scenes": (*launch.cohort.scenes, *more)})
    return launch.model_copy(update={"cohort": together} | (made or {}))


def test_a_round_has_one_stretch_for_each_partition_and_every_scene_once():
    launch = launch_of()
    for number in range(1, 6):
        found = stretches(launch, number)
        # Who is alone has the same under each partition of the lead's, and so needs no further stretch.
        assert sorted(len(stretch.scenes) for stretch in found) == [4, 4, 7]
        everyone = [scene.name for stretch in found for scene in stretch.scenes]
        assert sorted(everyone) == sorted(scene.name for scene in launch.cohort.scenes)


AMOUNTS = st.sampled_from([None, 0x3, 0xF])


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, st.booleans()), min_size=1, max_size=8))
def test_whoever_runs_in_a_stretch_has_what_its_scene_gives(given_ways):
    """And members on one CPU have the same, because pqos gives it to the CPU; the rest of the machine never stops."""
    launch = plan([cohort("c", mix("lead@0", "stream@1"), mix("lead@0", "chase@1"))], launches=1).launches[0]
    scenes = []
    for number, (lead, stream, chase, rest, beside_chase) in enumerate(given_ways):
        ways = {
            "lead@0": lead,
            "chase@1" if beside_chase else "stream@1": chase if beside_chase else stream,
            REST: rest,
        }
        shares = tuple(Share(member=name, ways=own) for name, own in ways.items() if own is not None)
        active = tuple(name for name in ways if name != REST)
        scenes.append(
            Scene(name=f"s{number}", kind="corun", mix="m", active=active, placebos=(), partition="p", shares=shares)
        )
    launch = launch.model_copy(update={"cohort": launch.cohort.model_copy(update={"scenes": tuple(scenes)})})
    found = stretches(launch, 1)
    assert sorted(scene.name for stretch in found for scene in stretch.scenes) == [scene.name for scene in scenes]
    for stretch in found:
        given_to = {share.member: share.ways for share in stretch.shares}
        on_cpu: dict[str, set] = {}
        for scene in stretch.scenes:
            own = {share.member: share.ways for share in scene.shares}
            for name in (*scene.active, REST):
                assert given_to.get(name) == own.get(name)
                on_cpu.setdefault(name.rpartition("@")[2], set()).add(own.get(name))
        assert all(len(ways) == 1 for ways in on_cpu.values())


def test_rounds_have_their_own_orders_and_the_seed_decides_them():
    launch, other = launch_of(), launch_of({"seed": 99})
    partitions = [[stretch.scenes[0].partition for stretch in stretches(launch, number)] for number in range(1, 30)]
    assert len(set(map(tuple, partitions))) == 6

    def whole(of, number):
        return [[s.name for s in cycle] for stretch in stretches(of, number) for cycle in Orders().draw(stretch, 3)]

    assert whole(launch, 1) == whole(launch, 1)
    assert whole(launch, 1) != whole(launch, 2)
    assert whole(launch, 1) != whole(other, 1)
