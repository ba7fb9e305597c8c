"""What the doctor shows where the processor announces a feature and resctrl lacks it: the right cause, and its cure."""

import io

import pytest
from rich.console import Console

from castmates.machine.doctor.capabilities import summarise
from castmates.machine.doctor.examine import examine, screen
from castmates.machine.facts import machine_facts
from castmates.machine.topology import read_topology
from tests.unit import sysfs
from tests.unit.test_doctor import FLAGS, INFO, TRIED, mount

SKYLAKE, CASCADE_LAKE = 4, 7
ADD = "to the kernel's command line and restart"
ALL_WORDS = "rdt=l3cat,cmt,mbmtotal,mbmlocal"
NO_MASKS = {name: text for name, text in INFO.items() if not name.startswith("L3/")}
ONLY_MBA = {name: text for name, text in INFO.items() if name.startswith("MB/")}


def xeon(tmp_path, model=85, stepping=CASCADE_LAKE, line="quiet", flags=FLAGS, kernel="6.1.0-18-amd64", resctrl=True):
    root = sysfs.build(tmp_path, sysfs.xeon())
    cpu = f"vendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\nstepping : {stepping}"
    sysfs.write(root / "proc/cpuinfo", f"processor : 0\n{cpu}\nmodel name : Xeon\nflags : {flags}")
    sysfs.write(root / "proc/filesystems", "nodev\tsysfs\n" + "nodev\tresctrl\n" * resctrl)
    sysfs.write(root / "proc/cmdline", line)
    sysfs.write(root / "proc/sys/kernel/osrelease", kernel)
    return root


def rows(root, **changed):
    topology = read_topology(root)
    facts = machine_facts(root, topology) | changed
    return {check.name: check for check in examine(facts, topology)}


@pytest.mark.parametrize("mounted", [False, True])
def test_cache_allocation_that_linux_hides_is_named_with_its_boot_words(tmp_path, mounted):
    root = xeon(tmp_path)
    if mounted:
        mount(root, NO_MASKS)
    cat = rows(root)["CAT"]
    assert cat.state == "no"
    assert cat.finding == "announced (cat_l3), but Linux switches it off on this processor (SKZ18)"
    assert cat.change == f"add rdt=l3cat {ADD}"
    assert "castmates doctor --verify-cat" in cat.remedy
    assert "Use a server processor" not in cat.remedy
    assert rows(root)["CDP"].change == cat.change  # it comes with the masks
    assert rows(root)["MBM"].state == ("yes" if mounted else "partly")


@pytest.mark.parametrize("mounted", [False, True])
def test_on_the_first_steppings_monitoring_is_hidden_too_and_one_restart_brings_all(tmp_path, mounted):
    root = xeon(tmp_path, stepping=SKYLAKE)
    if mounted:
        mount(root, ONLY_MBA)
    found = rows(root)
    hidden = [found[name] for name in ("CAT", "CDP", "CMT", "MBM")]
    assert {check.state for check in hidden} == {"no"}
    assert {check.change for check in hidden} == {f"add {ALL_WORDS} {ADD}"}
    assert found["MBA"].state == ("yes" if mounted else "partly")


def test_words_that_are_there_are_kept_and_switched(tmp_path):
    root = xeon(tmp_path, stepping=SKYLAKE, line="ro rdt=cmt,!l3cat,!mba")
    mount(root, {"L3_MON/mon_features": "llc_occupancy", "L3_MON/num_rmids": "192"})
    found = rows(root)
    new = "rdt=cmt,!mba,l3cat,mbmtotal,mbmlocal"
    assert found["CAT"].change == f"put {new} in place of rdt=cmt,!l3cat,!mba on the kernel's command line and restart"
    assert found["MBM"].change == found["CAT"].change
    assert found["CMT"].state == "yes"
    assert found["MBA"].finding == "announced (mba), but rdt=!mba on the kernel's command line switches it off"


def test_what_the_user_switched_off_is_their_own_word(tmp_path):
    root = xeon(tmp_path, model=106, stepping=6, line="rdt=!l3cat")
    mount(root, NO_MASKS)
    cat = rows(root)["CAT"]
    assert cat.finding == "announced (cat_l3), but rdt=!l3cat on the kernel's command line switches it off"
    assert cat.change == "remove rdt=!l3cat from the kernel's command line and restart"


def test_masks_that_were_switched_on_again_have_to_be_tried(tmp_path):
    root = xeon(tmp_path, line="rdt=l3cat")
    mount(root)
    found = rows(root)
    assert found["CAT"].state == "yes"
    assert found["masks verified"].state == "unknown"
    assert "Masks may fail on this processor (SKZ18)" in found["masks verified"].cost
    assert found["masks verified"].remedy.endswith("Here it is not optional.")
    (tmp_path / "other").mkdir()
    other = xeon(tmp_path / "other", model=106, stepping=6)
    mount(other)
    assert "not optional" not in rows(other)["masks verified"].remedy


def test_what_is_announced_and_missing_for_no_known_reason_is_looked_up_in_the_kernels_messages(tmp_path):
    root = xeon(tmp_path, model=106, stepping=6)
    mount(root, NO_MASKS)
    cat = rows(root)["CAT"]
    assert cat.finding == "announced (cat_l3), but not in info/"
    assert "dmesg" in cat.remedy
    assert "Use a server processor" not in cat.remedy


def test_a_haswell_announces_nothing_and_may_have_masks(tmp_path):
    root = xeon(tmp_path, model=63, stepping=2, flags="fpu cqm cqm_llc cqm_occup_llc")
    mount(root, {"L3_MON/mon_features": "llc_occupancy", "L3_MON/num_rmids": "144"})
    cat = rows(root)["CAT"]
    assert cat.state == "no"
    assert "L3 allocation detected" in cat.remedy


@pytest.mark.parametrize(
    ("line", "said"),
    [("quiet", "CONFIG_X86_CPU_RESCTRL=y"), ("rdt=!l3cat,!cmt,!mbmtotal,!mbmlocal,!mba", "Remove rdt=!l3cat")],
)
def test_a_kernel_without_resctrl_was_built_so_or_told_so(tmp_path, line, said):
    root = xeon(tmp_path, model=106, stepping=6, line=line, resctrl=False)
    check = rows(root)["resctrl"]
    assert check.state == "no"
    assert said in check.remedy
    assert "Use a server processor" not in check.remedy


def test_the_summary_sends_nobody_to_another_machine_for_what_boot_words_bring(tmp_path):
    root = xeon(tmp_path)
    mount(root, NO_MASKS)
    topology = read_topology(root)
    facts = machine_facts(root, topology) | TRIED
    found = summarise(examine(facts, topology), facts, topology)
    assert ("CAT, CDP", f"add rdt=l3cat {ADD}") in found.changes
    assert not any("cache allocation" in how for _, how in found.elsewhere)
    out = io.StringIO()
    Console(file=out, width=100).print(screen(found))
    assert "rdt=l3cat" in out.getvalue()


def test_a_processor_that_announces_features_is_not_said_to_announce_none(tmp_path):
    root = xeon(tmp_path, model=106, stepping=6, resctrl=False)
    topology = read_topology(root)
    facts = machine_facts(root, topology) | TRIED
    assert "announces no" not in summarise(examine(facts, topology), facts, topology).verdicts[3].why


def epyc_info(**monitor):
    info = INFO | {f"L3_MON/{name}": text for name, text in monitor.items()}
    return info | {"L3/num_closids": "16", "MB/num_closids": "16"}


def test_a_class_that_io_holds_is_not_free(tmp_path):
    root = xeon(tmp_path, model=106, stepping=6)
    mount(root, epyc_info() | {"L3/io_alloc": "enabled", "L3/io_alloc_cbm": "0=7ff;1=7ff", "MB/num_closids": "3"})
    cat = rows(root)["CAT"]
    assert cat.state == "partly"
    assert "one class holds I/O (io_alloc: 0=7ff;1=7ff)" in cat.finding


@pytest.mark.parametrize(
    ("files", "state", "said"),
    [
        ({}, "yes", "192 monitoring ids"),
        ({"num_rmids": "2"}, "partly", "2 monitoring ids"),
        ({"mbm_assign_mode": "mbm_event\n[default]"}, "partly", "counters in the mode default"),
        (
            {
                "mbm_assign_mode": "[mbm_event]\ndefault",
                "num_mbm_cntrs": "0=32;1=32",
                "available_mbm_cntrs": "0=30;1=28",
            },
            "yes",
            "32 counters in each cache, 28 of them free",
        ),
        (
            {
                "mbm_assign_mode": "[mbm_event]\ndefault",
                "num_mbm_cntrs": "0=32;1=32",
                "available_mbm_cntrs": "0=30;1=3",
            },
            "partly",
            "3 of them free",
        ),
    ],
)
def test_ids_and_counters_for_traffic(tmp_path, files, state, said):
    root = xeon(tmp_path, model=106, stepping=6)
    mount(root, epyc_info(**files))
    check = rows(root)["MBM"]
    assert (check.state, said in check.finding) == (state, True)
    if "default]" in files.get("mbm_assign_mode", ""):
        assert check.change == "echo mbm_event | sudo tee /sys/fs/resctrl/info/L3_MON/mbm_assign_mode"


def test_known_quirks_have_a_row_each(tmp_path):
    root = xeon(tmp_path, model=173, stepping=1)
    mount(root)
    found = rows(root)
    check = found["known quirks: xeon-6-mbm"]
    assert (check.state, "GNR12" in check.finding) == ("partly", True)
    assert check.cost
    assert check.remedy
    (tmp_path / "other").mkdir()
    assert rows(xeon(tmp_path / "other", model=106, stepping=6))["known quirks"].state == "yes"
