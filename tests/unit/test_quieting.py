"""The knobs that lie elsewhere than in one word of a file, on recorded trees; each is put back, also after a kill."""

import errno
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.linux import governor, kernel_files, msr
from castmates.linux.kernel_files import write_setting
from castmates.linux.owner import myself
from castmates.machine import knobs as latency_hold
from castmates.machine import knobs as prefetch_control
from castmates.machine import knobs as quieting
from castmates.machine.journal import KINDS, Journal, Kind
from castmates.machine.prepare import Preparing, prepared
from castmates.study.model import Prepare, Study
from castmates.study.reading import read_keys
from tests.unit import sysfs

XEON = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\n"
WORK = quieting.WORKQUEUE_MASK
UNCORE = kernel_files.FOLDER
CPUS = [0, 1]


@pytest.fixture
def root(tmp_path):
    """Two sockets of two cores with SMT: 0 and 4, 1 and 5 are siblings."""
    tree = sysfs.build(tmp_path / "root", sysfs.xeon())
    sysfs.write(tree / "proc/cpuinfo", XEON.format(model=143))
    sysfs.write(tree / WORK, "ff")
    for name in ("package_00_die_00", "package_01_die_00"):
        for file, khz in (("min", 800_000), ("max", 2_400_000), ("initial_min", 800_000), ("initial_max", 2_500_000)):
            sysfs.write(tree / UNCORE / name / f"{file}_freq_khz", khz)
    for cpu in range(8):
        device = tree / f"dev/cpu/{cpu}/msr"
        device.parent.mkdir(parents=True)
        device.write_bytes(bytes(0x1A4) + struct.pack("<Q", 0x40))
    device = tree / latency_hold.DEVICE
    device.write_bytes(struct.pack("=i", 2_000_000_000))
    return tree


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "state")


def hold(root, journal, say=str, **wish):
    return prepared(Prepare(**wish), CPUS, Preparing("a launch", say, journal, root))


def contents(root):
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def registers(root):
    return {cpu: msr.read(msr.path_of(cpu, prefetch_control.PREFETCH_CONTROL, root)) for cpu in range(8)}


# Four prefetchers up to Ice Lake, and from Sapphire Rapids on a fifth one; bits of something else stay.
@pytest.mark.parametrize(("model", "off"), [(85, "0x4f"), (106, "0x4f"), (143, "0x6f"), (173, "0x6f")])
def test_prefetchers_are_switched_on_the_launches_cpus_alone_and_put_back(root, journal, model, off):
    sysfs.write(root / "proc/cpuinfo", XEON.format(model=model))
    before = contents(root)
    with hold(root, journal, prefetchers="off") as record:
        assert registers(root) == {0: off, 1: off} | dict.fromkeys(range(2, 8), "0x40")
        assert set(record["prefetchers"]["before"].values()) == {"0x40"}
    assert contents(root) == before
    with hold(root, journal, prefetchers="on") as record:
        assert record["prefetchers"] == {"before": {}, "set": {}}  # as wanted already


@pytest.mark.parametrize(
    "cpuinfo", [XEON.format(model=175), XEON.format(model=143).replace("GenuineIntel", "AuthenticAMD"), ""]
)
def test_an_unknown_processors_register_is_never_written(root, journal, cpuinfo):
    sysfs.write(root / "proc/cpuinfo", cpuinfo)
    before = contents(root)
    with pytest.raises(CastmatesError, match="Intel's Xeon processors and of AMD's since Zen 3 alone"):
        hold(root, journal, prefetchers="off").__enter__()
    assert contents(root) == before


def test_prefetchers_without_the_kernels_driver_name_it(root, journal):
    (root / "dev/cpu/1/msr").unlink()
    with pytest.raises(CastmatesError, match=r"prefetchers cannot be read: .*cpu/1/msr/0x1a4.*modprobe msr"):
        hold(root, journal, prefetchers="off").__enter__()


def test_the_kernels_unbound_work_goes_where_the_launch_is_not(root, journal):
    with hold(root, journal, workqueues="away"):
        assert (root / WORK).read_text().strip() == "cc"  # neither on 0 and 1 nor on their siblings
    assert (root / WORK).read_text().strip() == "ff"


def test_a_mask_keeps_the_groups_in_which_the_kernel_prints_it(root):
    sysfs.write(root / WORK, "00000001,ffffffff,ffffffff")
    (change,) = quieting.workqueues_away(root, CPUS)
    assert change.new == "00000001,ffffffff,ffffffcc"
    sysfs.write(root / WORK, "33")
    (change,) = quieting.workqueues_away(root, CPUS)
    assert change.new == "cc"  # it was nowhere else, and has to go somewhere


@pytest.mark.parametrize(("word", "khz"), [("highest", 2_500_000), ("lowest", 800_000), (1600, 1_600_000)])
def test_the_uncores_clock_is_fixed_and_put_back(root, journal, word, khz):
    before = contents(root)
    with hold(root, journal, uncore=word):
        for name in ("package_00_die_00", "package_01_die_00"):
            assert (root / UNCORE / name / "min_freq_khz").read_text().strip() == str(khz)
            assert (root / UNCORE / name / "max_freq_khz").read_text().strip() == str(khz)
    assert contents(root) == before


@pytest.mark.parametrize("word", ["highest", "lowest", 1600])
def test_the_uncores_limits_never_cross(root, journal, word, monkeypatch):
    real = KINDS["file"]

    def write(path, value):
        real.write(path, value)
        if path.name in ("min_freq_khz", "max_freq_khz"):
            lowest, highest = (int((path.with_name(f"{end}_freq_khz")).read_text()) for end in ("min", "max"))
            assert lowest <= highest

    monkeypatch.setitem(KINDS, "file", Kind(real.read, write))
    with hold(root, journal, uncore=word):
        pass


@pytest.mark.parametrize("mhz", [700, 2600, 1650])
def test_a_clock_that_the_uncore_does_not_take_is_named_with_its_range(root, journal, mhz):
    with pytest.raises(
        CastmatesError, match=rf"uncore cannot be {mhz} MHz here: .* takes 800 to 2500 MHz in steps of 100"
    ):
        hold(root, journal, uncore=mhz).__enter__()


def test_the_preference_is_set_before_the_governor_and_put_back_after_it(root, journal, monkeypatch):
    """As intel_pstate has it: under the governor `performance` no other preference can be written."""
    policy = root / "sys/devices/system/cpu/cpufreq/policy0"
    for name, word in (("scaling_governor", "powersave"), ("energy_performance_preference", "balance_power")):
        sysfs.write(policy / name, word)
    real = KINDS["file"]

    def write(path, value):
        governor = (policy / "scaling_governor").read_text().strip()
        if path.name == "energy_performance_preference" and governor == "performance" and value != "performance":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real.write(path, value)

    monkeypatch.setitem(KINDS, "file", Kind(real.read, write))
    with hold(root, journal, governor="performance", epp="performance"):
        assert (policy / "energy_performance_preference").read_text().strip() == "performance"
    assert (policy / "energy_performance_preference").read_text().strip() == "balance_power"
    assert journal.entries() == []


@pytest.fixture(params=["balance_performance", None], ids=["as amd_pstate", "as intel_pstate"])
def driver(root, request, monkeypatch):
    """Drivers that choose the preference with the governor: the next governor gives a default, or what was before."""
    policy = root / "sys/devices/system/cpu/cpufreq/policy0"
    governor_file, epp = policy / "scaling_governor", policy / "energy_performance_preference"
    for file, word in ((governor_file, "powersave"), (epp, "balance_power")):
        sysfs.write(file, word)
    real, kept = write_setting, []

    def write(path, value):
        was, preference = governor_file.read_text().strip(), epp.read_text().strip()
        if path == epp and was == "performance" and value != "performance":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real(path, value)
        if path == governor_file and value == "performance":
            kept.append(preference)
            real(epp, "performance")
        elif path == governor_file and was == "performance":
            real(epp, request.param or kept.pop())

    monkeypatch.setattr(governor, "write_setting", write)
    monkeypatch.setitem(KINDS, "file", Kind(KINDS["file"].read, write))
    return policy


def now(policy):
    return tuple((policy / name).read_text().strip() for name in ("scaling_governor", "energy_performance_preference"))


@pytest.mark.parametrize("wish", [{}, {"epp": "performance"}, {"epp": "power"}], ids=str)
@pytest.mark.parametrize("end", ["it ends", "it is killed"])
def test_a_users_preference_survives_the_governors_that_a_study_sets(root, tmp_path, driver, wish, end):
    killed = Journal(tmp_path / "state", replace(myself(), born=1) if end == "it is killed" else None)
    context = prepared(Prepare(governor="performance", **wish), CPUS, Preparing("a launch", str, killed, root))
    record = context.__enter__()
    assert now(driver) == ("performance", "performance")
    assert set(record["governor"]["before"].values()) == {"powersave"}
    assert set(record["governor"]["set"].values()) == {"performance"}
    if end == "it ends":
        context.__exit__(None, None, None)
    else:
        assert {one.how for one in Journal(tmp_path / "state").restore(lambda entry: entry.stale)} == {"restored"}
    assert now(driver) == ("powersave", "balance_power")
    assert Journal(tmp_path / "state").entries() == []


def test_what_somebody_chose_since_stays(root, tmp_path, driver):
    told, journal = [], Journal(tmp_path / "state")
    with hold(root, journal, told.append, governor="performance"):
        (driver / "scaling_governor").write_text("schedutil\n")
        (driver / "energy_performance_preference").write_text("power\n")
    assert now(driver) == ("schedutil", "power")
    assert "somebody else has changed it" in told[-1]


def open_files():
    """What this process has open; the folder that is read for it is gone by then."""
    return {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}


def test_the_latency_is_held_open_and_no_longer(root, journal):
    file = root / latency_hold.DEVICE
    with hold(root, journal, cpu_dma_latency=20) as record:
        assert struct.unpack("=i", file.read_bytes()) == (20,)
        assert str(file) in open_files()
        assert record["cpu_dma_latency"] == {"before": {str(file): "2000000000"}, "set": {str(file): "20"}}
        assert journal.entries() == []
    assert str(file) not in open_files()


@pytest.mark.parametrize(("knob", "word"), [("uncore", "highest"), ("workqueues", "away"), ("cpu_dma_latency", 5)])
def test_a_machine_without_it_says_what_to_do(knob, word, tmp_path, journal):
    sysfs.write(tmp_path / "sys/devices/system/cpu/online", "0-7")
    with pytest.raises(CastmatesError, match=rf"{knob} cannot be set.*leave it out of 'machine.prepare'"):
        hold(tmp_path, journal, **{knob: word}).__enter__()


def test_what_a_killed_run_left_is_put_back_by_the_journal(root, tmp_path):
    before = contents(root)
    gone = replace(myself(), born=1)  # who had our number before us
    killed = Journal(tmp_path / "state", gone)
    wish = Prepare(prefetchers="off", uncore="highest", workqueues="away")
    preparing = Preparing("a launch", str, killed, root)
    context = prepared(wish, CPUS, preparing)
    context.__enter__()
    assert contents(root) != before
    found = Journal(tmp_path / "state")
    assert len(found.entries()) == 2 + 4 + 1
    assert {undone.how for undone in found.restore(lambda entry: entry.stale)} == {"restored"}
    assert contents(root) == before
    assert found.entries() == []


def test_a_study_writes_them_in_plain_words():
    knobs = "{uncore: 1600, prefetchers: off, epp: performance}"
    text = f"name: x\nleads: [a]\nantagonists: [b]\nmachine: {{prepare: {knobs}}}\n"
    wish = read_keys(Study, text, "study.yaml").machine.prepare
    assert wish.words == {"uncore": "1600", "epp": "performance", "prefetchers": "off"}
    with pytest.raises(CastmatesError, match=r"'machine.prepare.uncore'"):
        read_keys(Study, text.replace("1600", "fast"), "study.yaml")
