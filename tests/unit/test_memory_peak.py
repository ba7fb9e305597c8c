"""The peak of memory bandwidth: what a curve shows, and workloads that are given a share of it."""

import pytest

from castmates.errors import CastmatesError
from castmates.machine.facts import machine_facts
from castmates.machine.trial_records import MEMORY_PEAK
from castmates.study.cache import Bandwidth
from castmates.study.cpus import format_cpu_list
from castmates.study.cpus import parse as cpu_list
from castmates.study.memory_peak import Peak, at_peak, free_cores, with_peak
from castmates.study.model import Workload
from castmates.study.placement.layout import Cpu, Layout
from castmates.trials.memory_peak import cores_of_a_package, in_words, ladder, of_a_part, rate
from tests.unit import sysfs
from tests.unit.caches import cache


def record(*points: tuple[int, float]) -> dict[str, object]:
    """Cores, and their GB/s of reads; a triad has two thirds."""
    curve = [{"cores": cores, "read": 1e9 * gb_s, "triad": 2e9 / 3 * gb_s} for cores, gb_s in points]
    return {"at": "2026-11-23T09:00:00+00:00", "curve": curve}


SERVER = Peak.of(record((1, 15), (2, 30), (4, 60), (8, 120), (16, 230), (32, 298), (64, 300)))
SMALL = Peak.of(record((1, 15), (2, 28)))


def cores(*packages: int) -> Layout:
    """So many cores in each package."""
    every = [package for package, count in enumerate(packages) for _ in range(count)]
    return Layout(tuple(Cpu(cpu, core=cpu, package=package) for cpu, package in enumerate(every)))


def stream(**keys: object) -> Workload:
    return Workload.model_validate({"command": "stream", "environment": "native", "progress": "heartbeat", **keys})


def test_what_a_curve_shows():
    assert SERVER is not None
    assert (SERVER.highest(), SERVER.highest("triad")) == (300e9, pytest.approx(200e9))
    assert (SERVER.saturating, SERVER.saturated) == (32, True)
    assert [SERVER.reached(count) / 1e9 for count in (1, 3, 8, 200)] == [15, 30, 120, 300]


def test_bandwidth_that_still_grows_is_no_peak_of_the_memory():
    assert SMALL is not None
    assert (SMALL.saturating, SMALL.saturated) == (2, False)
    assert "memory may give far more" in in_words(SMALL)
    alone = Peak.of(record((1, 15)))
    assert alone is not None
    assert not alone.saturated


@pytest.mark.parametrize(
    "broken", [None, {}, {"curve": []}, {"at": "x", "curve": [{"cores": 1}]}, {"curve": 3, "at": ""}]
)
def test_a_record_without_a_curve_is_none(broken):
    assert Peak.of(broken) is None


@pytest.mark.parametrize(
    ("cpus", "around", "wanted"),
    [
        ("0-15", {8}, 120e9),  # two complexes of eight cores
        ("0-15", {6, 12}, 60e9),  # six cores were not tried, four were
        ("1-15", {8}, None),  # a cpuset leaves seven of eight, which would be too little
        ("8-15", {8, 16}, 120e9),
        ("0-63", set(), 300e9),  # one cache for all
        ("", {8}, None),
        ("64-65", {8}, None),  # none of these CPUs is here
    ],
)
def test_what_the_cores_around_one_cache_reach(cpus, around, wanted):
    peak = Peak.of(record((1, 15), (2, 30), (4, 60), (8, 120), (16, 230), (32, 298), (64, 300)) | {"cpus": cpus})
    llc = [sum(cpu >= first for first in around) for cpu in range(64)]
    here = Layout(tuple(Cpu(cpu, core=cpu, llc=llc[cpu], package=0) for cpu in range(64)))
    assert peak is not None
    assert peak.around_one_cache(here) == wanted


@pytest.mark.parametrize(
    ("cpus", "said"), [("0-7", ""), ("0-5", "Only 6 of the 8 cores"), ("2,4,6", "Only 3 of the 8")]
)
def test_the_record_says_that_a_cpuset_cuts_the_cache(cpus, said):
    allowed = cpu_list(cpus, "cpus")
    here = Layout(tuple(Cpu(cpu, core=cpu % 8, llc=0, allowed=cpu in allowed) for cpu in range(16)))
    _, tried = cores_of_a_package(here)
    peak = Peak.of(record((1, 15), (8, 120)) | {"cpus": format_cpu_list(tried)})
    assert peak is not None
    assert of_a_part(peak, here).strip().startswith(said)
    assert bool(of_a_part(peak, here)) == bool(said) == (peak.around_one_cache(here) is None)


@pytest.mark.parametrize(("cpus", "said"), [("0-7", "The 4 cores around"), ("0-5", "Only 3 of the 4 cores")])
def test_caches_whose_numbers_interleave_are_no_cpuset(cpus, said):
    here = Layout(tuple(Cpu(cpu, core=cpu, llc=cpu % 2) for cpu in range(8)))
    peak = Peak.of(record((1, 15), (4, 60)) | {"cpus": cpus})
    assert peak is not None
    assert of_a_part(peak, here).strip().startswith(said)


def test_only_throttles_in_a_rate_need_a_peak():
    peak = Peak.of(record((8, 123)) | {"cpus": "0-7"})
    here = Layout(tuple(Cpu(cpu, core=cpu, llc=0) for cpu in range(8)))

    def told(unit):
        one = cache(bandwidth=Bandwidth(unit=unit, least=1, step=1, most=2048))
        return with_peak(one, peak, here).bandwidth.peak

    assert [told("1/8 GB/s"), told("MiB/s"), told("%")] == [120e9, 120e9, None]
    assert with_peak(None, peak, here) is None


MIXES = [["x", "stream-socket"], ["y", "dial"]]
PROGRAMS = {
    "x": stream(cores=4),
    "y": stream(),
    "stream-socket": stream(saturate=True, options={"threads": "{cpus}"}),
    "dial": stream(options={"rate": "60%"}),
    "not in the study": stream(saturate=True),
}


def test_as_many_cores_as_saturate_and_a_rate_that_is_a_share():
    found = at_peak(PROGRAMS, MIXES, cores(64, 64), SERVER)
    assert found["stream-socket"].cores == 32
    assert found["dial"].options["rate"] == "180GB/s"
    assert found["x"] == PROGRAMS["x"]
    assert found["not in the study"] == PROGRAMS["not in the study"]


@pytest.mark.parametrize(("layout", "given"), [(cores(16), 11), (cores(6), 1), (cores(5), 1), (cores(2), 1)])
def test_no_more_cores_than_the_lead_and_the_runner_leave(layout, given):
    assert at_peak(PROGRAMS, MIXES, layout, SERVER)["stream-socket"].cores == given


def test_two_cores_leave_one_beside_a_lead():
    assert [free_cores(cores(2), 1), free_cores(cores(3), 1), free_cores(cores(1, 8), 1)] == [1, 1, 6]


@pytest.mark.parametrize("name", ["stream-socket", "dial"])
def test_without_a_peak_it_is_one_sentence_with_the_command(name):
    with pytest.raises(CastmatesError, match=rf"the workload '{name}' .* run `castmates doctor --memory-peak`"):
        at_peak(PROGRAMS, [["y", name]], cores(4), None)
    with pytest.raises(CastmatesError, match=f"'{name}' .* not known of a captured machine: give it a rate in GB/s"):
        at_peak(PROGRAMS, [["y", name]], cores(4), None, "a captured machine")
    assert at_peak(PROGRAMS, [["y", "x"]], cores(4), None) == PROGRAMS


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("proc/self/status", "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1"),
        ("proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0"),
        ("sys/devices/system/node/node1/cpulist", "5,7"),
        ("proc/sys/kernel/osrelease", "6.12.1"),
    ],
)
def test_a_peak_holds_for_the_cpus_and_memory_nodes_that_it_was_measured_with(tmp_path, file, text):
    root = sysfs.build(tmp_path / "root", sysfs.xeon())
    sysfs.write(root / "proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1")
    sysfs.write(root / "proc/sys/kernel/osrelease", "6.1.0")
    MEMORY_PEAK.write(tmp_path, {"identity": MEMORY_PEAK.identity(root), **record((1, 15))})
    assert MEMORY_PEAK.identity(root) == MEMORY_PEAK.identity_of(machine_facts(root))
    assert MEMORY_PEAK.read(tmp_path, root) is not None
    before = (root / file).read_text()
    sysfs.write(root / file, text)
    assert MEMORY_PEAK.read(tmp_path, root) is None
    (root / file).write_text(before)
    assert MEMORY_PEAK.read(tmp_path, root) is not None


def test_the_ladder_ends_with_all():
    assert [ladder(count) for count in (1, 2, 3, 20)] == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4, 6, 8, 12, 16, 20]]


def test_the_package_with_most_cores_is_measured():
    assert cores_of_a_package(cores(2, 3)) == (1, (2, 3, 4))
    with pytest.raises(CastmatesError, match="no core may be used"):
        cores_of_a_package(cores())


def test_a_disturbance_in_one_piece_does_not_count():
    steady = [(n * 10**6, 3 * n) for n in range(601)]
    stalled = [(t + (10**9 if n > 300 else 0), units) for n, (t, units) in enumerate(steady)]
    assert rate(steady) == rate(stalled) == pytest.approx(3000)
    with pytest.raises(CastmatesError, match="no progress"):
        rate([(0, 0)])
