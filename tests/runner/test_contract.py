"""The check of workloads: what misbehaves is found out, and what the catalogue has here keeps its promises."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates import cli, project
from castmates.contract import alone
from castmates.contract.check import Places, check, check_one
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.study.model import Workload
from castmates.workloads import environments
from tests.runner.stage import PYTHON

ROOT = Path(__file__).parents[2]
SECONDS, SHORT = 0.3, 0.1
PLACES = Places(Path("envs"), cache_folder())

BEATER = """
import os, signal, sys, time
from castmates.workloads.heartbeat import Writer
beat = Writer.from_environment()
{before}
beat.ready()
while True:
    sum(range(20000))
    beat.beat()
"""


@pytest.fixture(scope="module", autouse=True)
def native(compiler):
    """The kernels and keepers."""
    environments.build(environments.NATIVE, PLACES.envs, PLACES.cache)


@pytest.fixture(scope="module")
def warden(native):
    with alone.guarded() as one:
        yield one


def beater(before: str = "", **keys: object) -> Workload:
    command = [PYTHON, "-c", BEATER.format(before=before)]
    return Workload.model_validate({"command": command, "progress": "heartbeat", "unit": "step", **keys})


def broken(warden, workload: Workload) -> dict[str, str]:
    """The promises that it breaks, each with the sentence."""
    found = check_one("bad", workload, PLACES, SECONDS, warden)
    assert found.verdict == "broken"
    return {one.promise: one.broken for one in found.findings if not one.kept}


def test_a_good_workload_keeps_every_promise(warden):
    found = check_one("good", beater(), PLACES, SECONDS, warden)
    assert (found.verdict, found.why) == ("kept", "")
    assert [one.promise for one in found.findings] == [
        *("ready", "progress", "pinned", "threads", "memory", "freezes", "ends", "restarts")
    ]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_what_is_off_its_cpus_too_large_and_deaf_is_found_out(warden):
    before = "os.sched_setaffinity(0, {0}); memory = bytearray(64 << 20); signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    found = broken(warden, beater(before, memory="20 MB"))
    assert set(found) == {"pinned", "memory", "ends"}


def test_what_finds_its_own_result_wrong_is_found_out(warden):
    assert set(broken(warden, beater("signal.signal(signal.SIGTERM, lambda *_: (beat.failed(), os._exit(3)))"))) == {
        "ends"
    }


def test_what_cannot_be_launched_twice_is_found_out(warden, tmp_path):
    found = broken(warden, beater(f"os.mkdir({str(tmp_path / 'once')!r})"))
    assert list(found) == ["restarts"]
    assert "FileExistsError" in found["restarts"]


def test_what_makes_no_steps_is_found_out(warden, monkeypatch):
    monkeypatch.setattr(alone, "PATIENCE_S", 0.5)
    found = broken(warden, beater("beat.ready(); time.sleep(1000)"))
    assert "progress" in found


def test_what_never_gets_ready_is_found_out(warden):
    found = broken(warden, beater("time.sleep(1000)", ready_within=0.5))
    assert list(found) == ["ready"]
    assert "was not ready within 0.5 s" in found["ready"]


def test_too_many_busy_threads_are_found_out(warden):
    found = check_one("bad", beater("for _ in range(12): os.fork() or [0 for _ in iter(int, 1)]"), PLACES, 1.0, warden)
    assert "threads are busy on 1 CPUs" in found.why


def test_what_is_not_here_is_said(warden):
    missing = Workload.model_validate({"command": "no-such-program", "package": "such"})
    found = check_one("far", missing, PLACES, SECONDS, warden)
    assert (found.verdict, found.why) == ("not here", "there is no program 'no-such-program'; apt-get install such")
    wide = check_one("wide", beater(cores=4096), PLACES, SECONDS, warden)
    assert (wide.verdict, wide.why.partition(",")[0]) == ("not here", "it wants 4096 CPUs")


def test_the_command_line_checks_and_lists(tmp_path):
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    (catalogue / "own.yaml").write_text(
        "workloads:\n"
        "  lines: {command: [sh, -c, 'while :; do echo step; sleep 0.01; done'], progress: output, step_line: step}\n"
        "  gone: {command: no-such-program, package: such}\n"
    )
    found = said("--json", catalogue=catalogue)
    assert [(row["workload"], row["installed"]) for row in json.loads(found)] == [("lines", True), ("gone", False)]
    assert "gone: apt-get install such" in said("list", catalogue=catalogue)
    found = said("check", "--installed", "--seconds", "0.2", "--json", catalogue=catalogue)
    assert {one["workload"]: one["verdict"] for one in json.loads(found)} == {"lines": "kept", "gone": "not here"}
    assert "apt-get install such" in said("check", "gone", status=1, catalogue=catalogue)
    with pytest.raises(CastmatesError, match="did you mean 'lines'"):
        said("check", "line", catalogue=catalogue)
    with pytest.raises(CastmatesError, match="say which workloads to check"):
        said("check", catalogue=catalogue)


def said(*words: str, catalogue: Path, status: int = 0) -> str:
    """What the command writes to standard output."""
    where = ["--catalogue", str(catalogue)]
    done = CliRunner().invoke(cli.app, ["workloads", *words, *where], catch_exceptions=False)
    assert done.exit_code == status
    return done.stdout


# The catalogue that is shipped --------------------------------------------------------------------------------------

CATALOGUE = project.read_catalogue(ROOT / "config/workloads")
PYTHONS = {name for name, one in CATALOGUE.items() if one.environment not in (None, environments.NATIVE)}
TINY = {"dlrm-train-tiny", "resnet50-train-tiny"}


def kept(names: set[str]) -> None:
    chosen = {name: one for name, one in CATALOGUE.items() if name in names}
    results = check(chosen, PLACES, SHORT, build=False, tell=lambda _: None)
    assert any(one.verdict != "not here" for one in results)
    # On a machine that others keep busy a promise of time may be broken once.
    again = {one.workload: chosen[one.workload] for one in results if one.verdict == "broken"}
    results = check(again, PLACES, SECONDS, build=False, tell=lambda _: None)
    assert {one.workload: one.why for one in results if one.verdict == "broken"} == {}


@pytest.mark.slow
def test_every_workload_that_is_here_keeps_its_promises():
    kept(set(CATALOGUE) - PYTHONS)


@pytest.mark.tensorflow
@pytest.mark.slow
def test_tiny_jobs_keep_their_promises():
    environments.build("tfmodels", PLACES.envs, PLACES.cache)
    kept(TINY)
