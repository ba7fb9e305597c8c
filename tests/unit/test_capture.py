"""A capture holds all that is read of a machine, and nothing that shows whose it is; one from a stranger is data."""

import gzip
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.linux.msr import read_msr
from castmates.machine.capture import capture
from castmates.machine.capture.capture import opened, read_captured_topology, read_files, record
from castmates.machine.capture.contents import OF_MACHINE, OF_RESCTRL, OF_TRIALS, RESCTRL, keeper_of
from castmates.machine.facts import machine_facts
from castmates.machine.topology import read_topology
from castmates.protocols import Sample
from castmates.rdt.resctrl.capabilities import read_cache
from castmates.trials import capture as take
from castmates.trials.capture import OF_AMD, OF_INTEL, from_json, in_lines
from tests.unit import machines, sysfs
from tests.unit.rdt import trees

SMALL = [name for name in machines.MACHINES if "xeon" not in name and "epyc" not in name and "arm" not in name]
# Of these facts a capture has none: they name somebody, hold for a moment, or are found out by trying.
NAMING = {"hostname", "container_hints", "root", "cgroup", "no_cpuset_partition", "virtualisation", "git"}
FOR_A_MOMENT = {"load_average", "steal_share", "left_changed", "swap", "memory_limit", "read_at", "damon_threads"}
TRIED = {"freezing", "perf", "pqos", "compiler", "tensorflow_python", "gpus", "tracefs", "traces", "no_calls"}
REDUCED = {"kernel", "cmdline", "distribution"}
# What a machine's owner would not want to give away, put wherever a file lets a user, a maker or a program put it.
SECRETS = ("db-prod-7", "acme", "alice", "5c:e9:1e:aa:bb:cc", "CZJ8370K2X", "/home/", "10.3.4.5", "1000", "deadbeef-1")


def written(file, content, packed=True):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    file.write_bytes(gzip.compress(text) if packed else text)
    return file


def of(files):
    return {"castmates capture": 1, "files": files}


@pytest.mark.parametrize("name", SMALL)
def test_a_captured_machine_reads_as_it_is(name, tmp_path):
    root = sysfs.build(tmp_path / "root", machines.MACHINES[name]())
    assert machines.topology(name) == read_topology(root)


def test_equal_machines_give_equal_bytes(tmp_path):
    files = [tmp_path / "one.json.gz", tmp_path / "two.json.gz"]
    for number, file in enumerate(files):
        root = sysfs.build(tmp_path / str(number), machines.hybrid())
        os.utime(root / "sys", (number, number))
        record(file, root)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_this_machine_is_captured_and_replayed_to_the_same_facts(tmp_path):
    file = tmp_path / "machine.json.gz"
    record(file)
    assert read_captured_topology(file) == read_topology()
    here = machine_facts()
    with opened(file) as root:
        there = machine_facts(root)
    same = here.keys() - NAMING - FOR_A_MOMENT - TRIED - REDUCED
    assert {name: there[name] for name in same if name != "resctrl"} == {
        name: here[name] for name in same if name != "resctrl"
    }
    for name in ("kernel", "mounted", "info"):
        assert there["resctrl"][name] == here["resctrl"][name]
    assert set((there["cmdline"] or "").split()) <= set((here["cmdline"] or "").split())
    assert file.stat().st_size < 1_000_000
    text = gzip.decompress(file.read_bytes()).decode()
    assert socket.gethostname() not in json.loads(text)["files"].values()
    assert not any(word in text for word in ("Name:", "MemFree", "/home/", "root="))


@pytest.fixture
def owned(tmp_path):
    """A machine in each of whose files its owner's names stand, besides what belongs there."""
    root = sysfs.build(tmp_path / "root", sysfs.xeon())
    groups = ("acme-web", "alice", "castmates-1000-0", "mon_groups/alice-db", "acme-web/mon_groups/db-prod-7")
    caches = {name.replace("L3_02", "L3_01"): text.replace(";2=", ";1=") for name, text in trees.XEON.items()}
    files = dict(caches)
    for group in groups:
        files |= {f"{group}/{name}": caches[name] for name in ("schemata", "size")}
        files |= {f"{group}/tasks": "1000\n4711", f"{group}/cpus_list": "0-3", f"{group}/mode": "shareable"}
        files[f"{group}/mon_data/mon_L3_00/llc_occupancy"] = "65536"
    files["info/last_cmd_status"] = "Unknown or unsupported resource name 'alice'"
    files["tasks"] = "1\n1000"
    trees.record(root, files, point="/mnt/alice/resctrl", options="rw,debug,acme")
    sysfs.write(root / "proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: rdt_a cat_l3\n"
                "Serial\t\t: CZJ8370K2X\nHardware\t: acme\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\n"
                "flags\t\t: rdt_a cat_l3\nSerial\t\t: CZJ8370K2Y\n")  # fmt: skip
    sysfs.write(
        root / "proc/cmdline",
        "BOOT_IMAGE=/home/alice/vmlinuz root=UUID=deadbeef-1234 ip=10.3.4.5::10.3.4.1:255.255.255.0:db-prod-7:eth0 "
        "rdt=!l3cat,mba isolcpus=2-3 nosmt mitigations=/home/alice systemd.hostname=db-prod-7 hugepages=acme/5 "
        "user=alice",
    )
    sysfs.write(root / "proc/sys/kernel/osrelease", "6.8.0-45-acme-alice1000")
    sysfs.write(root / "proc/sys/kernel/hostname", "db-prod-7")
    sysfs.write(root / "etc/os-release", 'ID=acmeos\nVERSION_ID="7"\nPRETTY_NAME="Linux of acme"')
    sysfs.write(root / "etc/machine-id", "deadbeef-1234")
    sysfs.write(root / "proc/self/status", "Name:\talice\nUid:\t1000\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1")
    sysfs.write(root / "proc/filesystems", "nodev\tresctrl\nnodev\tacmefs")
    sysfs.write(root / "proc/meminfo", "MemTotal: 67108864 kB\nacme: 5 kB")
    sysfs.write(root / "sys/class/net/eth0/address", "5c:e9:1e:aa:bb:cc")
    sysfs.write(root / "sys/class/dmi/id/product_serial", "CZJ8370K2X")
    sysfs.write(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "/home/alice/governor")
    sysfs.write(root / "sys/bus/event_source/devices/cpu/type", "4")
    sysfs.write(root / "sys/bus/event_source/devices/cpu/events/acme", '"$HOME"/alice\\')
    return root


def test_nothing_that_shows_whose_machine_it_is_gets_out(owned, tmp_path):
    file = tmp_path / "machine.json.gz"
    found_out = {
        "castmates/perf/version": "perf version 6.8 of /home/alice",
        "castmates/perf/list": "event cycles\nevent probe of alice\n",
        "castmates/msr/cpu0/0xc90": "0x00000000000007ff\n",
        "castmates/secret": "alice",
    }
    record(file, owned, found_out)
    text = gzip.decompress(file.read_bytes()).decode()
    # `events/acme` is a name that only a kernel could give: its content is what is refused.
    assert not [secret for secret in SECRETS if secret in text.replace("events/acme", "")]
    files = read_files(file)
    assert files["proc/cmdline"] == "rdt=!l3cat,mba isolcpus=2-3 nosmt\n"
    assert files["proc/sys/kernel/osrelease"] == "6.8.0-45-x-x\n"
    assert files["proc/self/mountinfo"].split()[-4:] == ["-", "resctrl", "resctrl", "rw,debug"]
    assert files["castmates/perf/list"] == "event cycles\n"
    assert files["proc/cpuinfo"].count("processor") == 1
    groups = {name.split("/")[3] for name in files if name.startswith(RESCTRL) and "group" in name}
    assert groups == {"group1", "group2", "group3", "mon_groups"}
    assert files[f"{RESCTRL}/group1/tasks"] == ""


def test_caches_that_can_be_shared_out_are_the_same_there(owned, tmp_path):
    file = tmp_path / "machine.json.gz"
    record(file, owned)
    with opened(file) as root:
        assert read_cache(root) == read_cache(owned)
        assert machine_facts(root)["rdt_flags"] == ["rdt_a", "cat_l3"]


def test_every_text_that_is_kept_would_be_kept_again(owned, tmp_path):
    file = tmp_path / "machine.json.gz"
    record(file, owned)
    files = read_files(file)
    assert all(keeper_of(name)(text) == text for name, text in files.items())
    folder = tmp_path / "again"
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    again = tmp_path / "again.json.gz"
    record(again, folder)
    assert read_files(again) == {name: text for name, text in files.items() if not name.startswith("castmates/")}


@pytest.mark.parametrize("pattern", [*OF_MACHINE, *(f"{RESCTRL}/{one}" for one in OF_RESCTRL), *OF_TRIALS])
def test_no_file_of_a_capture_can_lie_outside_its_folder(pattern):
    assert not pattern.startswith("/")
    for name in ("..", ".", "../../..", "a/../../b", "\0", "a\n"):
        assert keeper_of(pattern.replace("#", name)) is None or "#" not in pattern
        assert keeper_of(pattern.replace("*", name)) is None or "*" not in pattern


OUTSIDE = ("../outside", "sys/devices/system/cpu/cpu0/../../evil", "etc/passwd", "/proc/self/status", "", "\0")
STRANGE = [
    *((name, "") for name in OUTSIDE),
    ("proc/cpuinfo", "processor\t: 0\nSerial\t: 1\n"),
    ("proc/cmdline", "rdt=mba init=/bin/sh\n"),
    ("proc/self/mountinfo", "30 23 0:26 / /etc rw - resctrl resctrl rw\n"),
    ("sys/devices/system/cpu/online", "0-\x1b[31m\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", f"{'9' * 5000}K\n"),
    ("sys/devices/system/cpu/cpu0/online", None),
    (f"{RESCTRL}/schemata", "L3:0=$(reboot)\n"),
    (f"{RESCTRL}/tasks", "1\n"),
    ("castmates/msr/cpu0/0xc90", "x\n"),
]


@pytest.mark.parametrize(("name", "text"), STRANGE)
def test_a_file_or_a_text_that_no_capture_has_is_refused(name, text, tmp_path):
    file = written(tmp_path / "strange.json.gz", of({name: text}))
    with pytest.raises(CastmatesError, match="no capture of a machine: it holds"), opened(file):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["strange.json.gz"]


def bomb(file):
    with gzip.open(file, "wb") as packed:
        packed.write(b'{"castmates capture": 1, "files": {"proc/cmdline": "')
        packed.write(b" " * 40_000)
    return file


def test_a_file_that_unpacks_to_more_than_it_may_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "MOST", 20_000)
    with pytest.raises(CastmatesError, match="it unpacks to more than"):
        read_files(bomb(tmp_path / "bomb.json.gz"))


def test_what_is_no_capture_is_a_sentence(tmp_path):
    empty = tmp_path / "empty.json.gz"
    record(empty, tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(b'{"castmates capture": 1}')[:-4])
    unequal = {"sys/devices/system/cpu/possible": "0\n", "sys/devices/system/cpu/cpu0/topology/core_cpus_list": "9-1\n",
               "proc/self/status": "Cpus_allowed_list:\t9-1\n"}  # fmt: skip
    for file, sentence in (
        (written(tmp_path / "text", b"no archive", packed=False), "this is no capture of a machine: Not a gzipped"),
        (written(tmp_path / "rubbish", b"no json"), "this is no capture of a machine: Expecting value"),
        (written(tmp_path / "deep", b"[" * 200_000), "this is no capture of a machine: "),
        (
            written(tmp_path / "digits", b'{"castmates capture": ' + b"9" * 5000 + b"}"),
            "this is no capture of a machine",
        ),
        (written(tmp_path / "list", []), "this is no capture of a machine in format 1"),
        (written(tmp_path / "older", {"castmates capture": 0, "files": {}}), "in format 1"),
        (written(tmp_path / "unequal", of(unequal)), "this capture contradicts itself: '9-1'"),
        (cut, "this is no capture of a machine"),
        (tmp_path / "folder", "this is no capture of a machine: Is a directory"),
        (tmp_path / "none", "there is no such file"),
        (empty, "holds no processors"),
    ):
        with pytest.raises(CastmatesError) as problem:
            read_captured_topology(file)
        assert sentence in str(problem.value)
        assert "\n" not in str(problem.value)
    with pytest.raises(CastmatesError, match=r"cannot be (written|made)"):
        record(tmp_path / "text" / "below", tmp_path / "nothing")


THERE = {  # what may stand under the name that a capture is to have
    "pipe": os.mkfifo,  # as a device: who replaced it would break the machine
    "folder": Path.mkdir,
    "link": lambda file: file.symlink_to("precious"),
    "dead link": lambda file: file.symlink_to("nothing"),
    "text": lambda file: file.write_text("precious"),
    "nothing in it": Path.touch,
    "packed": lambda file: written(file, {"precious": 1}),
}


@pytest.mark.parametrize("name", THERE)
def test_what_is_no_capture_is_never_replaced_by_one(name, tmp_path):
    (tmp_path / "precious").write_text("precious")
    file = tmp_path / "machine.json.gz"
    THERE[name](file)
    before = file.lstat()
    for write in (record, lambda file: take.capture(file, tmp_path, tmp_path, print)):  # the command looks at it first
        with pytest.raises(CastmatesError, match="is there already, and is no capture of a machine"):
            write(file)
    assert file.lstat() == before
    assert {path.name for path in tmp_path.iterdir()} == {"precious", "machine.json.gz"}


def test_an_earlier_capture_is_replaced_by_a_new_one(tmp_path):
    file, nothing = tmp_path / "machine.json.gz", tmp_path / "nothing"
    record(file, nothing, {"castmates/version": "0.1\n"})
    record(file, nothing, {"castmates/version": "0.2\n"})
    assert read_files(file) == {"castmates/version": "0.2\n"}
    older = gzip.decompress(file.read_bytes()).replace(b'"castmates capture": 1', b'"castmates capture": 0')
    written(file, older)
    record(file, nothing, {"castmates/version": "0.3\n"})
    assert read_files(file) == {"castmates/version": "0.3\n"}


NO_ROOM = """
import resource, sys
from pathlib import Path
from castmates.errors import CastmatesError
from castmates.machine.capture.capture import record
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    record(Path(sys.argv[1]))
except CastmatesError as problem:
    sys.exit(str(problem))
"""


def test_a_capture_that_does_not_fit_leaves_the_one_before(tmp_path):
    file = tmp_path / "machine.json.gz"
    record(file, tmp_path / "nothing", {"castmates/version": "0.1\n"})
    done = subprocess.run([sys.executable, "-c", NO_ROOM, file], capture_output=True, text=True, check=False)
    assert done.stderr == f"{file}: the capture cannot be written: File too large.\n"
    assert read_files(file) == {"castmates/version": "0.1\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["machine.json.gz"]


def test_a_link_that_waits_for_what_is_being_written_is_not_followed(tmp_path):
    """Whoever may make files in the folder can guess the name."""
    precious, file = tmp_path / "precious", tmp_path / "machine.json.gz"
    precious.write_text("precious")
    (tmp_path / f".machine.json.gz.{os.getpid()}").symlink_to(precious)
    record(file, tmp_path / "nothing", {"castmates/version": "0.1\n"})
    assert precious.read_text() == "precious"
    assert not file.is_symlink()
    assert read_files(file) == {"castmates/version": "0.1\n"}


def test_a_study_is_planned_for_a_captured_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    theirs = tmp_path / "theirs.json.gz"
    record(theirs, sysfs.build(tmp_path / "root", machines.memory_only()))
    said = CliRunner().invoke(app, ["plan", "config/studies/quick.yaml", "--machine", str(theirs)]).output
    assert "Next " not in said  # nothing can be measured there from here
    (there,) = [line for line in said.splitlines() if line.startswith("There ")]
    assert "castmates sweep config/studies/quick.yaml" in there
    assert ["chase+stream", "lead", "chase", "1", "0", "0"] in [line.split() for line in said.splitlines()]
    assert ["antagonist", "stream", "2", "0", "0"] in [line.split() for line in said.splitlines()]
    assert f"Onthemachinein{theirs}" in "".join(said.split())  # lines are wrapped


def test_partitions_are_planned_for_the_cache_of_a_captured_machine(owned, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    theirs = tmp_path / "theirs.json.gz"
    record(theirs, owned)
    command = ["plan", "config/studies/cat-sweep.yaml", "--machine", str(theirs)]
    done = CliRunner().invoke(app, [*command, "--format", "json"])
    assert not done.exception, done.exception
    outline = json.loads(done.output)
    assert "split-10" in outline["partitions"]  # of 11 ways, which this processor has
    assert outline["not_here"] == []
    assert outline["total"]["measured"] == 0
    refused = CliRunner().invoke(app, ["plan", "config/studies/demo.yaml", "--machine", str(theirs)])
    assert "modelled machine" in str(refused.exception)


def test_no_register_that_names_a_processor_is_read(tmp_path):
    assert not {0x4E, 0x4F, 0x17, 0xC00102F0, 0xC00102F1} & {*OF_INTEL, *OF_AMD}
    device = tmp_path / "dev/cpu/0/msr"
    device.parent.mkdir(parents=True)
    device.write_bytes(bytes(0xC90) + (0x7FF).to_bytes(8, "little"))
    assert read_msr(0, 0xC90, tmp_path) == 0x7FF
    for cpu, address in ((0, 0xC91), (1, 0xC90)):
        with pytest.raises(OSError, match=r".+"):
            read_msr(cpu, address, tmp_path)


def test_perfs_lists_are_kept_without_probes_and_descriptions():
    text = """[
    {"Unit": "cpu", "EventName": "l2_rqsts.miss", "BriefDescription": "of alice", "Encoding": "cpu/event=0x24/"},
    {"EventName": "probe:alice", "EventType": "Tracepoint event"},
    {"MetricName": "tma_info_ipc", "MetricGroup": "Ret;Summary", "MetricExpr": "inst / clk", "ScaleUnit": "1x"},
    ]"""
    assert list(from_json(text)) == [
        "event l2_rqsts.miss\tcpu\tcpu/event=0x24/",
        "metric tma_info_ipc\tRet;Summary\t1x\tinst / clk",
    ]
    assert list(from_json("no json")) == []


def test_a_known_load_stands_beside_what_the_monitors_count_of_it():
    samples = [
        Sample(t, "resctrl", "stream", "mbm_total", value, "") for t, value in enumerate((9e9, 10e9, None, 11e9))
    ]
    lines = in_lines(["stream", "--mode", "read"], 3, [(0, 0), (10**9, 9536)], samples).splitlines()
    assert lines == [
        "program stream --mode read",
        "cpu 3",
        "read_bytes_per_s 9999220736",
        "mbm_total_bytes_per_s 10000000000",
        "mbm_total_missing 1 of 4",
    ]
    text = "".join(f"{line}\n" for line in lines)
    assert keeper_of("castmates/bandwidth")(text) == text
