from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from castmates.errors import CastmatesError
from castmates.machine.topology import CacheDomain, Topology
from castmates.runner.rounds import eviction
from castmates.study.spec import Share

SIZE = 16 * eviction.MIB
LLCS = (
    CacheDomain(0, 3, SIZE, 16, (0, 1, 2, 3)),
    CacheDomain(8, 3, SIZE, 16, (4, 5, 6, 7)),
    CacheDomain(9, 3, None, None, (8,)),
)
TOPOLOGY = Topology((), LLCS, (), tuple(range(9)))
NARROW, WIDE = (Share(member="lead@0", ways=0x1),), (Share(member="lead@0", ways=0xF),)


def _company(*members, shares=NARROW):
    return SimpleNamespace(
        members=[SimpleNamespace(cpus=cpus) for cpus in members], scenes=[SimpleNamespace(shares=shares)]
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
    found = eviction.evictors(TOPOLOGY, _company(*members), own)
    assert found == dict.fromkeys(cpus, 2 * SIZE)


def test_without_masks_nothing_is_emptied():
    assert eviction.evictors(TOPOLOGY, _company((0,), shares=()), (3,)) == {}
    assert eviction.evictors(TOPOLOGY, _company((0,), shares=(Share(member="lead@0", bandwidth=10),)), ()) == {}


@dataclass
class Stage:
    """Writes down what is done to it; the evictor reads `pace` MiB between two looks."""

    pace: int = 8
    done: list[str] = field(default_factory=list)
    shares: tuple[Share, ...] = ()
    evictors: dict[str, int] = field(default_factory=lambda: {"evictor:3": 2 * SIZE})
    now: int = 0
    read: int = 1000

    def __post_init__(self):
        self.one = SimpleNamespace(records=[], forget_beats=self.forget)
        self.cast = {"evictor:3": self.one}

    def forget(self):
        self.one.records = []

    def now_ns(self):
        return self.now

    def sleep_until(self, t_ns):
        self.now, self.read = t_ns, self.read + self.pace
        self.one.records.append((self.now, self.read))

    def switch(self, names):
        self.done.append(f"run {','.join(names) or 'nobody'}")

    def apply_shares(self, shares):
        lost = len(bin(shares[0].ways)) < 6 if shares else False
        self.done.append("give " + (f"{shares[0].ways:x}" if shares else "all"))
        self.shares = shares
        return lost


def test_where_somebody_lost_ways_the_cache_is_read_through_with_open_masks():
    stage = Stage()
    eviction.change_shares(stage, NARROW)
    assert stage.done == ["run nobody", "give 1", "give all", "run evictor:3", "run nobody", "give 1"]
    assert (stage.read - 1000 - stage.pace) * eviction.MIB >= 2 * SIZE
    assert stage.shares == NARROW


def test_where_nobody_lost_ways_or_nothing_changes_nothing_is_read():
    stage = Stage()
    eviction.change_shares(stage, WIDE)
    assert stage.done == ["run nobody", "give f"]
    eviction.change_shares(stage, WIDE)
    assert stage.done == ["run nobody", "give f"]


def test_an_evictor_that_stands_still_is_told():
    stage = Stage(pace=0)
    with pytest.raises(CastmatesError, match="evictor:3 did not stream 32 MiB within 20 s"):
        eviction.change_shares(stage, NARROW)
