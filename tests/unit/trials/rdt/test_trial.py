"""The whole trial, with programs whose answers are known in the place of real ones: what reaches record and stamp."""

from contextlib import nullcontext

import pytest

from castmates.analysis.effects.stamps import masks_stamp
from castmates.errors import CastmatesError
from castmates.rdt.choose import NoMonitor
from castmates.study.rdt_trial import Tried
from castmates.trials.rdt import trial
from castmates.trials.rdt.isolation import RULE
from tests.unit import machines
from tests.unit.caches import cache
from tests.unit.trials.rdt.simulated import WAY, Programs, Throttle
from tests.unit.trials.rdt.test_throttles import SAPPHIRE_RAPIDS


class Allocator:
    """Takes everything."""

    def about(self):
        return {}


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """Try a machine whose caches are these, one for each last-level cache."""

    def run(name, on, *caches):
        left = list(caches)
        monkeypatch.setattr(trial, "read_topology", lambda: machines.topology(name))
        monkeypatch.setattr(trial, "_drivers", lambda _: nullcontext((Allocator(), NoMonitor())))
        monkeypatch.setattr(trial, "programs_on_stage", lambda *_: nullcontext(left.pop(0)))
        monkeypatch.setattr(trial, "streams_on_stage", lambda *_, **__: nullcontext(Throttle(SAPPHIRE_RAPIDS)))
        record = trial._try(on, tmp_path, str)
        assert not left
        return record

    return run


SERVER = cache(12, way_bytes=WAY)


def test_a_machine_that_obeys_is_verified(tried):
    record = tried("synthetic-xeon-2s", SERVER, Programs(), Programs(seed=2))
    verdicts = {part: each["verdict"] for part, each in record["parts"].items()}
    assert verdicts == {
        "masks": "works", "isolation": "isolated", "throttles": "some steps are equal", "eviction": "emptied",
        "traffic": "agrees",
    }  # fmt: skip
    assert record["equal_steps"] == {"unit": "%", "steps": [[step, 100] for step in range(30, 100, 10)]}
    assert masks_stamp({"split-4"}, {"measured"}, {"rdt_trial": record | {"at": "today"}})[0] == "verified"
    assert [(one["llc"], one["package"], one["io_way"]["verdict"]) for one in record["caches"]] == [
        (0, 0, "separate"), (1, 1, "separate"),
    ]  # fmt: skip


def test_a_cache_whose_fills_ignore_the_neighbours_mask_spoils_all(tried):
    """SKZ18: each mask does something by itself, which was all that was tried once."""
    record = tried("synthetic-xeon-2s", SERVER, Programs(), Programs(leaks=1.0))
    assert record["parts"]["masks"]["verdict"] == "works"
    assert record["parts"]["isolation"]["verdict"] == "not isolated"
    assert "Of 2 caches 1 pass; cache 1: " in record["parts"]["isolation"]["said"]
    stamp = masks_stamp({"split-4"}, {"measured"}, {"rdt_trial": record | {"at": "today"}})
    assert stamp[0] == "unverified"
    assert "Verified on this machine, at today: masks and throttles. Isolation: not isolated." in stamp[1]


def test_tied_ways_are_seen_where_masks_cut_through_them(tried):
    record = tried("synthetic-xeon-2s", SERVER, *(Programs(tied=SERVER.shareable) for _ in range(2)))
    assert record["parts"]["isolation"]["verdict"] == "isolated"
    assert {one["io_way"]["verdict"] for one in record["caches"]} == {"tied"}
    assert {one["isolation"]["cutting_io"]["verdict"] for one in record["caches"]} == {"not isolated"}


def test_every_cache_of_many_is_tried_and_what_fails_on_one_verifies_none(tried):
    topology = machines.topology("synthetic-epyc-ccx")
    on = cache(16, way_bytes=WAY, shareable=0)
    record = tried("synthetic-epyc-ccx", on, *(Programs(wanted=8.0, seed=n) for n, _ in enumerate(topology.llcs)))
    assert [one["llc"] for one in record["caches"]] == [llc.id for llc in topology.llcs]
    assert sum("masks" in one for one in record["caches"]) == len({cpu.package for cpu in topology.cpus})
    assert all(one["isolation"]["verdict"] == "isolated" for one in record["caches"])

    class Refuses(Programs):
        def beside(self, *_):
            raise CastmatesError("no id is left.")

    last = [Programs(wanted=8.0, seed=n) for n, _ in enumerate(topology.llcs[1:])]
    record = tried("synthetic-epyc-ccx", on, *last, Refuses())
    assert record["parts"]["isolation"]["verdict"] == "not tried"
    assert record["parts"]["isolation"]["said"].endswith(f"cache {topology.llcs[-1].id}: no id is left.")
    assert not Tried.of(record | {"at": "today"}).masks_hold


def test_a_cache_that_is_not_decided_at_the_first_look_has_the_next_ones(tried):
    """Or one noisy cache of many would leave all of them undecided."""
    topology = machines.topology("synthetic-epyc-ccx")
    on = cache(16, way_bytes=WAY, shareable=0)
    *quiet, _ = (Programs(wanted=8.0, seed=n) for n, _ in enumerate(topology.llcs))
    record = tried("synthetic-epyc-ccx", on, *quiet, Programs(wanted=8.0, noise=0.3))
    looked = [len(one["isolation"]["windows"]["alone"]) for one in record["caches"]]
    assert record["parts"]["isolation"]["verdict"] == "isolated"
    assert looked[-1] > looked[-2] == RULE.looks.at[0]


def test_with_one_group_masks_are_not_tried_and_the_rest_is(tried):
    record = tried("synthetic-xeon-2s", cache(12, way_bytes=WAY, groups=1))
    verdicts = {part: each["verdict"] for part, each in record["parts"].items()}
    assert verdicts == {
        "masks": "not tried", "isolation": "not tried", "throttles": "some steps are equal", "traffic": "agrees",
    }  # fmt: skip
    assert "two groups" in record["parts"]["masks"]["said"]
    assert not Tried.of(record | {"at": "today"}).masks_hold
