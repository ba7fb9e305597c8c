import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from castmates.linux.probe_points import NO_UPROBES
from castmates.machine.doctor.capabilities import summarise
from castmates.machine.doctor.examine import as_json, as_table, examine, permission, screen
from castmates.machine.facts import cgroup, machine_facts
from castmates.machine.probes import git_state, parse_perf_stat, try_freezing
from castmates.machine.topology import read_topology
from castmates.workloads import written
from tests.needs import lacks
from tests.unit import sysfs
from tests.unit.rdt_trials import trial
from tests.unit.snapshots import assert_as_before

INFO = {
    "L3/cbm_mask": "7ff",
    "L3/min_cbm_bits": "1",
    "L3/num_closids": "16",
    "L3/shareable_bits": "600",
    "MB/min_bandwidth": "10",
    "MB/bandwidth_gran": "10",
    "MB/num_closids": "8",
    "L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
    "L3_MON/num_rmids": "192",
}
FLAGS = "fpu rdt_a cat_l3 cdp_l3 mba cqm cqm_llc cqm_occup_llc cqm_mbm_total cqm_mbm_local"


@pytest.fixture
def server(tmp_path):
    """A bare-metal two-socket server on which nothing is missing that can be read."""
    root = sysfs.build(tmp_path, sysfs.xeon())
    sysfs.write(root / "proc/cpuinfo", f"processor : 0\nmodel name : Xeon\nmicrocode : 0x5\nflags : {FLAGS}")
    sysfs.write(root / "proc/filesystems", "nodev\tsysfs\nnodev\tresctrl\nnodev\ttracefs\n\text4")
    sysfs.write(root / "proc/stat", "cpu  100 0 100 9800 0 0 0 0 0 0")
    sysfs.write(root / "proc/meminfo", "MemTotal: 67108864 kB\nSwapTotal: 10 kB\nSwapFree: 10 kB")
    sysfs.write(root / "proc/sys/kernel/perf_event_paranoid", -1)
    sysfs.write(root / "sys/bus/event_source/devices/cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3")
    sysfs.write(root / "sys/devices/system/cpu/intel_pstate/no_turbo", 1)
    sysfs.write(root / "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
    for cpu in range(8):
        sysfs.write(root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "performance")
    return root


PERF = {
    "version": "perf 6.8",
    "why": None,
    "hardware": "counted",
    "software": "counted",
    "scopes": dict.fromkeys(("cgroup", "thread", "cpu"), "counted"),
}


TRIED = {
    "perf": PERF,
    "freezing": {"works": True, "why": None},
    "no_cpuset_partition": "",
    "no_calls": "",
    "traces": {"level": "everything", "families": ["scheduler"], "lacking": []},
    "left_changed": [],
    "compiler": "cc 12",
    "tensorflow_python": "3.11.7",
    "gpus": {"names": ["NVIDIA L4, driver 580.82.07"], "lack": ""},
    "rdt_trial": trial(),
    "counts": {"at": "2026-01-05T10:00:00+00:00", "events": {"instructions": "verified"}},
    "packages": {},
    "memory_peak": {
        "at": "2026-01-05T10:00:00+00:00",
        "curve": [
            {"cores": 1, "read": 15e9, "triad": 12e9},
            {"cores": 8, "read": 40e9, "triad": 39e9},
            {"cores": 16, "read": 41e9, "triad": 40e9},
        ],
    },
}


def mount(root, info=INFO, options="rw", groups=()):
    sysfs.write(root / "proc/self/mountinfo", f"30 1 0:9 / /sys/fs/resctrl rw - resctrl resctrl {options}")
    sysfs.write(root / "sys/fs/resctrl/schemata", "L3:0=7ff")
    for folder in ("mon_data", "mon_groups", *groups):
        (root / "sys/fs/resctrl" / folder).mkdir(parents=True)
    for name, text in info.items():
        sysfs.write(root / "sys/fs/resctrl/info" / name, text)


def rows(tree, **changed):
    topology = read_topology(tree)
    facts = machine_facts(tree, topology) | changed
    return {check.name: check for check in examine(facts, topology)}


def test_a_complete_server_lacks_only_what_was_not_tried(server):
    mount(server)
    found = rows(server, **TRIED)
    assert {name: c.state for name, c in found.items() if c.state != "yes"} == {"SMT off": "partly", "CDP": "partly"}
    assert found["CAT"].finding == "11 ways, 8 classes, at least 1 way(s) a mask, ways 600 shared with I/O"
    assert found["MBM"].finding == "mbm_total_bytes, mbm_local_bytes, 192 monitoring ids"
    assert "L3:1 35.75 MiB 11 ways, CPUs 2-3,6-7" in found["shared LLC"].finding


def summary(tree, **changed):
    topology = read_topology(tree)
    facts = machine_facts(tree, topology) | changed
    return summarise(examine(facts, topology), facts, topology)


def guest(root):
    sysfs.write(root / "proc/cpuinfo", "flags : fpu hypervisor")
    sysfs.write(root / "proc/filesystems", "nodev\tsysfs")


PACKAGES = {"packages": {"xz-utils": ["xz", "xz-slow"]}}
MACHINES = {
    "a complete server": (mount, {}),
    "a guest": (guest, {"perf": PERF | {"hardware": "<not supported>"}, "counts": None} | PACKAGES),
    "resctrl is not mounted": (None, {}),
}


@pytest.mark.parametrize("name", MACHINES)
def test_what_a_machine_can_measure_and_what_would_change_that(server, name):
    """What the user or root can change, each cause once, and what takes another machine."""
    change, facts = MACHINES[name]
    if change:
        change(server)
    found = summary(server, **TRIED | facts)
    said = [f"{verdict.name}: {verdict.state}, {verdict.why}" for verdict in found.verdicts]
    said += ["to change:", *(f"{gained}: {how}" for gained, how in found.changes)]
    said += ["elsewhere:", *(f"{gained}: {how}" for gained, how in found.elsewhere), *found.machine]
    assert_as_before(f"doctor-{name.replace(' ', '-')}", {name: said})
    assert sum(found.counts.values()) == len(rows(server))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_summary_fits_the_terminal(server, width):
    out = io.StringIO()
    Console(file=out, width=width).print(screen(summary(server, compiler="cc [bold]12[/bold]")))
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert "\N{HORIZONTAL ELLIPSIS} precisely" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_every_lack_has_a_cost_and_a_remedy(server, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    for root in (server, empty):
        for check in rows(root).values():
            if check.state in ("no", "partly"):
                assert check.cost.endswith((".", "…"))
                assert check.remedy
    assert rows(empty)["cores"].state == "no"
    assert rows(empty)["shared LLC"].state == "no"


def test_not_mounted_differs_from_not_there(server):
    found = rows(server)
    assert found["resctrl mounted"].remedy.startswith("Mount it: sudo mount -t resctrl resctrl /sys/fs/resctrl, or")
    assert found["CAT"].state == found["CMT"].state == "partly"
    sysfs.write(server / "proc/filesystems", "nodev\tsysfs")
    assert rows(server)["CAT"].state == "no"
    (server / "proc/filesystems").unlink()
    assert rows(server)["resctrl"].state == "unknown"


def test_missing_flags_are_a_no_and_a_guest_is_told_so(server):
    sysfs.write(server / "proc/cpuinfo", "flags : fpu hypervisor")
    found = rows(server)
    assert found["CAT"].state == "no"
    assert "hypervisor" in found["CAT"].remedy
    assert found["shared LLC"].state == "partly"


def test_cdp_mount_and_too_few_classes(server):
    halved = {"L3CODE/num_closids": "2", "L3CODE/cbm_mask": "fffff", "L3CODE/min_cbm_bits": "1"}
    mount(server, halved, options="rw,cdp")
    found = rows(server)
    assert found["CDP"].state == "yes"
    assert (found["CAT"].state, found["CAT"].finding[:18]) == ("partly", "20 ways, 2 classes")
    assert found["MBA"].state == found["CMT"].state == found["MBM"].state == "no"


def test_groups_of_others_are_named_and_our_own_are_not(server):
    mount(server, groups=("COS1", "castmates.demo.lead"))
    check = rows(server)["resctrl mounted"]
    assert check.state == "partly"
    assert check.finding.endswith("groups of others: COS1")
    assert check.remedy.endswith("sudo rmdir /sys/fs/resctrl/COS1")


def test_who_may_make_groups_later_is_named_before_they_are_there(server):
    mount(server, groups=("castmates.demo.lead",))
    assert rows(server)["resctrl mounted"].state == "yes"
    for number, program in enumerate(("kubelet", "crio", "sshd"), start=4000):
        sysfs.write(server / f"proc/{number}/comm", program)
    check = rows(server)["resctrl mounted"]
    assert check.state == "partly"
    assert check.finding.endswith("crio and kubelet run, and have no groups yet")


@pytest.mark.parametrize(
    ("output", "status", "verdict"),
    [
        ("<not supported>,,instructions,0,100.00,,\n", 0, "<not supported>"),
        ("<not counted>,,instructions,0,0.00,,\n", 0, "<not counted>"),
        ("812345,,instructions,423460,100.00,,\n", 0, "counted"),
        ("512345,,instructions:u,423460,100.00,,\n", 0, "user only"),
        ("<not counted>,,cpu_atom/instructions/,0,0.00,,\n9,,cpu_core/instructions/,1,100,,\n", 0, "counted"),
        ("Error:\nNo permission to enable instructions event.\n", 255, "No permission to enable instructions event."),
        ("", 129, "perf ended with status 129"),
    ],
)
def test_what_perf_answers(output, status, verdict):
    assert parse_perf_stat("instructions", status, "", output) == verdict


def test_knobs_and_steal(server):
    sysfs.write(server / "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave")
    sysfs.write(server / "sys/devices/system/cpu/intel_pstate/no_turbo", 0)
    sysfs.write(server / "proc/stat", "cpu  100 0 100 9700 0 0 0 100 0 0")
    sysfs.write(server / "proc/meminfo", "SwapTotal: 4096 kB\nSwapFree: 2048 kB")
    sysfs.write(server / "sys/devices/system/cpu/isolated", "6-7")
    sysfs.write(server / "proc/sys/kernel/numa_balancing", 1)
    found = rows(server)
    assert found["governor"].finding == "performance on CPUs 0-2,4-7, powersave on CPUs 3"
    assert found["turbo off"].remedy.endswith("echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo")
    assert (found["no steal"].state, found["no steal"].finding[:5]) == ("no", "1.00%")
    assert (found["swap unused"].state, found["swap unused"].finding) == ("partly", "2 MiB in use")
    assert found["balanced CPUs"].finding == "CPUs 6-7 are isolated"
    assert found["NUMA"].state == "partly"


@pytest.mark.parametrize(("allowed", "lacking"), [([0], True), ([0, 1], True), ([0, 1, 2], False), (range(8), False)])
def test_without_a_spare_cpu_what_else_runs_disturbs_the_lead(tmp_path, allowed, lacking):
    machine = sysfs.xeon()
    root = sysfs.build(tmp_path, sysfs.Machine(machine.cores, machine.caches, allowed=list(allowed)))
    assert rows(root)["spare CPU"].state == ("partly" if lacking else "yes")
    if lacking:
        assert rows(root)["spare CPU"].finding == f"none: {len(allowed)} usable"
        line = "77 (kdamond.0) I 2 0 0 0 -1 2129984 0 0 0 0 100 1900 0 0 20 0 1 0 130 0 0"
        sysfs.write(root / "proc/77/comm", "kdamond.0")
        sysfs.write(root / "proc/77/stat", line)
        sysfs.write(root / "proc/78/comm", "other")
        sysfs.write(root / "proc/uptime", f"{2000 / os.sysconf('SC_CLK_TCK') / 0.004:.2f} 1.00")
        sysfs.write(root / "proc/cmdline", "quiet nested_pvm=1 kvm_intel.nested=0")
        found = rows(root)["spare CPU"]
        assert found.finding == (
            f"none: {len(allowed)} usable; kdamond.0 has had 0.4% of a CPU since boot; this machine is set up for "
            "nested virtual machines (nested_pvm=1)"
        )
        assert found.change


def test_cores_of_several_kinds_and_no_shared_cache(tmp_path):
    client = sysfs.client()
    machine = sysfs.Machine(client.cores, client.caches, devices=client.devices, allowed=[0, 1, 8, 9])
    found = rows(sysfs.build(tmp_path, machine))
    assert (found["equal cores"].state, found["equal cores"].finding) == ("partly", "several kinds: atom, core")
    assert found["shared LLC"].state == "no"


@pytest.mark.parametrize(
    ("mountinfo", "own", "layout", "inside"),
    [
        ("9 1 0:1 / /cg rw - cgroup2 cgroup2 rw", "0::/a", "v2", "cg/a"),
        ("9 1 0:1 /docker/x /cg rw - cgroup2 cgroup2 rw", "0::/docker/x/a", "v2", "cg/a"),
        ("9 1 0:1 / /cg rw - cgroup2 c rw\n8 1 0:2 / /v1 rw - cgroup c rw,cpu", "0::/a", "hybrid", "cg/a"),
        ("9 1 0:1 / /v1 rw - cgroup c rw,cpu", "3:cpu:/a", "v1", None),
        ("9 1 0:1 / /cg rw - cgroup2 cgroup2 rw", "0::/../a", "v2", None),
    ],
)
def test_our_own_group_is_found_in_every_layout(tmp_path, mountinfo, own, layout, inside):
    (tmp_path / "cg/a").mkdir(parents=True)
    sysfs.write(tmp_path / "proc/self/mountinfo", mountinfo)
    sysfs.write(tmp_path / "proc/self/cgroup", own)
    found = cgroup(tmp_path)
    assert found == {"layout": layout, "v2_group": inside and str(tmp_path / inside)}


def test_freezing_is_tried_and_leaves_nothing_behind():
    group = cgroup(Path("/"))["v2_group"]
    if group is None:
        lacks("cgroup", "no cgroup v2 group of our own")
    answer = try_freezing(Path(group))
    assert answer["works"] or answer["why"]
    assert not list(Path(group).glob(f"castmates-doctor-{os.getpid()}"))


def test_freezing_outside_control_groups_says_why(tmp_path):
    missing = tmp_path / "missing"
    assert try_freezing(missing) == {"works": False, "why": "cannot make a child group: No such file or directory"}


def test_facts_of_this_machine_are_json(tmp_path):
    facts = machine_facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["kernel"] == os.uname().release
    assert facts["topology"]["allowed"]
    assert {c.name.partition(":")[0] for c in examine(facts, read_topology())} == set(rows(tmp_path))


def test_the_commit_of_a_checkout(tmp_path):
    assert git_state(tmp_path) is None
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert git_state(tmp_path) is None
    (tmp_path / "file").write_text("a")
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    state = git_state(tmp_path)
    assert (len(state["commit"]), state["modified"]) == (40, False)
    assert state["commit"].startswith(state["described"])
    subprocess.run([*git, "tag", "v1.2.3"], check=True)
    (tmp_path / "file").write_text("b")
    state = git_state(tmp_path)
    assert (state["modified"], state["described"]) == (True, "v1.2.3-dirty")


def test_the_table_fits_80_columns_and_keeps_brackets_without_colour(server):
    checks = list(rows(server, compiler="cc [bold]12[/bold]").values())
    out = io.StringIO()
    Console(file=out, width=80).print(as_table(checks))
    text = out.getvalue()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "[bold]12[/bold]" in text
    assert "sudo mount -t resctrl resctrl /sys/fs/resctrl" in text


def test_json_keys_are_stable(server):
    first = json.loads(as_json(list(rows(server).values())))[0]
    assert list(first) == ["name", "state", "finding", "cost", "remedy", "change"]


@pytest.mark.parametrize(("given", "state"), [(0, "no"), (1, "partly"), (2, "partly")])
def test_groups_that_root_gave_are_permission_too(server, given, state):
    mount(server, groups=[f"castmates-{os.geteuid()}-{number}" for number in range(given)] + ["castmates-99999-0"])
    (server / "sys/fs/resctrl/schemata").unlink()
    for number in range(given):
        for file in ("tasks", "schemata"):
            sysfs.write(server / f"sys/fs/resctrl/castmates-{os.geteuid()}-{number}" / file, "")
    check = rows(server)["resctrl permission"]
    assert check.state == state
    assert "sudo castmates doctor --grant" in check.remedy
    assert ("--default-group" in check.remedy) == (given == 2)


def test_packages_are_read_from_the_catalogue_through_like(tmp_path):
    (tmp_path / "one.yaml").write_text(
        "workloads:\n"
        "  a: {command: no-such-program -x, package: such}\n"
        "  b: {like: a, command: sh -c true}\n"  # its program is there, and nothing is known of its package
        "  c: {like: a}\n"
        "  d: {command: sh}\n"
        "  e: {command: [sh, -c, 'exec $(no-such-compiler -print-prog-name=cc1)'], package: no-such-compiler}\n"
    )
    assert written.missing_packages(tmp_path) == {"such": ["a", "b", "c"], "no-such-compiler": ["e"]}
    assert written.missing_packages(tmp_path / "nowhere") is None
    (tmp_path / "one.yaml").write_text("workloads: [a]\n")
    assert written.missing_packages(tmp_path) is None


def test_without_a_compiler_losses_are_measured_because_one_is_fetched(server):
    assert rows(server, **TRIED | {"compiler": None})["C compiler"].state == "partly"
    measuring = summary(server, **TRIED | {"compiler": None}).verdicts[0]
    assert (measuring.state, measuring.why) == ("yes", "ready")


GROWS = {"at": "t", "curve": [{"cores": n, "read": n * 1e9, "triad": n * 1e9} for n in (1, 2)]}

PLUGIN = {"what": "metric 'm' of the package p 1", "broken": ""}
BROKEN = {"what": "figure 'f' of the package q 2", "broken": "It cannot be loaded."}
LACKING = {"xz-utils": ["xz"], "x264": ["x264", "x264-slow"]}
NO_COUNTING = dict.fromkeys(PERF["scopes"], "Access is limited.")


def counting(scopes, frozen=True):
    return {"perf": PERF | {"scopes": scopes}, "freezing": {"works": frozen, "why": None}}


def counted(**events):
    return {"counts": {"at": "today", "events": {name.replace("_", "-"): how for name, how in events.items()}}}


def traces(level):
    lacking = [] if level == "everything" else ["this takes more rights"]
    return {"traces": {"level": level, "families": [], "lacking": lacking}}


@pytest.mark.parametrize(
    ("name", "facts", "state", "words"),
    [
        ("perf_event_paranoid", {"perf_event_paranoid": -1, "root": False}, "yes", []),
        ("perf_event_paranoid", {"perf_event_paranoid": 2, "root": False}, "partly", []),
        ("perf_event_paranoid", {"perf_event_paranoid": 4, "root": False}, "no", []),
        ("perf_event_paranoid", {"perf_event_paranoid": 4, "root": True}, "yes", []),
        ("perf_event_paranoid", {"perf_event_paranoid": None, "root": False}, "no", []),
        ("counting members", counting(PERF["scopes"]), "yes", ["by control group (and by thread and cpu)"]),
        ("counting members", counting(PERF["scopes"], frozen=False), "yes", ["by thread, inherited", "not by control"]),
        ("counting members", counting(PERF["scopes"] | {"cgroup": "Limited. So."}), "yes", ["control group: Limited"]),
        ("counting members", counting(NO_COUNTING), "no", ["Access is limited"]),
        ("counting members", counting(None), "unknown", ["not tried"]),
        ("masks verified", {"rdt_trial": None}, "unknown", ["unverified", "castmates doctor --verify-rdt"]),
        ("masks verified", {}, "yes", ["masks: works, isolation: isolated"]),
        ("masks verified", {"rdt_trial": trial(isolation="not isolated")}, "no", ["unverified", "Of isolation."]),
        ("throttles verified", {"rdt_trial": None}, "unknown", ["castmates doctor --verify-rdt"]),
        ("throttles verified", {"rdt_trial": trial(throttles="some steps are equal")}, "yes", ["some steps are equal"]),
        ("throttles verified", {"rdt_trial": trial(throttles="no effect")}, "no", ["Of throttles."]),
        ("counts verified", {"counts": None}, "unknown", ["not tried"]),
        ("counts verified", counted(page_faults="verified", cycles="verified"), "yes", ["page-faults, cycles verif"]),
        ("counts verified", counted(page_faults="verified", cycles="not checked"), "partly", ["1 others could not be"]),
        ("counts verified", counted(cycles="not checked"), "partly", ["nothing verified"]),
        ("counts verified", counted(page_faults="verified", cycles="wrong"), "no", ["wrong: cycles"]),
        ("packages", {"packages": {}}, "yes", []),
        ("packages", {"packages": None}, "unknown", ["in a project's folder"]),
        ("packages", {"packages": LACKING}, "partly", ["3 workloads", "x264-slow", "apt-get install xz-utils x264"]),
        ("plug-ins", {}, "yes", ["none installed"]),
        ("plug-ins", {"plugins": [PLUGIN]}, "yes", ["metric 'm' of the package p 1"]),
        ("plug-ins", {"plugins": [PLUGIN, BROKEN]}, "no", ["Sweeps stop at it: It cannot be loaded."]),
        ("memory", {}, "yes", ["68.7 GB"]),
        ("memory", {"memory_limit": 4 << 30}, "yes", ["4.29 GB of 68.7 GB"]),
        ("memory", {"memory_limit": 1 << 27}, "partly", ["0.134 GB of 68.7 GB"]),
        ("memory", {"memory_bytes": None}, "unknown", ["does not show it"]),
        ("huge pages", {"transparent_hugepages": "always"}, "yes", ["also where it does not ask"]),
        ("huge pages", {"transparent_hugepages": "madvise"}, "yes", ["where it asks"]),
        ("huge pages", {"transparent_hugepages": "never"}, "no", ["is never", "echo madvise"]),
        ("huge pages", {"transparent_hugepages": None}, "unknown", ["does not show"]),
        ("memory peak", {"memory_peak": GROWS}, "partly", []),
        ("memory peak", {"memory_peak": TRIED["memory_peak"]}, "yes", []),
        ("memory peak", {"memory_peak": None}, "unknown", ["castmates doctor --memory-peak"]),
        ("tracing", traces("everything"), "yes", []),
        ("tracing", traces("switches and system calls"), "partly", ["--grant --tracing", "This takes more rights."]),
        ("tracing", traces("switches only"), "partly", ["sudo castmates doctor --grant"]),
        ("tracing", traces("nothing") | {"perf": None}, "partly", ["See perf.", "operations"]),
        ("uprobes", {"no_calls": ""}, "yes", []),
        ("uprobes", {"no_calls": NO_UPROBES}, "no", ["CONFIG_UPROBE_EVENTS"]),
        ("uprobes", {"no_calls": "for this user"}, "no", ["for this user", "as root"]),
        ("uprobes", {"no_calls": None}, "unknown", []),
        ("C compiler", {"compiler": None}, "partly", []),
    ],
)
def test_what_is_known_of_a_thing_decides_its_row(server, name, facts, state, words):
    mount(server)
    check = rows(server, **TRIED | facts)[name]
    said = " ".join((check.finding, check.cost, check.remedy, check.change))
    assert (check.state, [each for each in words if each not in said]) == (state, [])


def test_groups_and_the_default_groups_masks_are_all_a_user_needs():
    resctrl = {"writable": False, "delegated": ["castmates-1000-0", "castmates-1000-1"], "default_group": True}
    assert permission({"resctrl": resctrl}).state == "yes"
