"""Sampled loads: what others' processors printed, and what Linux itself has in its tables."""

from pathlib import Path

import pytest

from castmates.machine.doctor.examine import memory_latencies
from castmates.machine.quirks import latency_source
from castmates.runner.tracing.stacks import load_arguments
from castmates.timeline.latencies import EVENT, latencies, loads, served
from castmates.timeline.model import Making, Registry
from tests.unit import sysfs

DATA = Path(__file__).parents[1] / "data/perf_mem"
# In perf's own words, in all versions.
WORDS = {"L1 hit": "L1", "L1 or L1 hit": "L1", "LFB/MAB hit": "fill buffer", "LFB/MAB or LFB/MAB hit": "fill buffer"}
WORDS |= {"L2 hit": "L2", "L2 or L2 hit": "L2"}
WORDS |= {"L3 hit": "LLC", "L3 or L3 hit": "LLC", "L3 or Remote Cache (1 hop) hit": "LLC"}
OF_LINUX = {"LOC_CACHE": "another cache", "DRAM": "DRAM", "REM_CACHE": "another cache", "EXT_LOC_CACHE": "LLC"}
OF_LINUX |= {"EXT_NEAR_CCX_CACHE": "another cache", "EXT_FAR_CCX_CACHE": "another cache"}
OF_LINUX |= {"EXT_PMEM": "persistent memory", "EXT_EXT_MEM": "CXL"}


@pytest.mark.parametrize("file", ["intel.txt", "intel-fields.txt", "amd.txt", "arm.txt"])
def test_our_level_is_the_one_that_perf_names(file):
    for line in (DATA / file).read_text().splitlines():
        before, _, after = line.partition("|OP ")
        level = after.split("|LVL ")[1].split("|")[0]
        found = served(int(before.split()[-1], 16))
        assert (found.is_load, found.level, found.is_remote) == (True, WORDS[level], False)


def test_data_sources_of_amd_as_linux_has_them():
    for line in (DATA / "amd-kernel.txt").read_text().splitlines()[1:]:
        number, name, where = line.split()
        found = served(int(number) | 0x02)
        assert (found.level, found.is_remote) == (OF_LINUX[name], where == "far"), name


LEVELS = {
    0x1A49081042: ("DRAM", False),  # perf: RAM hit
    0x02 | (0x100 | 0x02) << 5: ("DRAM", True),  # Remote RAM (1 hop), of older kernels
    0x02 | (0x800 | 0x02) << 5: ("another cache", True),  # Remote Cache (2 hops)
    0x02 | 13 << 33 | 1 << 37: ("DRAM", True),  # remote, by the bits of newer kernels
    0x88000182: ("not known", False),  # perf: L1 miss
}


def test_other_levels():
    assert {bits: tuple(served(bits)[1:]) for bits in LEVELS} == LEVELS


def test_stores_are_no_loads():
    assert not served(0x229080144).is_load  # perf: OP STORE


def test_lines_of_intel_and_arm_are_read():
    rows = list(loads((DATA / "intel.txt").read_text().splitlines()))
    assert [each.cycles for each in rows] == [5, 5, 96, 5, 71, 240, 5]
    assert (rows[2].comm, rows[2].tid, rows[2].t_ns, rows[2].level) == ("taskset", 182628, 247517_778444000, "LLC")
    assert rows[-1].comm == "java"
    arm = list(loads((DATA / "arm.txt").read_text().splitlines()))
    assert len(arm) == 1, "one record, which perf shows under five events"
    assert (arm[0].cpu, arm[0].cycles) == (20, None)


def test_the_form_that_we_ask_for_is_read():
    line = (
        "a b  10/11 [003] 12.000000345:  cpu/mem-loads,ldlat=30/P:     7fad7c47425d      10668100842 |OP LOAD|LVL L3 "
        "or L3 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A               47"
    )
    (found,) = loads([line, "garbage", ""])
    assert found[:6] == ("a b", 10, 11, 3, 12_000000345, "cpu/mem-loads,ldlat=30/P")
    assert found.cycles == 47


def test_latencies_alone_and_beside_others():
    making = Making()
    registry = Registry(making)
    run, thread = registry.run(), registry.thread(11, 10, "t", "lead@0")
    making.intervals(t0_ns=[0, 100], t1_ns=[100, 200], track=run, kind="scene", name=["alone", "corun:x"])
    stacks = [*["memory;LLC"] * 3, "memory;DRAM", "memory;LLC", *["memory;DRAM;another node"] * 3]
    cycles = [40.0, 50.0, 60.0, 300.0, 80.0, 500.0, 600.0, 700.0]
    times = [1, 2, 3, 4, 101, 102, 103, 104]
    making.stacks(t_ns=times, track=thread, event=EVENT, weight=cycles, stack=stacks)
    table = latencies(making.made(), "lead@0").set_index(["scene", "level"])
    assert table.loc[("alone", "all"), ["loads", "remote_share"]].tolist() == [4, 0]
    assert table.loc[("alone", "LLC"), ["share", "cycles_median"]].tolist() == [0.75, 50]
    assert table.loc[("corun", "all"), "remote_share"] == 0.75
    assert table.loc[("corun", "DRAM"), ["loads", "cycles_median", "remote_share"]].tolist() == [3, 600, 1]


@pytest.mark.parametrize(
    ("files", "source", "events"),
    [
        (["cpu/events/mem-loads"], "PEBS", "cpu/mem-loads,ldlat=30/P"),
        (
            ["cpu_core/events/mem-loads", "cpu_core/events/mem-loads-aux", "cpu_atom/events/mem-loads"],
            "PEBS",
            "{cpu_core/mem-loads-aux/,cpu_core/mem-loads,ldlat=30/}:P",
        ),
        (["cpu/type", "ibs_op/type"], "IBS", "ibs_op//"),
        (["arm_spe_0/type"], "SPE", "arm_spe_0/ts_enable=1,load_filter=1,store_filter=0,min_latency=30/"),
    ],
)
def test_what_the_processor_has(tmp_path, files, source, events):
    for file in files:
        sysfs.write(tmp_path / "sys/bus/event_source/devices" / file, 1)
    found = latency_source(tmp_path)
    assert found == {"source": source, "events": events}
    words = load_arguments(found, [1, 2], Path("x"))
    assert words[words.index("--event") + 1] == events
    assert ("--count" in words) == (source == "SPE")
    words = load_arguments(found, [1, 2], Path("x"), user_only=True)
    assert words[words.index("--event") + 1] == f"{events}u"
    row = memory_latencies({"latency_source": found})
    assert row.state == "yes"
    assert "not tried on real hardware" in row.finding


def test_a_machine_without_a_source(tmp_path):
    assert latency_source(tmp_path) is None
    assert memory_latencies({"latency_source": None, "hypervisor_flag": True}).state == "no"
