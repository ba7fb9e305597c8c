"""What is counted of packages: trees as kernels show them, and counters whose readings are written by hand."""

import errno
import os
import struct

import pytest

from castmates.counters.package import collector as busy_clock
from castmates.counters.package import collector as uncore_clock
from castmates.counters.package import sources
from castmates.counters.package.collector import BusyClock, Packages
from castmates.counters.package.sources import package_of, package_units, parse_terms, zones
from castmates.errors import CastmatesError
from castmates.linux import kernel_files
from castmates.linux.perf_event import PERF_DEVICES, Attr
from tests.unit import sysfs
from tests.unit.snapshots import assert_as_before

CAS = {"scale": "6.103515625e-5", "unit": "MiB"}
JOULES = {"scale": "2.3283064365386962890625e-10", "unit": "Joules"}


def unit(root, name, kind, cpumask, formats, events=None):
    """One unit as sysfs has it; an event is its fields, with a scale and a unit where it has them."""
    folder = root / PERF_DEVICES / name
    sysfs.write(folder / "type", kind)
    sysfs.write(folder / "cpumask", cpumask)
    for field, bits in formats.items():
        sysfs.write(folder / "format" / field, bits)
    for event, (fields, more) in (events or {}).items():
        sysfs.write(folder / "events" / event, fields)
        for part, text in more.items():
            sysfs.write(folder / f"events/{event}.{part}", text)


INTEL = {"event": "config:0-7", "umask": "config:8-15", "edge": "config:18", "thresh": "config:24-31"}


@pytest.fixture
def xeon(tmp_path):
    """Sapphire Rapids, two sockets: two memory controllers, RAPL, and units that are not wanted."""
    root = sysfs.build(tmp_path, sysfs.xeon())
    reads, writes = ("event=0x05,umask=0xcf", CAS), ("event=0x05,umask=0xf0", CAS)
    for number in (0, 1, 10):
        events = {"cas_count_read": reads, "cas_count_write": writes, "clockticks": ("event=0x01,umask=0x00", {})}
        unit(root, f"uncore_imc_{number}", 40 + number, "0,2", INTEL, events)
    unit(root, "uncore_imc_free_running_0", 90, "0,2", INTEL, {"data_read": ("event=0xff,umask=0x20", CAS)})
    unit(root, "uncore_cha_0", 91, "0,2", INTEL, {})
    rapl = {"energy-pkg": ("event=0x02", JOULES), "energy-ram": ("event=0x03", JOULES)}
    unit(root, "power", 21, "0,2", {"event": "config:0-7"}, rapl)
    for number, folder in enumerate(("package_00_die_00", "package_01_die_00")):
        sysfs.write(root / kernel_files.FOLDER / folder / "current_freq_khz", 2_400_000 - 800_000 * number)
    return root


def refusing(*kinds):
    """What refuses these units, as perf does where a user may not count them."""
    return lambda attr: errno.EACCES if attr.kind in kinds else 0


class Counting:
    """Opens pipes in the place of counters: each holds readings that come one after the other."""

    def __init__(self, readings, refused=None):
        self.asked, self.refused = [], refused or refusing()
        self._readings = readings

    def __call__(self, attr, target, leader, bits):
        assert (leader, bits, target.pid) == (-1, 0, -1)
        if code := self.refused(attr):
            raise OSError(code, os.strerror(code))
        self.asked.append((attr, target))
        inside, outside = os.pipe()
        for enabled, running, count in self._readings(attr, target):
            os.write(outside, struct.pack("4Q", 1, enabled, running, count))
        os.close(outside)
        return inside


def read_once(collector):
    collector.attach({})
    collector.start([])
    found = {(sample.subject, sample.metric): sample for sample in collector.stop()}
    collector.close()
    return found


def test_fields_go_where_the_format_puts_them(tmp_path):
    unit(tmp_path, "amd_df", 12, "0", {"event": "config:0-7,32-35,59-60", "umask": "config:8-15"})
    (df,) = package_units("amd_df", tmp_path)
    assert df.attr({"event": 0x1C7, "umask": 0x38}) == Attr(12, 0xC7 | 1 << 32 | 0x38 << 8)
    assert df.attr({"event": 0x3FFF}).config == 0xFF | 0xF << 32 | 0x3 << 59
    with pytest.raises(CastmatesError, match="event=0x4000 does not fit into 14 bits"):
        df.attr({"event": 0x4000})
    with pytest.raises(CastmatesError, match="format/rdwrmask is None"):
        df.attr({"rdwrmask": 1})
    with pytest.raises(CastmatesError, match="which castmates cannot read"):
        parse_terms("event=?,core=1", "power/x")
    assert parse_terms("event=0x04,umask=3,edge", "x") == {"event": 4, "umask": 3, "edge": 1}


def test_units_come_in_the_order_of_their_numbers_and_those_without_cpus_not_at_all(xeon):
    unit(xeon, "uncore_imc_2", 42, "", INTEL)
    assert [found.name for found in package_units(r"uncore_imc_\d+", xeon)] == [
        "uncore_imc_0",
        "uncore_imc_1",
        "uncore_imc_10",
    ]
    assert package_units("power", xeon)[0].cpus == (0, 2)


def test_a_xeon_is_counted_by_package_with_sysfs_own_scales(xeon):
    def readings(attr, target):
        # 1000 lines read of each controller of package 0, 2000 of package 1; half as many written; 50 J.
        lines = (1000 if target.cpu == 0 else 2000) // (2 if attr.config >> 8 == 0xF0 else 1)
        amount = lines if attr.kind >= 40 else 50 * 2**32
        return [(10**9, 10**9, 7), (2 * 10**9, 2 * 10**9, 7 + amount)]

    counting = Counting(readings)
    found = read_once(Packages([0, 2], xeon, counting))
    assert {target.cpu for _, target in counting.asked} == {0, 2}
    ratio = found["package0", sources.READ].value / found["package0", sources.ENERGY].value
    assert ratio == pytest.approx(3 * 1000 * 64 / 50)
    assert found["package1", sources.READ].value == pytest.approx(2 * found["package0", sources.READ].value, rel=1e-9)
    assert found["package0", sources.WRITTEN].value == pytest.approx(found["package0", sources.READ].value / 2)
    assert sources.MOVED not in {metric for _, metric in found}
    assert ("package0", sources.MEMORY_ENERGY) in found
    assert found["package0", "uncore_ghz"].value == pytest.approx(2.4)
    assert found["package1", "uncore_ghz"].value == pytest.approx(1.6)


def test_only_the_launches_packages_are_counted(xeon):
    found = read_once(Packages([0, 4], xeon, Counting(lambda *_: [(1, 1, 0), (2, 2, 9)])))
    assert {subject for subject, _ in found} == {"package0"}


def test_a_count_that_was_multiplexed_is_scaled_and_says_so(xeon):
    half = Counting(lambda *_: [(0, 0, 0), (10**9, 5 * 10**8, 100)])
    whole = Counting(lambda *_: [(0, 0, 0), (10**9, 10**9, 200)])
    scaled, plain = (read_once(Packages([0], xeon, each)) for each in (half, whole))
    key = "package0", sources.READ
    assert "counted for 50.0% of the time" in scaled[key].note
    assert plain[key].note == ""
    never = read_once(Packages([0], xeon, Counting(lambda *_: [(0, 0, 0), (10**9, 0, 0)])))
    assert never[key].value is None
    assert "other events held its counters" in never[key].note


def test_a_quantity_that_lacks_a_unit_is_none_and_not_a_smaller_one(xeon):
    found = read_once(Packages([0], xeon, Counting(lambda *_: [(0, 0, 0), (1, 1, 9)], refusing(41))))
    assert found["package0", sources.READ].value is None
    assert found["package0", sources.READ].note.startswith("uncore_imc_1: perf is refused for whole packages")
    assert found["package0", sources.ENERGY].value is not None


def test_a_quantity_of_which_a_unit_has_no_event_is_none(xeon):
    (xeon / PERF_DEVICES / "uncore_imc_10/events/cas_count_read").unlink()
    collector = Packages([0], xeon, Counting(lambda *_: [(0, 0, 0), (1, 1, 9)]))
    found = read_once(collector)
    assert ("package0", sources.READ) not in found
    assert found["package0", sources.WRITTEN].value is not None
    assert (
        "uncore_imc_10 has no event for 'bytes a second that its memory controllers read'"
        in (collector.about()["not understood"])
    )


@pytest.mark.parametrize(("vendor", "of_package"), [("AuthenticAMD", 1), ("HygonGenuine", 1), ("GenuineIntel", 3)])
def test_energy_of_epyc_is_counted_once_for_a_package_whatever_dies_its_kernel_sees(tmp_path, vendor, of_package):
    """Some kernels read the counter of AMD's package through a CPU of every die; dies of Intel's have one each."""
    root = sysfs.build(tmp_path, sysfs.epyc())
    cpuinfo(root, vendor, 25, 17)
    cpus = [cpu for cpu in range(64) if package_of(cpu, root) == 0][:3]
    rapl = {"energy-pkg": ("event=0x02", {"scale": "1", "unit": "Joules"})}
    unit(root, "power", 21, ",".join(map(str, cpus)), {"event": "config:0-7"}, rapl)
    for die in range(3):
        folder = root / f"sys/class/powercap/intel-rapl:{die}"
        sysfs.write(folder / "name", f"package-0-die-{die}")
        sysfs.write(folder / "energy_uj", 5)
        sysfs.write(folder / "max_energy_range_uj", 999)
    counting = Counting(lambda *_: [(0, 0, 0), (10**9, 10**9, 100)])
    found = read_once(Packages([0], root, counting))
    assert [target.cpu for _, target in counting.asked] == cpus[:of_package]
    assert found["package0", sources.ENERGY].value > 0
    assert len(zones([0], root)) == of_package


def test_what_counts_memory_traffic_on_other_servers(tmp_path):
    """Granite Rapids has two schedulers in a unit; Genoa its controllers, and Rome and Milan the fabric's channels."""
    fabric, told = {"event": "config:0-7,32-35,59-60", "umask": "config:8-15"}, {}

    def wanted(name, machine=None, vendor="AuthenticAMD", family=0, model=0, **units):
        root = sysfs.build(tmp_path / name, machine or sysfs.epyc())
        if family:
            cpuinfo(root, vendor, family, model)
        for number, (of, words) in enumerate(units.items()):
            unit(root, of, 30 + number, "0,2", *words)
        asked, problems = sources.wanted(root)
        assert not problems
        told[name] = [f"{one.metric}: {one.unit.name} {one.name} {one.attr} x {one.scale:g}" for one in asked]

    reads = {f"cas_count_read_sch{n}": (f"event={5 + n:#x},umask=0xcf", CAS) for n in (0, 1)}
    wanted("Granite Rapids", sysfs.xeon(), uncore_imc_0=(INTEL, reads))
    controllers = {f"amd_umc_{n}": ({"event": "config:0-7", "rdwrmask": "config:8-9"},) for n in (0, 1)}
    wanted("Genoa with controllers", family=25, model=17, **controllers, amd_df=(fabric,))
    for name, family, model in (("Rome", 23, 49), ("Milan", 25, 1), ("Genoa", 25, 17), ("Naples", 23, 1)):
        wanted(name, family=family, model=model, amd_df=(fabric,))
    mesh = {"type": "config:0-15", "eventid": "config:16-26"}
    wanted("Arm mesh", arm_cmn_0=(mesh, {"hnf_mc_reqs": ("type=0x5,eventid=0xd", {})}))
    assert_as_before("memory-traffic", told)


def cpuinfo(root, vendor, family, model):
    lines = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}"
    sysfs.write(root / "proc/cpuinfo", lines)


def test_a_unit_that_castmates_cannot_read_is_reported_and_the_others_count(xeon):
    sysfs.write(xeon / PERF_DEVICES / "uncore_imc_1/format/event", "config3:0-7")
    collector = Packages([0], xeon, Counting(lambda *_: [(0, 0, 0), (1, 1, 9)]))
    assert collector.available() is None
    found = read_once(collector)
    assert {metric for _, metric in found} == {sources.ENERGY, sources.MEMORY_ENERGY, "uncore_ghz"}
    assert "uncore_imc_1/format/event" in collector.about()["not understood"]


def test_energy_comes_from_power_capping_where_perf_is_refused(xeon):
    for zone, name, before, most in (
        ("0", "package-0", 900, 999),
        ("0:0", "dram", 10, 999),
        ("1", "package-1", 0, 999),
    ):
        folder = xeon / f"sys/class/powercap/intel-rapl:{zone}"
        sysfs.write(folder / "name", name)
        sysfs.write(folder / "energy_uj", before)
        sysfs.write(folder / "max_energy_range_uj", most)
    assert [(zone.metric, zone.package) for zone in zones([0], xeon)] == [
        (sources.ENERGY, 0), (sources.MEMORY_ENERGY, 0),
    ]  # fmt: skip
    assert zones([0], xeon)[0].joules(900, 100) == pytest.approx(200e-6)  # it ran over
    collector = Packages([0], xeon, Counting(lambda *_: [(0, 0, 0), (1, 1, 9)], refusing(21)))
    collector.attach({})
    collector.start([])
    sysfs.write(xeon / "sys/class/powercap/intel-rapl:0/energy_uj", 950)
    found = {(sample.subject, sample.metric): sample for sample in collector.stop()}
    collector.close()
    assert found["package0", sources.ENERGY].value > 0
    assert found["package0", sources.MEMORY_ENERGY].value == 0


def test_newer_processors_have_a_clock_for_each_domain(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    for name, package, khz in (("uncore00", 0, 2_000_000), ("uncore01", 0, 1_000_000), ("uncore02", 1, 800_000)):
        sysfs.write(root / kernel_files.FOLDER / name / "package_id", package)
        sysfs.write(root / kernel_files.FOLDER / name / "current_freq_khz", khz)
    sysfs.write(root / kernel_files.FOLDER / "package_00_die_00/current_freq_khz", 5)
    assert uncore_clock.UncoreClock([0], root).read() == {0: [2.0, 1.0]}
    (root / kernel_files.FOLDER / "uncore01/current_freq_khz").unlink()
    assert uncore_clock.UncoreClock([0, 1], root).read() == {1: [0.8]}  # what lacks a domain has no mean


def test_a_machine_with_nothing_of_this_says_what_would_be_needed(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    assert "uncore_imc" in Packages([0], root).available()
    assert BusyClock([0], root).available() == busy_clock.NONE_HERE


def test_the_clock_while_running_is_aperf_over_mperf(tmp_path):
    root = tmp_path
    events = {name: (f"event={code:#04x}", {}) for code, name in enumerate(busy_clock.EVENTS)}
    unit(root, "msr", 9, "", {"event": "config:0-63"}, events)
    # In one second 2e9 ticks; the CPU ran for a quarter of it, at one and a half times the counter's rate.
    amounts = {0: 2_000_000_000, 1: 750_000_000, 2: 500_000_000}
    counting = Counting(lambda attr, _: [(5, 5, 3), (10**9 + 5, 10**9 + 5, 3 + amounts[attr.config])])
    clock = BusyClock([0, 3], root, counting)
    assert clock.available() is None
    found = read_once(clock)
    assert found["cpu3", busy_clock.GHZ].value == pytest.approx(3.0)
    assert found["cpu0", busy_clock.RUNNING].value == pytest.approx(0.25)
    halted = Counting(lambda attr, _: [(5, 5, 3), (10**9, 10**9, 3 if attr.config else 9)])
    assert read_once(BusyClock([0], root, halted))["cpu0", busy_clock.GHZ].value is None


def test_what_perf_refuses_is_no_clock(tmp_path):
    events = {name: (f"event={code:#04x}", {}) for code, name in enumerate(busy_clock.EVENTS)}
    unit(tmp_path, "msr", 9, "", {"event": "config:0-63"}, events)
    refused = Counting(lambda *_: [], refusing(9))
    assert "perf is refused" in BusyClock([0], tmp_path, refused).available()
