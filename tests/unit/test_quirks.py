"""The table of quirks, and what of it applies to a machine."""

import re

import pytest

from castmates.linux import host
from castmates.machine import knobs, quirks
from castmates.machine.quirks import (
    CONDITIONS,
    Kernels,
    applicable,
    as_facts,
    assignment,
    assignments,
    switched_off,
    table,
    version,
)
from tests.unit import sysfs

WORDS = {"cmt", "mbmtotal", "mbmlocal", "l3cat", "l3cdp", "l2cat", "l2cdp", "mba", "smba", "bmec", "abmc", "sdciae"}
EVENTS = "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes"


def intel(model, stepping=1):
    return {"vendor": "GenuineIntel", "family": 6, "model": model, "stepping": stepping, "flags": ["rdt_a"]}


def amd(family=25):
    return {"vendor": "AuthenticAMD", "family": family, "model": 17, "stepping": 1, "flags": ["rdt_a"]}


def machine(processor, kernel="6.1.0", events=EVENTS, monitor=None, options="rw", **facts):
    info = {"L3_MON": {"mon_features": events, **(monitor or {})}}
    return {"processor": processor, "kernel": kernel, "resctrl": {"info": info, "options": options}} | facts


def names(facts):
    return {quirk.name for quirk in applicable(facts)}


def test_every_row_is_whole():
    assert len({quirk.name for quirk in table()}) == len(table())
    for quirk in table():
        assert set(quirk.needs) <= set(CONDITIONS), quirk.name
        assert set(quirk.switches_off) <= WORDS, quirk.name
        assert all(version(number) for number in quirk.kernels.fixed), quirk.name
        assert all(url.startswith("https://") for url in quirk.sources), quirk.name
        for sentence in (quirk.happens, quirk.do):
            assert re.search(r"[\w`)]\.?$", sentence), quirk.name
            assert "\n" not in sentence, quirk.name
        assert quirk.processors or quirk.flags or quirk.needs, quirk.name  # else it would be everywhere


def test_of_an_unknown_machine_nothing_is_claimed():
    assert applicable({}) == []
    assert applicable({"processor": {}, "kernel": None, "resctrl": {"info": None}, "topology": {}}) == []


@pytest.mark.parametrize(
    ("model", "family", "kernel", "is_there"),
    [(17, 25, "6.6.52", True), (17, 25, "6.7.0", False), (2, 26, "6.1.0", True), (1, 25, "6.1.0", False)],
)
def test_memory_controllers_of_zen_4_and_later_are_counted_from_linux_6_7_on(model, family, kernel, is_there):
    facts = machine({**amd(family), "model": model}, kernel, perf={"hardware": "counted"})
    assert ("perf-umc-kernel" in names(facts)) is is_there


@pytest.mark.parametrize(
    ("stepping", "hidden"),
    [
        (4, {"l3cat", "cmt", "mbmtotal", "mbmlocal"}),  # Skylake-SP
        (5, {"l3cat"}),  # Cascade Lake begins
        (7, {"l3cat"}),
        (11, {"l3cat"}),  # Cooper Lake
    ],
)
def test_what_linux_hides_on_the_first_xeon_scalable(stepping, hidden):
    facts = machine(intel(85, stepping), cmdline="quiet")
    assert set(switched_off(facts)) == hidden
    assert set(switched_off(facts | {"cmdline": "rdt=l3cat"})) == hidden - {"l3cat"}
    assert set(switched_off(facts | {"cmdline": "rdt=!l3cat"})) == hidden
    assert all(quirk.verify == "masks" for quirk in switched_off(facts).values())
    assert not switched_off(machine(intel(85, stepping), kernel="4.13.0"))
    assert not switched_off(machine(intel(85, stepping) | {"flags": []}))  # a guest that is shown nothing
    assert not switched_off(machine(intel(106, 6)))  # Ice Lake


@pytest.mark.parametrize(
    ("release", "since", "fixed", "has_it"),
    [
        ("6.1.90-1-amd64", "", ("6.12", "6.6.59", "6.1.115"), True),
        ("6.1.115", "", ("6.12", "6.6.59", "6.1.115"), False),
        ("6.6.70", "", ("6.12", "6.6.59", "6.1.115"), False),
        ("6.7.1", "", ("6.12", "6.6.59", "6.1.115"), True),
        ("6.12.0-rc2", "", ("6.12",), False),
        ("7.0", "", ("6.12",), False),
        ("5.14.0-503.el9.x86_64", "5.0", ("6.18",), True),
        ("4.19.1", "5.0", ("6.18",), False),
        ("6.18", "4.14", (), True),
        (None, "4.14", (), False),
        ("unknown", "", ("6.12",), False),
    ],
)
def test_kernels_by_their_number(release, since, fixed, has_it):
    assert Kernels(since=since, fixed=fixed).have(release) is has_it


def test_amds_lost_ids_are_a_matter_of_kernel_and_mode():
    lost, chance = "amd-mbm-lost-ids", "amd-mbm-chance"
    assert names(machine(amd())) >= {lost, chance}
    assert names(machine(amd(), kernel="6.18.2")) & {lost, chance} == {chance}
    assigned = {"mbm_assign_mode": "[mbm_event]\ndefault"}
    assert not names(machine(amd(), monitor=assigned)) & {lost, chance}
    assert names(machine(amd(), monitor={"mbm_assign_mode": "mbm_event\n[default]"})) >= {lost, chance}
    assert not names(machine(amd(), events="llc_occupancy")) & {lost, chance}
    assert not names(machine(intel(143))) & {lost, chance}


def test_before_a_mount_the_flags_announce_what_is_counted():
    facts = machine(amd()) | {"resctrl": {"info": None}, "rdt_flags": ["cqm_mbm_total"]}
    assert "amd-mbm-chance" in names(facts)
    assert "amd-mbm-chance" not in names(facts | {"rdt_flags": ["cat_l3"]})


def test_throttles_in_mibps_are_cut_where_they_are_mounted():
    assert "mba-mbps-truncated" in names(machine(intel(143), kernel="6.1.90", options="rw,mba_MBps"))
    assert "mba-mbps-truncated" not in names(machine(intel(143), kernel="6.1.115", options="rw,mba_MBps"))
    assert "mba-mbps-truncated" not in names(machine(intel(143), kernel="6.1.90"))


def test_sub_numa_clusters_are_a_cache_of_several_nodes():
    def topology(nodes, online="0-7"):
        llcs = [{"cpus": "0-3"}, {"cpus": "4-7"}]
        return {"llcs": llcs, "nodes": [{"cpus": cpus} for cpus in nodes], "cpus": "0-7", "online": online}

    clusters = machine(intel(173), kernel="6.8.0", topology=topology(["0-1", "2-3", "4-5", "6-7"]))
    assert {"sub-numa-monitoring", "xeon-6-mbm"} <= names(clusters)
    plain = machine(intel(173), kernel="6.8.0", topology=topology(["0-3", "4-7"]))
    assert "sub-numa-monitoring" not in names(plain)
    newer = machine(intel(173), kernel="6.12.0", topology=topology(["0-1", "2-7"], online="0-6"))
    assert names(newer) & {"sub-numa-monitoring", "sub-numa-offline"} == {"sub-numa-offline"}


def test_quirks_of_perf_need_counters():
    facts = machine(amd(26), perf={"hardware": "counted"})
    assert "perf-zen-generic" in names(facts)
    assert "perf-zen-generic" not in names(facts | {"perf": {"hardware": "<not supported>"}})
    siblings = {"topology": {"siblings": ["0-1"]}, "perf": {"hardware": "counted"}}
    assert "perf-ht-erratum" in names(machine(intel(63), **siblings))
    assert "perf-ht-erratum" not in names(machine(intel(63), perf={"hardware": "counted"}))


def test_grace_is_known_by_its_cores():
    assert "grace-mbm-unit" in names(machine({"implementer": "0x41", "part": "0xd4f"}, kernel="7.1"))
    assert "grace-mbm-unit" not in names(machine({"implementer": "0x41", "part": "0xd0c"}, kernel="7.1"))


def test_what_machine_json_keeps_needs_no_table():
    [kept] = [row for row in as_facts(machine(amd())) if row["name"] == "amd-mbm-lost-ids"]
    assert kept["title"].endswith("6.1.0 may have it too)")
    assert "6.1.158" in kept["title"]
    assert kept["sources"]


def test_flags_that_rows_ask_for_are_read(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor : 0\nflags : fpu rdt_a tsx_force_abort avx\n")
    assert quirks.flags_here(tmp_path) == ["rdt_a", "tsx_force_abort"]
    (tmp_path / "proc/cpuinfo").write_text("processor : 0\nFeatures : fp asimd\n")
    assert quirks.flags_here(tmp_path) is None


def test_modes_and_counters_are_read_as_the_kernel_writes_them():
    files = {"mbm_assign_mode": "[mbm_event]\ndefault", "num_mbm_cntrs": "0=32;1=32", "available_mbm_cntrs": "0=30;1=0"}
    here = assignment(files)
    assert (here.assigned, here.offered) == (True, ("mbm_event", "default"))
    assert (here.counters, here.free) == ({0: 32, 1: 32}, {0: 30, 1: 0})
    old = assignment({})
    assert (old.mode, old.assigned, old.counters) == ("", False, {})
    assert assignments("mbm_total_bytes:0=e;1=_\nmbm_local_bytes:0=_;1=_\n") == {
        "mbm_total_bytes": {0: "e", 1: "_"},
        "mbm_local_bytes": {0: "_", 1: "_"},
    }


def test_memory_of_nodes_without_cpus_is_told_where_traffic_may_lack_it():
    def nodes(far_bytes):
        near = {"id": 0, "bytes": 2**38, "cpus": "0-63"}
        return {"nodes": [near, {"id": 1, "bytes": far_bytes, "cpus": ""}], "llcs": [{"cpus": "0-63"}]}

    far = "xeon-far-memory"
    assert far in names(machine(intel(207), topology=nodes(2**37)))
    assert far not in names(machine(intel(207), topology=nodes(0)))  # a node that has nothing yet
    assert far not in names(machine(intel(207), events="", topology=nodes(2**37)))
    assert far not in names(machine(amd(), topology=nodes(2**37)))  # which says of each kind whether it counts it


@pytest.mark.parametrize(
    ("shown", "locked"),
    [
        ("none [integrity] confidentiality", True),
        ("none integrity [confidentiality]", True),
        ("[none] integrity", False),
    ],
)
def test_a_kernel_that_is_locked_down_refuses_to_write_registers(shown, locked, tmp_path):
    sysfs.write(tmp_path / "sys/kernel/security/lockdown", shown)
    facts = machine(intel(143)) | {"lockdown": host.lockdown(tmp_path)}
    assert ("locked-registers" in names(facts)) is locked
    sysfs.write(tmp_path / "proc/cpuinfo", "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143")
    why = knobs.refusal(tmp_path, [0])
    assert ("the kernel is locked down" in why) is locked, why
