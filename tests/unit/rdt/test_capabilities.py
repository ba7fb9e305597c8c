"""What a machine's caches offer is read from every shape of resctrl that we know of."""

import os
from dataclasses import replace

import pytest

from castmates.rdt.fake import AMD_CHIPLETS, LAB, V7_2, FakeResctrl
from castmates.rdt.resctrl.capabilities import capabilities, read_cache
from castmates.rdt.resctrl.tree import KernelTree
from castmates.study.cache import Bandwidth, Cache
from tests.unit import machines, sysfs
from tests.unit.rdt import trees
from tests.unit.rdt.refused import refused, status

ALL_EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")
PER_CENT = Bandwidth(unit="%", least=10, step=10, most=100, by_core=True)
XEON = Cache(
    domains=(0, 2),
    ways=11,
    way_bytes=1572864,
    least_ways=1,
    sparse=False,
    shareable=0x600,
    groups=7,
    cdp=False,
    bandwidth=PER_CENT,
    events=ALL_EVENTS,
    monitored_groups=175,
)


def test_xeon(tmp_path):
    trees.record(tmp_path, trees.XEON)
    assert read_cache(tmp_path) == XEON


def test_default_group_that_has_not_everything_tells_the_same(tmp_path):
    some = {"schemata": "    MB:0= 30;2= 30\n    L3:0=00f;2=7ff\n", "size": "    L3:0=6291456;2=17301504\n"}
    trees.record(tmp_path, trees.XEON | some)
    narrowed = read_cache(tmp_path)
    assert narrowed.beyond_site == XEON
    assert (narrowed.allowed, narrowed.bandwidth.allowed) == (0xF, 30)


def test_mounted_elsewhere(tmp_path):
    trees.record(tmp_path, trees.XEON, point="/mnt/a b/resctrl")
    mounts = tmp_path / "proc/self/mountinfo"
    mounts.write_text(mounts.read_text().replace("a b", "a\\040b"))
    assert read_cache(tmp_path) == XEON


def test_part_that_is_mounted_into_a_container_is_not_all_of_it(tmp_path):
    trees.record(tmp_path, trees.XEON)
    mounts = tmp_path / "proc/self/mountinfo"
    mounts.write_text(mounts.read_text().replace("0:26 / ", "0:26 /pod_7 "))
    assert read_cache(tmp_path) is None


def test_nothing_mounted(tmp_path):
    assert read_cache(tmp_path) is None


def test_epyc(tmp_path):
    trees.record(tmp_path, trees.EPYC)
    cache = read_cache(tmp_path)
    assert cache.domains == (*range(8), *range(16, 24))
    assert (cache.ways, cache.way_bytes, cache.least_ways, cache.sparse) == (16, 2097152, 0, True)
    assert cache.bandwidth == Bandwidth(unit="1/8 GB/s", least=1, step=1, most=2048)
    assert cache.groups == 15
    assert cache.events == ALL_EVENTS


def test_epyc_whose_default_group_is_throttled_still_knows_its_most(tmp_path):
    slow = trees.EPYC["schemata"].replace("=2048", "=  16")
    trees.record(tmp_path, trees.EPYC | {"schemata": slow})
    assert read_cache(tmp_path).bandwidth.most == 2048
    for family, most in ((25, 2048), (26, 4096)):  # Zen 4 and Zen 5, whose CPUID has 0xB and 0xC in 0x80000020.1
        (tmp_path / "proc/cpuinfo").write_text(f"vendor_id : AuthenticAMD\ncpu family : {family}\n")
        assert read_cache(tmp_path).bandwidth.most == most


def test_sub_numa_clusters_count_as_one_cache_and_divide_its_ways(tmp_path):
    trees.record(tmp_path, trees.SNC)
    cache = read_cache(tmp_path)
    assert (cache.domains, cache.clusters) == ((0, 1), 2)
    assert cache.way_bytes == 786432


@pytest.mark.parametrize("shown", [36 << 20, 18 << 20])
def test_clusters_divide_once_whether_or_not_the_kernel_has_done_it(tmp_path, shown):
    """Kernels leave clusters out of `size`; early versions of their patches did not."""
    sysfs.build(tmp_path, machines.xeon_snc())  # 36 MiB for two clusters
    trees.record(tmp_path, trees.SNC | {"size": f"L3:0={shown};1={shown}\n"})
    assert read_cache(tmp_path).way_bytes == (18 << 20) // 12


def test_arm(tmp_path):
    trees.record(tmp_path, trees.MPAM)
    cache = read_cache(tmp_path)
    assert cache.domains == (1,)
    assert (cache.ways, cache.sparse, cache.groups) == (16, True, 31)  # the second-level cache has fewer classes
    assert cache.bandwidth == Bandwidth(unit="%", least=1, step=1, most=100)
    assert cache.events == ("llc_occupancy",)


def test_code_and_data(tmp_path):
    trees.record(tmp_path, trees.CDP, options="rw,cdp")
    cache = read_cache(tmp_path)
    assert cache.cdp
    assert (cache.ways, cache.shareable, cache.groups, cache.domains) == (12, 0xC00, 7, (0,))
    assert cache.events == ()


@pytest.mark.parametrize("most", ["4294967295", "800"])
def test_bandwidth_in_mebibytes_is_known_from_the_options(tmp_path, most):
    text = trees.XEON["schemata"].replace("=100", f"={most}")
    trees.record(tmp_path, trees.XEON | {"schemata": text}, options="rw,mba_MBps")
    allowed = 800 if most == "800" else None
    assert read_cache(tmp_path).bandwidth == Bandwidth(
        unit="MiB/s", least=10, step=10, most=2**32 - 96, allowed=allowed
    )


def test_monitoring_only(tmp_path):
    here = trees.record(tmp_path, trees.MONITORING_ONLY)
    cache = capabilities(KernelTree(here))
    assert (cache.ways, cache.groups, cache.bandwidth) == (0, 0, None)
    assert cache.domains == (0, 100)
    assert cache.monitored_groups == 31


def test_old_kernel(tmp_path):
    trees.record(tmp_path, trees.OLD)
    cache = read_cache(tmp_path)
    assert (cache.least_ways, cache.sparse, cache.shareable, cache.way_bytes, cache.groups) == (2, False, 0, None, 3)
    assert cache.monitored_groups == 0


@pytest.mark.parametrize("default_group", [False, True])
def test_a_plain_user_has_what_root_gave_him(tmp_path, monkeypatch, default_group):
    given = [f"castmates-{os.geteuid()}-{number}" for number in range(3)]
    groups = {
        f"{name}/{file}": "1234" for name in [*given, "castmates-99999-0", "COS1"] for file in ("tasks", "schemata")
    }
    here = trees.record(tmp_path, trees.XEON | groups)
    his = {here / name / "schemata" for name in given} | ({here / "schemata"} if default_group else set())
    monkeypatch.setattr(os, "access", lambda path, _: path in his)
    assert read_cache(tmp_path) == XEON.model_copy(update={"groups": 3, "rest": default_group})


def test_the_class_of_io_is_not_free_for_groups():
    fake = FakeResctrl(replace(AMD_CHIPLETS, io_alloc=True), V7_2)
    assert fake.read("info/L3/io_alloc") == "disabled\n"
    assert capabilities(fake).groups == 15
    fake.write("info/L3/io_alloc", "1\n")
    cache = capabilities(fake)
    assert cache.groups == 14
    for number in range(cache.groups):
        fake.make(f"g{number}")
    assert refused(fake.make, "one-more") == "ENOSPC"
    fake.write("info/L3/io_alloc", "0\n")
    fake.make("one-more")
    assert refused(fake.write, "info/L3/io_alloc", "1\n") == "ENOSPC"


def test_groups_need_monitoring_ids_too():
    fake = FakeResctrl(replace(LAB, rmids=4), V7_2)
    cache = capabilities(fake)
    assert (cache.groups, cache.monitored_groups) == (3, 3)
    for number in range(cache.groups):
        fake.make(f"g{number}")
    assert refused(fake.make, "one-more") == "ENOSPC"
    assert status(fake) == "Out of RMIDs"
