"""The machines that ship: what real parts have, planned for by name, beside bundles that others send."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from castmates import shipped
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.machine.capture.capture import MOST, captured, read_files
from castmates.machine.capture.contents import FROM_CPUID, ORIGIN
from castmates.project import load, on_captured_machine
from castmates.rdt.choose import captured_machine
from castmates.study.spec import REST
from tests.unit.rdt import from_dumps

MIB = 1 << 20
KNOWN = {  # by the makers' pages: cores of a package, packages, caches, MiB of each; and by the registers: ways, groups
    "ice-lake": ("Intel(R) Xeon(R) Platinum 8351N CPU @ 2.40GHz", 36, 1, 1, 54, 12, 14),
    "sapphire-rapids": ("Intel(R) Xeon(R) w9-3475X", 36, 1, 1, 82.5, 15, 7),
    "emerald-rapids": ("INTEL(R) XEON(R) GOLD 5520+", 28, 2, 2, 52.5, 15, 7),
    "granite-rapids": ("Intel(R) Xeon(R) 658X", 24, 1, 1, 144, 16, 7),
    "rome": ("AMD EPYC 7742 64-Core Processor", 64, 2, 32, 16, 16, 15),
    "milan": ("AMD EPYC 7763 64-Core Processor", 64, 2, 16, 32, 16, 15),
    "genoa": ("AMD EPYC 9654 96-Core Processor", 96, 2, 24, 32, 16, 15),
    "bergamo": ("AMD EPYC 9754 128-Core Emb Processor", 128, 1, 16, 16, 16, 15),
    "turin-dense": ("AMD EPYC 9965 192-Core Processor", 192, 2, 24, 32, 16, 15),
}


def test_every_machine_that_ships_is_known():
    assert {name for name, file in shipped.machines().items() if file.name.endswith(shipped.CAPTURE)} == KNOWN.keys()


@pytest.mark.parametrize("name", KNOWN)
def test_a_machine_of_a_dump_is_what_its_makers_say_and_its_file_is_fresh(name):
    processor, cores, packages, caches, size, ways, groups = KNOWN[name]
    found = captured_machine(shipped.machine(name))
    assert (found.processor, found.origin, found.has_counters) == (processor, FROM_CPUID, True)
    assert len(found.topology.cores()) == cores * packages
    assert {cpu.package for cpu in found.topology.cpus} == set(range(packages))
    assert [(each.bytes, each.ways) for each in found.topology.llcs] == [(size * MIB, ways)] * caches
    assert (found.cache.ways, found.cache.way_bytes, found.cache.groups) == (ways, size * MIB / ways, groups)
    with from_dumps.laid_out(name) as root:
        assert read_files(shipped.machine(name)) == captured(root) | {ORIGIN: f"{FROM_CPUID}\n"}


def planned(tmp_path, name, **keys):
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump({"name": "study", "leads": ["chase"], "antagonists": ["stream"], **keys}))
    return on_captured_machine(load(study), name).plan()


@pytest.mark.parametrize("name", KNOWN)
def test_a_sweep_splits_the_ways_that_the_part_has(name, tmp_path):
    plan = planned(tmp_path, name, cache={"sweeps": [{"split": "all"}]}, controls=None)
    ways, full = KNOWN[name][5], (1 << KNOWN[name][5]) - 1
    parts = [part for mix in plan.mixes for part in mix.partitions]
    masks = {part.name: {share.member.partition("@")[0]: share.ways for share in part.shares} for part in parts}
    assert masks.keys() == {f"split-{count}" for count in range(1, ways)}
    for count in range(1, ways):
        lead = (1 << count) - 1
        assert masks[f"split-{count}"] == {"chase": lead, "stream": full ^ lead, REST: full ^ lead}


def test_more_members_than_the_part_has_classes_get_no_partitions(tmp_path):
    mixes = [{"lead": "chase", "antagonists": ["stream"] * count} for count in (6, 7)]
    keys = {"leads": [], "antagonists": [], "mixes": mixes, "controls": None, "cache": {"sweeps": [{"split": [4]}]}}
    plan = planned(tmp_path, "sapphire-rapids", **keys)
    assert [len(mix.antagonists) for mix in plan.mixes if mix.partitions] == [6]
    assert any("they take 8 groups, one for each member, and this user can have 7" in str(note) for note in plan.notes)


def test_a_name_that_is_none_is_one_sentence_with_those_that_there_are(tmp_path):
    for name in ("milano", "x.json.gz", "./milan"):
        with pytest.raises(CastmatesError) as problem:
            planned(tmp_path, name)
        assert ("milan, rome" in str(problem.value)) == (name == "milano")


def test_a_plan_says_what_the_machine_was_made_of(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    command = ["plan", "config/studies/cat-sweep.yaml", "--machine"]
    said = " ".join(CliRunner().invoke(app, [*command, "genoa"]).output.split())
    assert "On the machine genoa: AMD EPYC 9654" in said
    assert "Made of real CPUID" in said
    assert "Nothing was measured on it." in said


def packed(file, **files):
    with tarfile.open(file, "w:gz") as bundle:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            bundle.addfile(member, io.BytesIO(content))
    return file


def test_a_study_is_planned_for_a_bundle(tmp_path, monkeypatch):
    capture, rest = shipped.machine("milan").read_bytes(), json.dumps({}).encode()
    there = packed(tmp_path / "bundle.tar.gz", **{"rdt.json": rest, "machine.json.gz": capture})
    assert captured_machine(there).processor == KNOWN["milan"][0]
    assert planned(tmp_path, there).cache.ways == 16
    monkeypatch.setattr(shipped, "MACHINES", tmp_path)
    assert planned(tmp_path, "bundle").cache.ways == 16


def test_what_is_no_bundle_is_one_sentence(tmp_path):
    bomb = gzip.compress(bytes(MOST + 1))
    files = {
        "there is no machine.json.gz in this bundle": {"rdt.json": b"{}", "a/b/machine.json.gz": b""},
        "it unpacks to more than 64 MiB": {"machine.json.gz": bomb},
        "Not a gzipped file": {"machine.json.gz": b"no archive"},
    }
    for words, content in files.items():
        with pytest.raises(CastmatesError, match=words):
            read_files(packed(tmp_path / "bundle.tar.gz", **content))
    with pytest.raises(CastmatesError, match="it unpacks to more than 64 MiB"):
        read_files(packed(tmp_path / "bundle.tar.gz", **{"first": bytes(MOST), "machine.json.gz": b""}))
    (tmp_path / "bundle.tar.gz").write_bytes(b"no archive")
    with pytest.raises(CastmatesError, match="this is no capture of a machine"):
        read_files(tmp_path / "bundle.tar.gz")
    (tmp_path / "bundle.tar.gz").unlink()
    with pytest.raises(CastmatesError, match="there is no such file"):
        read_files(tmp_path / "bundle.tar.gz")
