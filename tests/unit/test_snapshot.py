"""A machine's archive holds all that the topology reader reads, and nothing that shows whose machine it is."""

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.machine.snapshot import read_snapshot, record
from castmates.machine.topology import read_topology
from tests.unit import machines, sysfs

SMALL = [name for name in machines.MACHINES if "xeon" not in name and "epyc" not in name and "arm" not in name]


@pytest.mark.parametrize("name", SMALL)
def test_a_recorded_machine_reads_as_it_is(name, tmp_path):
    root = sysfs.build(tmp_path / "root", machines.MACHINES[name]())
    assert machines.topology(name) == read_topology(root)


def test_equal_machines_give_equal_bytes(tmp_path):
    files = [tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"]
    for number, file in enumerate(files):
        root = sysfs.build(tmp_path / str(number), machines.hybrid())
        os.utime(root / "sys", (number, number))
        record(file, root)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_this_machine_is_recorded_without_its_name(tmp_path):
    file = tmp_path / "machine.tar.gz"
    record(file)
    assert read_snapshot(file) == read_topology()
    assert file.stat().st_size < 100_000
    with tarfile.open(file) as archive:
        entries = archive.getmembers()
        texts = [(archive.extractfile(one) or io.BytesIO()).read().decode() for one in entries]
    assert {(one.uid, one.uname, one.mtime) for one in entries} == {(0, "", 0)}
    assert not any(socket.gethostname() in text or "Name:" in text or "MemFree" in text for text in texts)


@pytest.mark.parametrize(
    "name", ["../outside", "sys/devices/system/cpu/cpu0/../../evil", "etc/passwd", "/proc/self/status"]
)
def test_an_archive_with_anything_else_is_refused(name, tmp_path):
    file = tmp_path / "strange.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(CastmatesError, match="no snapshot of a machine: it holds"):
        read_snapshot(file)


def test_what_is_no_snapshot_is_said(tmp_path):
    text = tmp_path / "text"
    text.write_text("no archive")
    empty = tmp_path / "empty.tar.gz"
    record(empty, tmp_path / "nothing")
    for file, said in ((text, "no snapshot"), (tmp_path / "none", "there is no such"), (empty, "holds no processors")):
        with pytest.raises(CastmatesError, match=said):
            read_snapshot(file)
    with pytest.raises(CastmatesError, match=r"cannot be (written|made)"):
        record(text / "below")


def test_a_study_is_placed_on_a_recorded_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    mine, theirs = tmp_path / "mine.tar.gz", tmp_path / "theirs.tar.gz"
    record(theirs, sysfs.build(tmp_path / "root", machines.memory_only()))
    assert CliRunner().invoke(app, ["doctor", "--snapshot", str(mine)]).exit_code == 0
    assert read_snapshot(mine) == read_topology()
    said = CliRunner().invoke(app, ["plan", "config/studies/quick.yaml", "--machine", str(theirs)]).output
    assert ["chase+stream", "lead", "chase", "1", "0", "0"] in [line.split() for line in said.splitlines()]
    assert ["antagonist", "stream", "2", "0", "0"] in [line.split() for line in said.splitlines()]
