"""What pqos printed in the RDT lab (4.5.0) and what newer versions print, read as they mean it."""

from pathlib import Path

import pytest

from castmates.machine import resctrl_state
from castmates.machine.pqos_tool import complaint, parse_readings, parse_state, parse_version
from castmates.machine.topology import read_topology
from castmates.rdt.pqos.classes import expected, parse_capabilities
from tests.unit import machines, sysfs

RECORDED = Path(__file__).resolve().parents[2] / "data/pqos"


def recorded(name):
    return (RECORDED / f"{name}.txt").read_text()


def test_classes_and_cores_of_the_registers():
    state = parse_state(recorded("show-msr"))
    assert state.masks == {(0, number): (0xFFF, 0xFFF) for number in range(16)}
    assert state.throttles == dict.fromkeys(((0, number) for number in range(8)), 100)
    assert state.unit == "%"
    assert state.cores == dict.fromkeys(range(4), (0, 0))


def test_classes_and_cores_of_the_kernels_interface():
    state = parse_state(recorded("show-os-classes"))
    assert [state.masks[0, number][0] for number in range(5)] == [0xFFF, 0xF, 0xF0, 0x3, 0xFFF]
    assert state.throttles[0, 3] == 50
    assert state.cores == {0: (0, 0), 1: (0, 0), 2: (0, 1), 3: (0, 1)}


def test_a_state_is_the_words_that_set_it():
    words = resctrl_state.as_text(parse_state(recorded("show-os-classes"))).split()
    assert words[1] == "llc@0:1=0xf"
    assert "mba@0:3=50" in words
    assert words[-2:] == ["core:0=0-1", "core:1=2-3"]


@pytest.mark.parametrize(
    ("text", "masks", "unit", "cores"),
    [
        (
            "L3CA CLOS definitions for Socket 1:\n    L3CA CLOS2 => DATA 0x7f0, CODE 0xf\n"
            "Core information for socket 1:\n    Core 4, L2ID 2, L3ID 8 => CLOS2, RMID7\n",
            {(1, 2): (0x7F0, 0xF)},
            "",
            {4: (1, 2)},
        ),
        (
            "L3CA/MBA COS definitions for L3 Cluster (or Core Complex) 3:\n    L3CA COS0 => MASK 0xffff\n"
            "    MBA COS0 => 2048 available\n    SMBA COS0 => 1 available\n"
            "Core information for socket 0:\n    Core 9, L2ID 4, L3ID 3 => COS0, RMID0\n",
            {(3, 0): (0xFFFF, 0xFFFF)},
            "1/8 GB/s",
            {9: (3, 0)},
        ),
        (
            "L3CA/MBA COS definitions for Domain ID 2:\n    L3CA COS0 => MASK 0x1\n    MBA COS0 => 4000 MBps\n"
            "Core information for socket 0:\n    Core 0, L2ID 4, L3ID 2 => COS0\n    Core 1 => ERROR\n",
            {(2, 0): (1, 1)},
            "MiB/s",
            {0: (2, 0)},
        ),
    ],
)
def test_other_processors_and_versions(text, masks, unit, cores):
    state = parse_state(text)
    assert (state.masks, state.unit, state.cores) == (masks, unit, cores)
    assert set(state.throttles.values()) <= {2048, 4000}


def test_code_and_data_are_set_one_after_the_other():
    state = parse_state("L3CA COS definitions for Socket 0:\n L3CA COS1 => DATA 0xf0, CODE 0xf\n")
    assert resctrl_state.class_words(state) == ["llc@0:1d=0xf0", "llc@0:1c=0xf"]


def test_capabilities():
    state = parse_state(recorded("show-msr"))
    told = recorded("capabilities-os")
    cache = parse_capabilities(told, state)
    assert (cache.ways, cache.groups, cache.cdp, cache.sparse) == (12, 7, False, False)
    assert cache.events == ("llc_occupancy", "mbm_local_bytes", "mbm_total_bytes")
    verbose = told.replace(
        "                Num COS: 8\n",
        "                Num COS: 16\n                Way size: 1572864 bytes\n"
        "                Ways contention bit-mask: 0xc00\n                Min CBM bits: 2\n"
        "                Max CBM bits: 12\n",
        1,
    )
    cache = parse_capabilities(verbose, state)
    assert (cache.way_bytes, cache.shareable, cache.least_ways) == (1572864, 0xC00, 2)
    assert cache.bandwidth.unit == "%"


def test_series_are_read_by_their_header():
    rows = parse_readings(recorded("csv-cores"))
    assert len(rows) == 8
    assert rows[3].cpus == "1"
    assert rows[3].values == {
        "IPC": 0.8,
        "LLC Misses": 40046440,
        "LLC[KB]": 11008.0,
        "MBT[MB/s]": 116.7,
    }


def test_other_columns_an_empty_one_and_a_cut_line():
    text = (
        "NOTE: x\nTime,Core,RMID,LLC[KB],MBL[MB/s],MBR[MB/s]\n"
        '2026-11-21 00:50:20,"0-1",3,64.0,,1.5\n2026-11-21 00:50:21,"0-1",3,128.0,2'
    )
    (row,) = parse_readings(text)
    assert row.values == {"RMID": 3, "LLC[KB]": 64.0, "MBR[MB/s]": 1.5}
    assert parse_readings("") == parse_readings("NOTE: nothing\n") == []


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NOTE:  x\nPQoS Tool version: 4.5.0\nPQoS Library version: 4.5.0\n", "4.5.0"),
        ("PQoS Tool version: 6.0.1\nPQoS Library version: 6.1.0\n", "6.0.1 with library 6.1.0"),
        ("Usage: pqos", "unknown"),
    ],
)
def test_versions(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("output", "errors", "words"),
    [
        (
            "SOCKET 0 L3CA COS1 - FAILED!\nAllocation configuration error!\n",
            "ERROR: L3 COS1 bit mask is not contiguous!\n",
            "L3 COS1 bit mask is not contiguous",
        ),
        ("Invalid class ID: 9!\nAllocation configuration error!\n", "", "Invalid class ID: 9"),
        (
            "Error initializing PQoS library!\n",
            "ERROR: Failed to create resctrl group /sys/fs/resctrl/COS7!\n",
            "Failed to create resctrl group /sys/fs/resctrl/COS7; Error initializing PQoS library",
        ),
        ("NOTE:  Mixed use of MSR and kernel interfaces to manage\n", "", "it gave no reason"),
    ],
)
def test_complaints_become_part_of_one_sentence(output, errors, words):
    assert complaint(output, errors) == words


def test_what_is_expected_without_starting_pqos(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    sysfs.write(root / "proc/cpuinfo", "processor : 0\nflags : fpu rdt_a cat_l3 mba cqm_occup_llc")
    cache = expected(read_topology(root), root)
    assert cache.ways == 11
    assert cache.way_bytes * cache.ways == read_topology(root).llcs[0].bytes
    assert (cache.groups, cache.bandwidth.unit, cache.events) == (7, "%", ("llc_occupancy",))
    sysfs.write(root / "proc/cpuinfo", "processor : 0\nflags : fpu")
    assert expected(read_topology(root), root) is None


def test_what_is_expected_of_a_cache_that_clusters_divide(tmp_path):
    root = sysfs.build(tmp_path, machines.xeon_snc())
    sysfs.write(root / "proc/cpuinfo", "processor : 0\nflags : fpu rdt_a cat_l3")
    cache = expected(read_topology(root), root)
    assert (cache.clusters, cache.way_bytes) == (2, (36 << 20) // 12 // 2)
