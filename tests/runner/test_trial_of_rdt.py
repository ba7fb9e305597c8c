"""The trial's programs, on real CPUs and without masks: they must see no effect, and leave nothing behind."""

import os
from pathlib import Path

import pytest

from castmates.linux.processes import read_process
from castmates.machine.topology import read_topology
from castmates.protocols import Sample
from castmates.rdt.choose import NoAllocator, NoMonitor
from castmates.study.cache import Cache
from castmates.study.rdt_trial import ISOLATED, WORKS
from castmates.trials.rdt import isolation
from castmates.trials.rdt.looks import Looks
from castmates.trials.rdt.masks import Rule, judge, plateaus, slowdown, times
from castmates.trials.rdt.programs import (
    CHASE,
    EVICTOR,
    STREAM,
    Setting,
    last_half,
    programs_on_stage,
    streams_on_stage,
)
from castmates.trials.rdt.throttles import agreement, curve
from castmates.trials.rdt.throttles import judge as judge_throttles
from castmates.trials.rdt.trial import places

MIB = 1 << 20
CACHE = Cache(
    domains=(0,), ways=4, way_bytes=MIB, least_ways=1, sparse=False, shareable=0, groups=3, cdp=False, bandwidth=None,
    events=(), monitored_groups=0,
)  # fmt: skip


class Taker(NoAllocator):
    """Takes every mask and does nothing with it, as a hypervisor may."""

    def __init__(self):
        super().__init__()
        self.given, self.members, self.restored = [], {}, 0

    def prepare(self, members):
        self.members = dict(members)

    def apply(self, shares):
        self.given.append([share.ways for share in shares])
        return bool(shares)

    def restore(self):
        self.restored += 1


@pytest.fixture
def setting(kernels):
    cpus = sorted(os.sched_getaffinity(0))
    return Setting(kernels, cpus[0], cpus[-1], 4 * MIB, CACHE.full, cores=tuple(cpus[:2]))


def alive(pid):
    process = read_process(pid)
    return process is not None and process.alive


def test_masks_that_do_nothing_are_not_said_to_work(setting, mark):
    taker = Taker()
    rule = Rule(looks=Looks((4,)))
    with programs_on_stage(setting, taker, NoMonitor()) as programs:
        pids = [held.pid for held in taker.members.values()]
        assert set(taker.members) == {CHASE, EVICTOR}
        assert all(map(alive, pids))
        found = times(programs, CACHE, rule)
        assert plateaus(programs, CACHE, MIB)[0].measured is None
    assert judge(slowdown(found, rule), None, rule) != WORKS
    assert all(1 < each < 10_000 for each in (*found.few, *found.all)), "nanoseconds per load"
    assert sorted(map(str, taker.given[:8])) == ["[1]"] * 4 + ["[]"] * 4
    assert taker.restored
    assert not any(map(alive, pids))
    assert not list(Path(mark).parent.glob("castmates-*"))


def test_a_neighbour_is_not_said_to_be_kept_out_by_masks_that_do_nothing(setting, mark, monkeypatch):
    monkeypatch.setattr(isolation, "RULE", isolation.Rule(looks=Looks((8,), comparisons=6)))
    taker = Taker()
    with programs_on_stage(setting, taker, NoMonitor()) as programs:
        ways = isolation.pairs_of_ways(CACHE)
        found = isolation.tried(programs, ways)
        left = [programs.after(passes) for passes in (0, 1)]
    assert isolation.judge(found) != ISOLATED
    assert all(1 < each.ns_per_load < 10_000 for each in (*found.alone, *found.apart, *found.shared))
    assert all(each.ns_per_load is None or 1 < each.ns_per_load < 10_000 for each in left)
    assert all(each.occupied is None for each in (*found.alone, *left))
    assert {tuple(given) for given in taker.given[:24]} == {(0x7, 0x8), (0x7,), (0x7, 0x7)}


def test_streams_that_nobody_throttles_move_the_same_by_their_own_count(setting, mark):
    taker = Taker()
    with streams_on_stage(setting, len(setting.cores), taker, NoMonitor(), unthrottled=100) as streams:
        assert set(taker.members) == {STREAM}
        found = curve(streams, len(setting.cores), [100, 50])
    assert judge_throttles([found]) != WORKS
    assert all(1e8 < moved.program < 1e12 for moved in found.windows[50])
    assert agreement([found]) == "not counted"


def test_what_fails_on_the_way_leaves_nothing_behind(setting, mark):
    class Refuser(Taker):
        def apply(self, shares):
            raise ValueError(f"no {shares}")

    refuser = Refuser()
    with pytest.raises(ValueError, match="no"), programs_on_stage(setting, refuser, NoMonitor()) as programs:
        programs.set_mask(1)
    assert refuser.restored
    assert not any(alive(held.pid) for held in refuser.members.values())
    assert not list(Path(mark).parent.glob("castmates-*"))


def test_occupancy_is_the_later_half_of_the_chases_own_series():
    def sample(t, value, subject=CHASE, metric="llc_occupancy"):
        return Sample(t, "resctrl", subject, metric, value)

    series = [sample(t, float(t)) for t in range(10)]
    others = [sample(3, 1e9, EVICTOR), sample(3, 1e9, metric="mbm_total"), sample(4, 1e9, f"{CHASE} l3:1")]
    assert last_half([*others, *series]) == 7.0
    assert last_half([sample(1, None)]) is None
    assert last_half([]) is None


def test_a_place_is_found_on_this_machine(kernels):
    setting = places(read_topology(), CACHE, kernels)[0].setting
    assert {setting.chase_cpu, setting.evictor_cpu} <= os.sched_getaffinity(0)
    assert setting.cache_bytes == 4 * MIB
