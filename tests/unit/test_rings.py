"""Two rings around a launch, on large machines: the other CPUs of its caches, and of its packages."""

import pytest

from castmates.machine.topology import read_topology
from castmates.protocols import Sample
from castmates.runner.rounds.ledger_load import Load, Readings, surroundings
from castmates.study.budget_keys import Limits
from castmates.study.spec import Design
from tests.unit import makers, sysfs

SECONDS = 0.5
LEAD = "lead@0"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """One package of 256 CPUs around one last-level cache."""
    cores = [(cpu, cpu + 128) for cpu in range(128)]
    everyone = sorted(cpu for core in cores for cpu in core)
    machine = sysfs.Machine(cores, [sysfs.Cache(3, 504 * 1024, 16, [everyone], (0,))], {0: everyone}, {0: everyone})
    return read_topology(sysfs.build(tmp_path_factory.mktemp("large"), machine))


@pytest.fixture(scope="module")
def epyc(tmp_path_factory):
    """Two packages of eight caches with four CPUs each."""
    return read_topology(sysfs.build(tmp_path_factory.mktemp("epyc"), sysfs.epyc()))


def reasons(topology, busy, takers=(), limits=None, cpu=0, runner=()):
    """Judge a slice of a lead on one CPU, while others took so many CPUs around it, by place."""
    beside = surroundings(topology, [cpu])
    samples = [Sample(0, "cputime", place, "neighbours_busy_s", cpus * SECONDS) for place, cpus in busy.items()]
    samples += [Sample(0, "cputime", LEAD, "cpu_s", SECONDS), Sample(0, "cputime", "runner", "cpu_s", 0.0)]
    samples += [Sample(0, "cputime", f"cpu{cpu}", metric, SECONDS * (metric == "user_s")) for metric in METRICS]
    samples += [Sample(0, "cputime", f"cpu{quiet}", metric, 0.0) for quiet in beside.quiet for metric in METRICS]
    samples += [Sample(0, "culprits", place, "foreign_s", seconds, who) for place, seconds, who in takers]
    load = Load({LEAD: (cpu,)}, beside, frozenset(runner), limits or Limits())
    return list(map(str, load.reasons([LEAD], Readings(samples, SECONDS))))


METRICS = ("user_s", "system_s", "irq_s", "steal_s")


def test_a_share_of_256_cpus_lets_whole_cpus_pass_and_an_absolute_limit_does_not(large):
    streaming = {"l3:0": 7.6}
    shares_alone = Limits(neighbour_cpus=1e6, package_cpus=1e6)
    assert reasons(large, streaming, limits=shares_alone) == []  # as it was: 3 % of 256 are 7.68 CPUs
    (reason,) = reasons(large, streaming, takers=[("l3:0", 2.0, "stream (pid 7)")])
    assert reason == (
        "neighbours: others took the time of 7.6 CPUs around cache l3:0 (limit 0.5 CPUs), mostly stream (pid 7)"
    )
    assert reasons(large, {"l3:0": 0.5}) == []
    assert len(reasons(large, {"l3:0": 0.6})) == 1


def test_two_ticks_are_forgiven_however_short_the_slice(large):
    limit, ticks = 0.5, 0.02 / SECONDS
    assert reasons(large, {"l3:0": limit + ticks}) == []
    assert len(reasons(large, {"l3:0": limit + 1.1 * ticks})) == 1


def test_one_cache_to_a_package_is_one_ring(large):
    beside = surroundings(large, [0])
    assert (len(beside.domains), beside.packages) == (1, ())
    assert beside.caches == (0,)


def test_load_in_another_cache_of_the_package_is_seen_where_memory_is_shared(epyc):
    beside = surroundings(epyc, [0])
    assert [(ring.name, ring.size, len(ring.neighbours)) for ring in beside.packages] == [("package0", 32, 30)]
    assert beside.caches == tuple(range(8))
    assert beside.neighbours["package0"][:3] == (1, 2, 3)
    quiet = {"l3:0": 0.0, "package0": 0.0}
    assert reasons(epyc, quiet) == []
    (reason,) = reasons(epyc, quiet | {"package0": 8.0}, takers=[("package0", 3.9, "stream (pid 7)")])
    assert reason == (
        "neighbours: others took the time of 8.0 CPUs around package 0 (limit 1 CPUs), mostly stream (pid 7)"
    )
    assert reasons(epyc, quiet | {"package0": 8.0}, limits=Limits(package_cpus=9)) == []


def test_the_other_package_is_not_blamed(epyc):
    assert "package1" not in surroundings(epyc, [0]).neighbours
    both = surroundings(epyc, [0, 16])
    assert [ring.name for ring in both.packages] == ["package0", "package1"]
    assert both.caches == (*range(8), *range(16, 24))


def test_a_limit_that_a_study_sets_belongs_to_what_is_measured_and_the_usual_one_changes_no_older_launch():
    usual, strict = (
        makers.plan(makers.study(["a"], ["b"], **keys)).launches[0]
        for keys in ({}, {"limits": {"package_cpus": 0.2, "foreign_traffic": "200 MB"}})
    )
    assert "package_cpus" not in usual.canonical()
    assert usual.design.limits.package_cpus == 1.0
    assert strict.fingerprint() != usual.fingerprint()
    assert strict.design.limits.foreign_bytes == 200_000_000
    assert Design.model_validate_json(strict.design.canonical()) == strict.design
