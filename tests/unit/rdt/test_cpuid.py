"""Shapes that are made of CPUID registers show what the processors have: facts of fifteen real parts, by hand."""

from contextlib import suppress

import pytest

from castmates.rdt.fake import V7_2, FakeResctrl, SetNumbers
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.study.cache import Bandwidth
from tests.unit.rdt import cpuid, owned
from tests.unit.rdt.cpuid import CAT, MON, leaves_of, shape_of
from tests.unit.rdt.refused import refused

MIB = 1 << 20
TWO = owned.around((0, 1), 2)
PER_CENT = Bandwidth(unit="%", least=10, step=10, most=100, by_core=True)
ZEN, ZEN_5 = (Bandwidth(unit="1/8 GB/s", least=1, step=1, most=most) for most in (2048, 4096))
AMD, SLOW = {"L3": 16, "MB": 16}, {"L3": 16, "MB": 16, "SMBA": 16}
XEON, RAPIDS = {"L3": 16, "MB": 8}, {"L3": 15, "MB": 15, "L2": 8}
FILES = ("L3/io_alloc", "L3_MON/num_mbm_cntrs", "L3_MON/mbm_total_bytes_config")
IO_ALLOC, ABMC, BMEC = ("disabled", "0=32;1=32", "0=0x7f;1=0x7f")
# Ways, those of I/O, holes, CDP, classes of each control, bandwidth, monitoring ids and their unit, and what else.
KNOWN = {
    "Rome": (16, 0, True, True, AMD, ZEN, 256, 64),
    "Milan": (16, 0, True, True, AMD, ZEN, 256, 64),
    "Genoa": (16, 0, True, True, SLOW, ZEN, 256, 64, BMEC),
    "Bergamo": (16, 0, True, True, SLOW, ZEN, 256, 64, BMEC),
    "Turin_": (16, 0, True, True, SLOW, ZEN_5, 4096, 64, IO_ALLOC, ABMC),
    "TurinD": (16, 0, True, True, SLOW, ZEN_5, 4096, 64, IO_ALLOC, ABMC),
    "Broadwell": (20, 0xC0000, False, True, {"L3": 16}, None, 176, 0x16000),
    "Skylake": (11, 0x600, False, True, XEON, PER_CENT, 192, 0x18000),
    "CascadeLake": (11, 0x600, False, True, XEON, PER_CENT, 80, 0xA000),
    "ICX": (12, 0xC00, False, False, {"L3": 15, "MB": 15}, PER_CENT, 288, 0x12000),
    "SapphireRapids": (15, 0x6000, False, True, RAPIDS, PER_CENT, 352, 0x16000),
    "GraniteRapids": (16, 0xC000, True, True, RAPIDS, PER_CENT, 288, 0x12000),
    "EmeraldRapids_01": (15, 0x6000, False, True, RAPIDS, PER_CENT, 224, 0xE000),
    "EmeraldRapids_02": (15, 0x6000, False, True, RAPIDS, PER_CENT, 128, 0x8000),
    "EmeraldRapids_03": (20, 0xC0000, False, True, RAPIDS, PER_CENT, 480, 0x1E000),
}


def made(leaves, nodes=None):
    return shape_of(leaves, TWO, 32 * MIB, nodes, second=(TWO, 2 * MIB))


@pytest.mark.parametrize("name", cpuid.PARTS)
def test_what_a_part_has_is_what_its_resctrl_shows(name, tmp_path):
    (word,) = (word for word in KNOWN if word in name)
    ways, io, holes, cdp, classes, bandwidth, ids, unit, *others = KNOWN[word]
    source = SetNumbers()
    fake = FakeResctrl(made(leaves_of(name)), V7_2, source)
    owned.Owned(fake.shape, V7_2).record(tmp_path, fake=fake)
    cache = read_cache(tmp_path)
    assert (cache.ways, cache.shareable, cache.sparse, cache.least_ways) == (ways, io, holes, int("AMD" not in name))
    assert (cache.bandwidth, cache.monitored_groups, len(cache.events)) == (bandwidth, ids - 1, 3)
    assert cache.groups == min(classes.values()) - 1
    found = {line: fake.read(f"info/{line}/num_closids") for line in fake.names("info") if line in SLOW | RAPIDS}
    assert found == {line: f"{count}\n" for line, count in classes.items()}
    source.lying["", 0] = 2.5 * unit
    assert int(fake.read("mon_data/mon_L3_00/llc_occupancy")) == 2 * unit
    assert [fake.read(f"info/{file}").strip() for file in FILES if is_there(fake, f"info/{file}")] == others
    again = FakeResctrl(fake.shape, V7_2, options=None)
    if cdp:
        again.mount("cdp")
        assert int(again.read("info/L3CODE/num_closids")) == classes["L3"] // 2
    else:
        assert refused(again.mount, "cdp") == "EINVAL"


def is_there(fake, path):
    with suppress(FileNotFoundError):
        fake.read(path)
        return True
    return False


def test_delays_and_clusters_of_which_there_is_no_dump():
    leaves = leaves_of("SapphireRapids")
    throttle = made({**leaves, (CAT, 3): (79, 0, 5, 7)}).throttle
    assert (throttle.least, throttle.step, throttle.closids, throttle.mode) == (20, 20, 8, "per-thread")
    assert made({**leaves, (CAT, 3): (89, 0, 0, 7)}).throttle is None  # not linear: Linux has no table for that
    whole, divided = made(leaves), made(leaves, {0: (0, 1), 1: (2, 3)})
    assert (divided.rmids, divided.scale) == (whole.rmids // 2, whole.scale // 2) == (176, 0xB000)
    assert made({**leaves, (MON, 0): (0, 0, 0, 0)}).events == ()


def test_a_table_is_made_of_the_first_cpu_of_each_dump_with_all_subleaves():
    dump = "== {0}\n" + "".join(
        f"CPUID {leaf:08X}: 0000000A-0000{{1}}-00000004-0000000F [SL 0{subleaf}]\n"
        for leaf, subleaf in sorted(cpuid.NEEDED)
    )
    short = dump.format("short", "0600").replace("[SL 01]", "[SL 02]")
    table = cpuid.table_of(dump.format("one", "0600") + dump.format("", "0700").split("\n", 1)[1] + short)
    assert table == {"one": dict.fromkeys(("f.0", "f.1", "10.0", "10.1"), "a 600 4 f")}
