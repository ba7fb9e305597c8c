"""The keeper of stress-ng's stressors: what its metrics show is what is reported, and less than asked is a failure."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from castmates.linux.processes import read_process
from castmates.study.model import Catalogue
from castmates.study.reading import read_keys
from castmates.workloads import heartbeat
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "config" / "workloads" / "stress-ng.yaml"
needs_stress_ng = pytest.mark.needs("stress-ng")


@dataclass(frozen=True)
class Ended:
    status: int
    said: str
    state: heartbeat.State
    units: list[int]


@pytest.fixture
def start(tmp_path):
    heartbeat.create(tmp_path / "beats")

    def of(*words: object, path: str = os.environ["PATH"]) -> "subprocess.Popen[str]":
        variables = {"PATH": path, "TMPDIR": str(tmp_path), heartbeat.VARIABLE: str(tmp_path / "beats")}
        command = [sys.executable, "-m", "castmates.workloads.stressng", *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, env=variables, text=True, stdout=pipe, stderr=subprocess.STDOUT)

    return of


@pytest.fixture
def ended(tmp_path):
    def of(process: "subprocess.Popen[str]") -> Ended:
        said = process.communicate(timeout=PATIENCE)[0]
        with heartbeat.Reader(tmp_path / "beats") as reader:
            return Ended(process.returncode, said, reader.state, [units for _, units in reader.beats(0).records])

    return of


@needs_stress_ng
def test_bogo_ops_are_counted_as_its_metrics_say(start, ended):
    found = ended(start("--stressor", "matrix", "--ops", 30, "--units", 90, "--matrix-size", 64))
    assert (found.status, found.state) == (0, heartbeat.State.FINISHED), found.said
    assert len(found.units) <= 3
    assert found.units[-1] >= 90


@needs_stress_ng
def test_it_ends_soon_after_sigterm_and_leaves_nothing(start, ended, tmp_path):
    process = start("--stressor", "cpu", "--ops", 10**8)
    keeper = psutil.Process(process.pid)
    wait_for(lambda: any(one.name() == "stress-ng" for one in keeper.children()), "stress-ng runs")
    process.send_signal(signal.SIGTERM)
    found = ended(process)
    assert (found.status, found.state, found.units) == (0, heartbeat.State.FINISHED, [])
    assert not list(tmp_path.glob("stress-ng-*"))


@needs_stress_ng
def test_a_stressor_that_there_is_not_is_told(start, ended):
    found = ended(start("--stressor", "nosuch", "--ops", 1))
    assert (found.status, found.state) == (1, heartbeat.State.FAILED)
    assert found.said.startswith("castmates stressng: nosuch: stress-ng ended with status 1")
    assert "nosuch" in found.said.split("it wrote", 1)[1]
    assert "Traceback" not in found.said


@needs_stress_ng
def test_every_stressor_of_the_catalogue_is_one_of_stress_ngs():
    listed = subprocess.run(["stress-ng", "--stressors"], capture_output=True, text=True, check=True)
    known = (listed.stdout + listed.stderr).split()
    workloads = read_keys(Catalogue, FILE.read_text(), FILE.name).workloads
    assert {name: one.options["stressor"] for name, one in workloads.items()} == {
        name: name.removeprefix("stress-ng.") for name in workloads
    }
    assert {str(one.options["stressor"]) for one in workloads.values()} <= set(known)


def stub(folder: Path, text: str) -> str:
    """A stress-ng that does what a real one cannot be made to do."""
    folder.mkdir()
    (folder / "stress-ng").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "stress-ng").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


YAML = 'while [ "$1" != --yaml ]; do shift; done; printf "metrics:\\n  - stressor: cpu\\n    bogo-ops: {}\\n" > "$2"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (YAML.format(3), "did 3 of 10 bogo ops"),
        ("true", "did 0 of 10 bogo ops"),
        (
            "echo 'stress-ng: error: no huge pages' >&2; exit 3",
            'could not get what it needs); it wrote "stress-ng: error',
        ),
    ],
)
def test_less_than_was_asked_is_a_failure(start, ended, tmp_path, text, said):
    found = ended(start("--stressor", "cpu", "--ops", 10, path=stub(tmp_path / "bin", text)))
    assert (found.status, found.state, found.units) == (1, heartbeat.State.FAILED, [])
    assert said in found.said


def test_what_does_not_heed_sigterm_is_killed_though_it_comes_twice(start, ended, tmp_path):
    heed = f"trap 'echo > {tmp_path}/heard' TERM"
    text = f"{heed}; echo $$ > {tmp_path}/begun; mv {tmp_path}/begun {tmp_path}/pid; while :; do sleep 0.05; done"
    process = start("--stressor", "cpu", "--ops", 10, path=stub(tmp_path / "bin", text))
    wait_for((tmp_path / "pid").exists, "it runs")
    process.send_signal(signal.SIGTERM)
    wait_for((tmp_path / "heard").exists, "SIGTERM was handed on")
    process.send_signal(signal.SIGTERM)
    found = ended(process)
    assert (found.status, found.state, found.said) == (0, heartbeat.State.FINISHED, "")
    program = read_process(int((tmp_path / "pid").read_text()))
    assert program is None or not program.alive


def test_without_stress_ng_the_package_is_named(start, ended, tmp_path):
    found = ended(start("--stressor", "cpu", "--ops", 10, path=str(tmp_path)))
    assert found.status == 1
    assert "install the package stress-ng" in found.said


@pytest.mark.parametrize("ops", ["0", "-5", "many"])
def test_ops_must_be_a_number(start, ended, ops):
    found = ended(start("--stressor", "cpu", f"--ops={ops}"))
    assert found.status == 2
    assert "--ops" in found.said
