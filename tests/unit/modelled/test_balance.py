"""Rates of the modelled machine when nothing changes any more, and on the way there."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.runner.modelled.balance import Actor, Grant, balance, speeds
from castmates.runner.modelled.world import filled, run
from castmates.study.modelled import LINE, MachineModel, PathModel, WorkingSet, WorkloadModel

MACHINE = MachineModel(domains=1, ways=12, way_size="1.5 MiB", bandwidth="24 GB")
NARROW = MACHINE.model_copy(update={"path": PathModel(bandwidth="24 GB", hits=0.3), "streams_stay": 0.2})


def model(*sets, **keys):
    reuse = [WorkingSet(size=size, share=share) for size, share in sets]
    return WorkloadModel(**{"compute": 0.004, "accesses": 100_000, "parallel": 2, "reuse": reuse} | keys)


LEAD = model(("2 MiB", 0.3), ("14 MiB", 0.6))
STREAM = model(compute=1e-6, accesses=262_144, parallel=16, writes=0.33)
SPIN = WorkloadModel(compute=0.01)


def actor(name, of, mask=0xFFF, cpus=(0,), throttle=1.0, machine=MACHINE):
    return Actor.on(machine, name, of, cpus, Grant((mask,) * machine.domains, throttle))


def rate(*actors, machine=MACHINE):
    return balance(actors, machine).rates[0]


def test_who_is_alone_and_fits_runs_as_its_parameters_say():
    fits = model(("6 MiB", 1.0))
    expected = 1 / (0.004 + 100_000 * 20e-9 / 2)
    assert rate(actor("a@0", fits)) == pytest.approx(expected, rel=1e-6)


def test_a_stream_pays_for_every_access_and_waits_in_its_own_queue():
    slow = model(compute=0.001, accesses=10_000, parallel=1)
    found = balance([actor("a@0", slow)], MACHINE)
    busy = found.busy[0]
    late = 80e-9 + 16 * LINE / 24e9 * busy / (2 * (1 - busy))
    assert found.rates[0] == pytest.approx(1 / (0.001 + 10_000 * (20e-9 + late)), rel=1e-6)
    assert found.busy[0] == pytest.approx(found.rates[0] * 10_000 * LINE / 24e9, rel=1e-6)


def test_a_antagonist_costs_and_a_partition_gives_back():
    alone = rate(actor("lead@0", LEAD))
    busy = rate(actor("lead@0", LEAD), actor("placebo:1", SPIN, cpus=(1,)))
    beside = rate(actor("lead@0", LEAD), actor("stream@1", STREAM, cpus=(1,)))
    apart = rate(actor("lead@0", LEAD, mask=0x3FF), actor("stream@1", STREAM, mask=0xC00, cpus=(1,)))
    assert alone > busy > apart > beside
    throttled = rate(actor("lead@0", LEAD), actor("stream@1", STREAM, cpus=(1,), throttle=0.2))
    assert throttled > beside


def test_the_own_mask_costs_the_more_the_smaller_it_is():
    rates = [rate(actor("lead@0", LEAD, mask=(1 << ways) - 1)) for ways in range(1, 13)]
    assert rates == sorted(rates)
    assert rates[0] < 0.8 * rates[-1]


def test_a_throttle_bounds_each_core_and_many_cores_fill_memory_all_the_same():
    def moved(cores, throttle, each=12e9):
        streams = model(compute=1e-6, accesses=262_144, parallel=16 * cores, writes=0.33)
        found = balance([actor("stream@0", streams, cpus=range(cores), throttle=throttle)], MACHINE)
        assert throttle == 1 or found.busy[0] * 24e9 <= throttle * cores * each * (1 + 1e-9)
        return found.busy[0]

    assert moved(1, 0.2) == pytest.approx(0.2 * 12 / 24)
    assert moved(8, 0.5) == pytest.approx(moved(8, 1.0), rel=1e-9)
    assert moved(8, 1.0) > 0.9
    assert moved(8, 0.2) == pytest.approx(8 * 0.2 * 12 / 24)


def test_a_complexs_own_path_is_shared_around_it_only_and_hits_wait_there_too():
    fits, size = model(("6 MiB", 1.0)), {"domains": 2, "cores": 4, "sockets": 1, "turbo": 0.0}
    narrow = MachineModel(bandwidth="200 GB", path=PathModel(bandwidth="20 GB", hits=0.3), **size)
    deep = model(compute=1e-6, accesses=262_144, parallel=100)

    def slowdown(machine, cpu):
        lead = actor("lead@0", fits, mask=0xFF0, machine=machine)
        stream = actor("stream@1", deep, mask=0xF, cpus=(cpu,), machine=machine)
        return rate(lead, machine=machine) / rate(lead, stream, machine=machine)

    assert slowdown(narrow, 1) > 1.5  # in ways of its own, and without a miss
    assert slowdown(narrow, 4) == pytest.approx(1, rel=1e-9)
    without_hits = narrow.model_copy(update={"path": PathModel(bandwidth="20 GB")})
    assert slowdown(without_hits, 1) == pytest.approx(1, rel=1e-9)


def test_a_stream_whose_lines_pass_by_takes_less_of_a_cache_and_as_much_bandwidth():
    passing = MACHINE.model_copy(update={"streams_stay": 0.1})
    found = {
        machine.streams_stay: balance(
            [actor("lead@0", LEAD, machine=machine), actor("stream@1", STREAM, cpus=(1,), machine=machine)], machine
        )
        for machine in (MACHINE, passing)
    }
    assert found[0.1].lines[0].sum() > 1.5 * found[1.0].lines[0].sum()
    assert found[0.1].misses[1] == found[1.0].misses[1] == (1.0,)


def test_caches_apart_do_not_touch_each_other():
    two = MachineModel(domains=2, cores=2, bandwidth="24 GB")
    lead = actor("lead@0", LEAD, machine=two)
    alone = rate(lead, actor("placebo:2", SPIN, cpus=(2,), machine=two), machine=two)
    beside = rate(lead, actor("stream@2", STREAM, cpus=(2,), machine=two), machine=two)
    assert beside == pytest.approx(alone, rel=1e-9)


@st.composite
def scenes(draw):
    actors = []
    for number in range(draw(st.integers(1, 4))):
        sizes = draw(st.lists(st.integers(64, 200_000), max_size=3))
        sets = [(f"{size} KiB", draw(st.floats(0.05, 1)) / max(len(sizes), 1)) for size in sizes]
        one = model(
            *sets,
            compute=draw(st.floats(1e-5, 0.05)),
            accesses=draw(st.integers(0, 500_000)),
            parallel=draw(st.floats(1, 20)),
            writes=draw(st.floats(0, 1)),
        )
        low, length = draw(st.integers(0, 11)), draw(st.integers(1, 12))
        mask = ((1 << length) - 1) << low & 0xFFF
        actors.append(actor(f"a{number}@{number}", one, mask, (number,), draw(st.sampled_from([0.1, 0.5, 1.0]))))
    return actors


@settings(deadline=None, max_examples=60)
@given(scenes(), st.sampled_from([MACHINE, NARROW]))
def test_every_balance_is_one(actors, machine):
    actors = [actor(one.name, one.model, one.grant.masks[0], one.cpus, one.grant.throttle, machine) for one in actors]
    found = balance(actors, machine)
    again = speeds(actors, found.misses, machine)
    assert again.rates == pytest.approx(found.rates, rel=1e-6)
    assert all(0 <= busy < 1 for busy in found.busy)
    moved = [
        speed * one.traffic[0] * missed[0] for speed, one, missed in zip(again.rates, actors, found.misses, strict=True)
    ]
    assert sum(moved) / 24e9 == pytest.approx(again.busy[0], rel=1e-6, abs=1e-12)
    assert (found.lines.sum(axis=(0, 1)) <= MACHINE.way_lines * (1 + 1e-6)).all()
    for number, one in enumerate(actors):
        outside = [way for way in range(12) if not one.grant.masks[0] >> way & 1]
        assert not found.lines[number][:, outside].any()
        most = 1 / (one.model.compute + one.model.accesses * 20e-9 / one.model.parallel)
        assert found.rates[number] <= most * (1 + 1e-9)


def begun(actors, seconds=1.0, held=None, machine=MACHINE):
    found = balance(actors, machine)
    held = np.zeros((3, 1, 12)) if held is None else held
    return *run(held, range(len(actors)), found, machine, seconds), found


@pytest.mark.parametrize("machine", [MACHINE, NARROW])
def test_an_empty_cache_fills_and_ends_in_balance(machine):
    actors = [actor("lead@0", LEAD, machine=machine), actor("stream@1", STREAM, cpus=(1,), machine=machine)]
    held, stretches, found = begun(actors, machine=machine)
    assert held[:2] == pytest.approx(found.lines, rel=1e-3, abs=MACHINE.way_lines * 0.002)
    assert stretches[0].rates[0] < stretches[-1].rates[0] == found.rates[0]
    assert sum(one.seconds for one in stretches) == pytest.approx(1.0)
    assert sum(one.seconds for one in stretches[:-1]) < 0.1


def test_shrinking_a_mask_evicts_nothing_until_somebody_needs_it():
    wide, _, full = begun([actor("lead@0", LEAD)])
    after, _, _ = begun([actor("lead@0", LEAD, mask=0x3)], held=wide)
    assert after[0].sum() >= 0.99 * wide[0].sum()  # what lies outside the mask goes on to be hit
    small = balance([actor("lead@0", LEAD, mask=0x3)], MACHINE)
    pair = [actor("lead@0", LEAD, mask=0x3), actor("stream@1", STREAM, mask=0xFFC, cpus=(1,))]
    evicted, _, _ = begun(pair, held=after)
    assert evicted[0].sum() == pytest.approx(small.lines[0].sum(), rel=0.02)
    assert full.lines[0].sum() > 3 * evicted[0].sum()


def test_who_is_frozen_keeps_its_lines_where_nobody_fills():
    both, _, _ = begun([actor("lead@0", LEAD, mask=0xFF), actor("stream@1", STREAM, mask=0xF00, cpus=(1,))])
    later, _, _ = begun([actor("lead@0", LEAD, mask=0xFF)], held=both)
    assert later[1] == pytest.approx(both[1])


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.floats(0, 3))
def test_filling_loses_no_line_and_invents_none(seed, amount):
    random = np.random.default_rng(seed)
    held = random.random((3, 2, 4))
    wanted = random.random((3, 2, 4))
    held /= np.maximum(held.sum(axis=0), 1)
    wanted /= np.maximum(wanted.sum(axis=0), 1)
    after = filled(held, wanted, random.random((3, 2)) * amount, 1.0)
    assert (after >= -1e-12).all()
    assert (after.sum(axis=0) <= 1 + 1e-9).all()
    assert (after.sum(axis=0) >= held.sum(axis=0) - 1e-9).all()  # a place that was filled stays filled


def test_the_truth_is_in_the_members_units():
    one = model(("6 MiB", 1.0), units=10)
    (told,) = balance([actor("a@0", one)], MACHINE).truth().values()
    assert told["rate"] == pytest.approx(10 * told["steps_per_second"])
    assert told["occupancy_bytes"][0] == pytest.approx(6 * 2**20, rel=1e-6)
    assert math.isclose(told["misses"][0], 0.0, abs_tol=1e-9)
