"""The check of workloads: what misbehaves is found out, and what the catalogue has here keeps its promises."""

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates import project
from castmates.cli import main
from castmates.errors import CastmatesError
from castmates.files import cache_folder
from castmates.runner.cleanup import restore
from castmates.runner.cleanup.warden import guarded
from castmates.study.model import Workload
from castmates.trials.workloads import promises
from castmates.trials.workloads.check import Places, Result, check, check_one
from castmates.workloads import environments
from castmates.workloads.inputs import lack_of
from tests.runner.stage import PYTHON

ROOT = Path(__file__).parents[2]
SECONDS, SHORT = 0.3, 0.1
PLACES = Places(Path("envs"), cache_folder())
AS_IT_IS = replace(PLACES, build=False)

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
    with guarded() as one:
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


@pytest.mark.needs("two-cpus")
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
    monkeypatch.setattr(promises, "PATIENCE_S", 0.5)
    found = broken(warden, beater("beat.ready(); time.sleep(1000)"))
    assert "progress" in found


def test_what_never_gets_ready_is_found_out(warden):
    found = broken(warden, beater("time.sleep(1000)", ready_within=0.5))
    assert list(found) == ["ready"]
    assert "was not ready within 0.5 s" in found["ready"]


def test_too_many_busy_threads_are_found_out(warden):
    before = "for _ in range(24): os.fork() or [0 for _ in iter(int, 1)]"
    found = check_one("bad", beater(before, memory="4 GB"), PLACES, 2.0, warden)
    assert [one.promise for one in found.findings if not one.kept] == ["threads"]
    assert "threads are busy on 1 CPUs" in found.why


def test_many_short_runs_are_not_many_threads(warden):
    runs = Workload.model_validate({"command": [PYTHON, "-c", "sum(range(5_000_000))"]})
    found = check_one("runs", runs, PLACES, 2.0, warden)
    assert (found.verdict, found.why) == ("kept", "")


def test_what_ends_at_once_is_broken_and_no_error_of_the_check(warden):
    found = broken(warden, Workload.model_validate({"command": "true", "progress": "heartbeat", "unit": "step"}))
    assert list(found) == ["ready"]


def test_without_a_warden_the_workload_is_not_blamed():
    with guarded() as one:
        workload = beater(f"beat.ready(); time.sleep(0.2); os.kill({one._process.pid}, 9)")
        for _ in range(2):  # it dies while the workload runs; then it is dead from the beginning
            with pytest.raises(CastmatesError, match="the warden has ended"):
                check_one("good", workload, PLACES, 2.0, one)


def test_what_the_check_cannot_have_is_no_fault_of_the_workload(warden, tmp_path, monkeypatch):
    with pytest.raises(CastmatesError, match="there is no data set 'none'"):
        check_one("good", beater(inputs="none"), PLACES, SECONDS, warden)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(CastmatesError, match=r"no scratch folder can be made in .* \(No such file or directory\)"):
        check_one("good", beater(), PLACES, SECONDS, warden)


def test_nothing_is_checked_beside_what_a_killed_run_left_alive(tmp_path, monkeypatch):
    (tmp_path / "cgroup.procs").write_text("12\n7\n")
    monkeypatch.setattr(restore, "heal", lambda: restore.Restored(left=["one is left"], occupied=[tmp_path]))
    told = []
    with pytest.raises(CastmatesError, match=r"still holds processes that cannot be killed \(7, 12\)"):
        check({}, AS_IT_IS, SECONDS, say=told.append)
    assert told[-1:] == ["one is left"]  # other tests may have the machine first


def test_what_is_not_here_is_said(warden):
    missing = Workload.model_validate({"command": "no-such-program", "package": "such"})
    found = check_one("far", missing, PLACES, SECONDS, warden)
    assert (found.verdict, found.why) == ("not here", "there is no program 'no-such-program'; apt-get install such")
    wide = check_one("wide", beater(cores=4096), PLACES, SECONDS, warden)
    assert (wide.verdict, wide.why.partition(",")[0]) == ("not here", "it wants 4096 CPUs")


def test_a_program_that_a_built_environment_lacks_is_not_here(warden, tmp_path):
    (tmp_path / "own.lock").write_text("")
    (tmp_path / "own.yaml").write_text("dependencies: ['python >=3.11,<4']\n")
    places = Places(tmp_path, tmp_path / "cache")
    native = environments.location(environments.NATIVE, PLACES.envs, PLACES.cache)
    link = environments.location(environments.NATIVE, tmp_path, places.cache)
    link.parent.mkdir(parents=True)
    link.symlink_to(native)
    workload = Workload.model_validate({"command": "no-such-program", "environment": "own"})
    left = check_one("far", workload, replace(places, build=False), SECONDS, warden)
    assert (left.verdict, left.why.partition(";")[0]) == ("not here", "the environment 'own' is not built")
    built = check_one("far", workload, places, SECONDS, warden)
    assert (built.verdict, built.why.partition(";")[0]) == ("not here", "there is no program 'no-such-program'")


def test_the_command_line_checks_and_lists(tmp_path):
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    (catalogue / "own.yaml").write_text(
        "workloads:\n"
        "  lines: {command: [sh, -c, 'while :; do echo step; sleep 0.01; done'], progress: output, step_line: step}\n"
        "  gone: {command: no-such-program, package: such}\n"
    )
    found = said("--format", "json", catalogue=catalogue)
    assert [(row["workload"], row["installed"]) for row in json.loads(found)] == [("lines", True), ("gone", False)]
    listed = said(catalogue=catalogue)
    assert "  gone   gone   not here\n" in listed
    assert "sudo apt-get install such\n" in listed
    found = said("check", "--installed", "--seconds", "0.2", "--format", "json", catalogue=catalogue)
    assert {one["workload"]: one["verdict"] for one in json.loads(found)} == {"lines": "kept", "gone": "not here"}
    assert "apt-get install such" in said("check", "gone", status=1, catalogue=catalogue)
    with pytest.raises(CastmatesError, match="did you mean 'lines'"):
        said("check", "line", catalogue=catalogue)
    with pytest.raises(CastmatesError, match="choose the workloads to check"):
        said("check", catalogue=catalogue)


def said(*words: str, catalogue: Path, status: int = 0) -> str:
    """What the command writes to standard output."""
    where = ["--catalogue", str(catalogue)]
    done = CliRunner().invoke(main.app, ["workloads", *words, *where], catch_exceptions=False)
    assert done.exit_code == status
    return done.stdout


# The catalogue that is shipped --------------------------------------------------------------------------------------

CATALOGUE = project.read_catalogue(ROOT / "config/workloads")
PYTHONS = {name for name, one in CATALOGUE.items() if one.environment not in (None, environments.NATIVE)}
OF_TIME = {"ready", "progress", "freezes", "ends"}


def kept(names: set[str]) -> None:
    chosen = {name: one for name, one in CATALOGUE.items() if name in names}
    results = check(chosen, AS_IT_IS, SHORT, say=lambda _: None)
    fit = {name for name, one in chosen.items() if one.environment and one.cores <= len(os.sched_getaffinity(0))}
    assert {one.workload: one.why for one in results if one.verdict == "not here" and one.workload in fit} == {}
    failed = [one for one in results if one.verdict == "broken"]
    assert {one.workload: one.why for one in failed if not of_time(one)} == {}
    again = {one.workload: chosen[one.workload] for one in failed}
    results = check(again, AS_IT_IS, SECONDS, say=lambda _: None)
    assert {one.workload: one.why for one in results if one.verdict == "broken"} == {}


def of_time(one: Result) -> bool:
    """Whether only promises of time are broken, which may happen once on a machine that others keep busy."""
    failed = [finding for finding in one.findings if not finding.kept]
    return all(finding.promise in OF_TIME and finding.seen != "wrong" for finding in failed)


def test_a_workload_of_each_kind_keeps_its_promises():
    kinds = {}
    for name in sorted(set(CATALOGUE) - PYTHONS):
        one = CATALOGUE[name]
        if lack_of(one, PLACES.envs, PLACES.cache) is None:
            kinds.setdefault((one.environment, one.progress), name)
    assert (environments.NATIVE, "heartbeat") in kinds
    assert (None, "runs") in kinds
    kept(set(kinds.values()))


@pytest.mark.nightly
def test_every_workload_that_is_here_keeps_its_promises():
    kept(set(CATALOGUE) - PYTHONS)


@pytest.mark.tensorflow
@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(name for name in PYTHONS if name.endswith("-tiny")))
def test_tiny_jobs_keep_their_promises(name):
    environments.build(CATALOGUE[name].environment, PLACES.envs, PLACES.cache)
    kept({name})
