from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from castmates.errors import CastmatesError
from castmates.machine.topology import CacheDomain, NumaNode, Topology
from castmates.report.launch_record import EvictionFacts
from castmates.report.text.eviction import eviction_sentence
from castmates.runner.processes.starts import Evictor
from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.stage import Emptied
from castmates.study.spec import Share
from tests.unit.snapshots import assert_as_before

SIZE = 16 * eviction.MIB
LLCS = (
    CacheDomain(0, 3, SIZE, 16, (0, 1, 2, 3)),
    CacheDomain(8, 3, SIZE, 16, (4, 5, 6, 7)),
    CacheDomain(9, 3, None, None, (8,)),
)
TOPOLOGY = Topology((), LLCS, (), tuple(range(9)))
# The first cache is divided among two nodes.
DIVIDED = Topology((), LLCS, (NumaNode(0, 1, (0, 1)), NumaNode(1, 1, (2, 3)), NumaNode(2, 1, tuple(range(4, 9)))), ())
NARROW, WIDE = (Share(member="lead@0", ways=0x1),), (Share(member="lead@0", ways=0xF),)


def _cohort(*members, shares=NARROW, nodes=()):
    return SimpleNamespace(
        members=[SimpleNamespace(cpus=cpus, nodes=nodes) for cpus in members], scenes=[SimpleNamespace(shares=shares)]
    )


@pytest.mark.parametrize(
    ("members", "own", "cpus"),
    [
        (((0,), (1,)), (3,), [3]),  # our own CPU in that cache
        (((0,), (1,)), (4,), [1]),  # ours lies elsewhere: the antagonist's
        (((0,),), (), [0]),
        (((0,), (5, 1)), (3,), [3, 5]),  # every cache that a member uses
        (((8,),), (), []),  # its size is not known
    ],
)
def test_each_cache_with_members_is_emptied_from_one_cpu(members, own, cpus):
    assert eviction.evictors(TOPOLOGY, _cohort(*members), own) == [Evictor(cpu, 2 * SIZE) for cpu in cpus]


@pytest.mark.parametrize(
    ("members", "own", "nodes", "expected"),
    [
        (((0,), (2,)), (), (), [Evictor(0, SIZE, 0), Evictor(2, SIZE, 1)]),  # each fills its own part
        (((0,), (1,)), (), (), [Evictor(1, SIZE, 0)]),
        (((0,), (1,)), (3,), (), [Evictor(1, SIZE, 0)]),  # ours lies in another part
        (((0,),), (), (1,), [Evictor(0, SIZE, 0), Evictor(0, SIZE, 1, bound=True)]),  # its memory lies there
        (((4,),), (), (), [Evictor(4, 2 * SIZE)]),  # a cache that is not divided
    ],
)
def test_each_part_of_a_divided_cache_is_emptied_with_memory_of_its_node(members, own, nodes, expected):
    found = eviction.evictors(DIVIDED, _cohort(*members, nodes=nodes), own)
    assert found == expected
    assert len({each.name for each in found}) == len(found)


def test_what_is_evicted_is_written():
    assert Evictor(3, 2 * SIZE).command == ["stream", "--mode", "write", "--bytes", str(2 * SIZE)]


def test_without_masks_nothing_is_emptied():
    assert eviction.evictors(TOPOLOGY, _cohort((0,), shares=()), (3,)) == []
    assert eviction.evictors(TOPOLOGY, _cohort((0,), shares=(Share(member="lead@0", bandwidth=10),)), ()) == []


@dataclass
class Stage:
    """Writes down what is done to it; each evictor writes `pace` MiB between two looks."""

    pace: int = 8
    left: list[float | None] = field(default_factory=lambda: [0.0])  # bytes of members after each pass, the last stays
    done: list[str] = field(default_factory=list)
    shares: tuple[Share, ...] = ()
    evictors: dict[str, int] = field(default_factory=lambda: {"evictor:3": 2 * SIZE})
    now: int = 0

    def __post_init__(self):
        self.cast = {name: SimpleNamespace(records=[], written=1000) for name in self.evictors}
        for one in self.cast.values():
            one.forget_beats = one.records.clear
        self.hardware = SimpleNamespace(occupied=self.occupied)
        self.moving = ()

    def occupied(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def now_ns(self):
        return self.now

    def sleep_until(self, t_ns):
        self.now = t_ns
        for name in self.moving:
            self.cast[name].written += self.pace
            self.cast[name].records.append((self.now, self.cast[name].written))

    def switch(self, names):
        self.moving = tuple(names)
        self.done.append(f"run {','.join(names) or 'nobody'}")

    def apply_shares(self, shares):
        lost = bool(shares) and shares[0].ways.bit_count() < 4
        self.done.append("give " + (f"{shares[0].ways:x}" if shares else "all"))
        self.shares = shares
        return lost


EMPTIES = ["run nobody", "give all", "run evictor:3", "run nobody"]


@pytest.mark.parametrize("shares", [NARROW, WIDE, ()])
def test_every_stretch_begins_with_an_empty_cache_whatever_its_masks(shares):
    """Emptied only where somebody lost ways, scenes under masks began cold, and those without warm."""
    stage = Stage(shares=NARROW if shares != NARROW else WIDE)
    found = eviction.change_shares(stage, shares)
    assert stage.done == [*EMPTIES, f"give {shares[0].ways:x}" if shares else "give all"]
    assert stage.cast["evictor:3"].written - 1000 - stage.pace >= 2 * SIZE / eviction.MIB
    assert (found.passes, found.left) == (1, 0.0)
    assert stage.shares == shares


def test_where_nothing_changes_nothing_is_written_unless_it_is_a_new_round():
    stage = Stage(shares=WIDE)
    assert eviction.change_shares(stage, WIDE) is None
    assert stage.done == []
    assert eviction.change_shares(stage, WIDE, anew=True).passes == 1


def test_all_parts_are_written_through_at_the_same_time():
    stage = Stage(evictors={"evictor:0:node0": SIZE, "evictor:2:node1": SIZE})
    eviction.change_shares(stage, NARROW)
    assert "run evictor:0:node0,evictor:2:node1" in stage.done
    assert all((one.written - 1000) * eviction.MIB >= SIZE for one in stage.cast.values())


@pytest.mark.parametrize(
    ("left", "passes", "share"),
    [
        ([0.01 * SIZE], 1, 0.01),  # little enough
        ([0.5 * SIZE, 0.1 * SIZE, 0.01 * SIZE], 3, 0.01),  # it falls from pass to pass
        ([0.5 * SIZE, 0.5 * SIZE], 2, 0.5),  # another pass does not help
        ([0.5 * SIZE, 0.4 * SIZE, 0.3 * SIZE, 0.2 * SIZE, 0.1 * SIZE], 4, 0.2),  # enough is enough
        ([None], 1, None),  # occupancy cannot be read
    ],
)
def test_it_is_repeated_until_the_members_hold_little(left, passes, share):
    found = eviction.change_shares(Stage(left=left), NARROW)
    assert found.passes == passes
    assert found.left == (None if share is None else pytest.approx(share))


def test_ways_that_are_lost_where_nobody_can_empty_the_cache_are_recorded():
    assert eviction.change_shares(Stage(evictors={}), NARROW) == Emptied(0, None, 0.0)
    assert eviction.change_shares(Stage(evictors={}), WIDE) is None


def test_an_evictor_that_stands_still_is_told():
    stage = Stage(pace=0)
    with pytest.raises(CastmatesError, match="evictor:3 did not write 32 MiB within 20 s"):
        eviction.change_shares(stage, NARROW)


def test_the_record_of_a_launch_has_what_was_reached_and_health_shows_it():
    records = {
        "some": [Emptied(1, 0.01, 0.1), Emptied(4, 0.3, 0.4), Emptied(1, 0.0, 0.1)],
        "occupancy is not known": [Emptied(1, None, 0.1)] * 2,
        "no cache was emptied": [Emptied(0, None, 0.0)] * 2,
        "nothing": [],
    }
    found = {name: eviction.reached(emptied) for name, emptied in records.items()}
    facts = {name: [EvictionFacts.model_validate(record)] for name, record in found.items()}
    assert_as_before("eviction", {name: [found[name], eviction_sentence(own)] for name, own in facts.items()})
