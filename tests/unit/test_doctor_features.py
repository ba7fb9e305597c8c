"""What the doctor shows where the processor announces a feature and resctrl lacks it: the right cause, and its cure."""

import io

from rich.console import Console

from castmates.machine.doctor.capabilities import summarise
from castmates.machine.doctor.examine import examine, screen
from castmates.machine.facts import machine_facts
from castmates.machine.topology import read_topology
from tests.unit import sysfs
from tests.unit.snapshots import assert_as_before
from tests.unit.test_doctor import FLAGS, INFO, TRIED, mount

SKYLAKE, CASCADE_LAKE = 4, 7
ADD = "to the kernel's command line and restart"
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


def monitoring(**files):
    return INFO | {f"L3_MON/{name}": text for name, text in files.items()} | {"MB/num_closids": "16"}


LATER = {"model": 106, "stepping": 6}
HASWELL = {"model": 63, "stepping": 2, "flags": "fpu cqm cqm_llc cqm_occup_llc"}
OCCUPANCY = {"L3_MON/mon_features": "llc_occupancy", "L3_MON/num_rmids": "192"}
EVENTS = {"mbm_assign_mode": "[mbm_event]\ndefault", "num_mbm_cntrs": "0=32;1=32"}
ALL_OFF = "rdt=!l3cat,!cmt,!mbmtotal,!mbmlocal,!mba"
PROCESSORS = {  # and what resctrl shows of them, where it is mounted
    "masks are hidden": ({}, None),
    "masks are hidden, mounted": ({}, NO_MASKS),
    "on the first steppings monitoring is hidden too": ({"stepping": SKYLAKE}, None),
    "on the first steppings, mounted": ({"stepping": SKYLAKE}, ONLY_MBA),
    "words that are there are kept and switched": ({"stepping": SKYLAKE, "line": "ro rdt=cmt,!l3cat,!mba"}, OCCUPANCY),
    "masks were switched on again": ({"line": "rdt=l3cat"}, INFO),
    "a later processor": (LATER, INFO),
    "the user switched masks off": (LATER | {"line": "rdt=!l3cat"}, NO_MASKS),
    "announced, and missing for no known reason": (LATER, NO_MASKS),
    "announces nothing, and may have masks": (
        HASWELL,
        {"L3_MON/mon_features": "llc_occupancy", "L3_MON/num_rmids": "9"},
    ),
    "a kernel that was built without resctrl": (LATER | {"resctrl": False}, None),
    "a kernel that was told so": (LATER | {"resctrl": False, "line": ALL_OFF}, None),
    "a class that I/O holds": (
        LATER,
        INFO | {"L3/io_alloc": "enabled", "L3/io_alloc_cbm": "0=7ff;1=7ff", "MB/num_closids": "3"},
    ),
    "few ids": (LATER, monitoring(num_rmids="2")),
    "counters by default": (LATER, monitoring(mbm_assign_mode="mbm_event\n[default]")),
    "counters": (LATER, monitoring(**EVENTS, available_mbm_cntrs="0=30;1=28")),
    "few counters": (LATER, monitoring(**EVENTS, available_mbm_cntrs="0=30;1=3")),
    "known quirks": ({"model": 173, "stepping": 1}, INFO),
}


def test_what_the_processor_announces_and_resctrl_lacks_has_its_cause_and_its_cure(tmp_path):
    said = {}
    for number, (name, (processor, info)) in enumerate(PROCESSORS.items()):
        root = xeon(tmp_path / str(number), **processor)
        if info is not None:
            mount(root, info)
        found = rows(root, rdt_trial=None)
        chosen = [found[row] for row in ("CAT", "CDP", "CMT", "MBM", "MBA", "resctrl", "masks verified")]
        chosen += [check for row, check in found.items() if row.startswith("known quirks")]
        said[name] = [
            f"{one.name}: {one.state}, {one.finding} | {one.cost} | {one.remedy} | {one.change}" for one in chosen
        ]
    assert_as_before("doctor-features", said)


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
