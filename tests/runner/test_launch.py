"""A launch with real processes: what it records, how it fails, and that nothing is left running."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.processes import waits_are_counted
from castmates.machine.probes import our_git_state
from castmates.pipeline.measure_launch import measure_launch
from castmates.results.columns.launch import SLICES, WINDOWS
from castmates.runner import staging
from castmates.runner.processes.freezer import SignalFreezer
from castmates.runner.processes.launch import Start, WorkloadFailed, launch
from castmates.study.model import Workload
from castmates.study.plan_text import plan_text
from castmates.study.spec import Plan
from tests.needs import lacks
from tests.runner.stage import PYTHON, counter, measured, plan_of
from tests.waiting import OF_LOCK, PATIENCE, wait_for

pytestmark = pytest.mark.needs("two-cpus")


# The script that measures a launch, where there are no control groups.
WITH_SIGNALS = """
import runpy
from castmates.runner import staging
from castmates.runner.processes.freezer import SignalFreezer
staging.choose_freezer = lambda *words: SignalFreezer()
runpy.run_path("scripts/measure_launch.py", run_name="__main__")
"""


@pytest.fixture(scope="module", params=["cgroup", "signals"])
def kind(request):
    if request.param == "cgroup" and cgroups.find_home() is None:
        lacks("cgroup", "no cgroup v2 hierarchy in which this user may make a group")
    return request.param


@pytest.fixture(scope="module")
def good(cache, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    plan = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache)
    before = os.sched_getaffinity(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "64")  # as a workflow engine would export it
        if kind == "signals":
            patch.setattr(staging, "choose_freezer", lambda *_: SignalFreezer())
        record = measured(plan, folder, cache)
    assert record["freezer"] == kind
    assert os.sched_getaffinity(0) == before
    return plan, folder, record


def test_every_scene_is_measured_in_every_round(good):
    plan, folder, record = good
    windows = pd.read_parquet(folder / "windows.parquet")
    assert record["status"] == "measured"
    assert sum(record["ledger"]["windows"].values()) == record["windows"]
    scenes = {scene.name for scene in plan.launches[0].cohort.scenes}
    assert scenes == {"alone", "alone-again", "placebo:1", "corun:lead+beside", "antagonist-alone:beside@1"}
    found = set(zip(windows["round"], windows["scene"], strict=True))
    assert found >= {(number, scene) for number in (1, 2) for scene in scenes}  # spare rounds, where others are busy
    assert (windows.loc[windows["valid"], "rate"] > 0).all()
    slices = pd.read_parquet(folder / "slices.parquet")
    assert (slices.groupby("member")["beats"].sum() > 0).all()
    assert list(slices.columns) == list(SLICES)
    assert list(windows.columns) == list(WINDOWS)


def test_windows_have_what_their_members_had_of_their_cpus(good):
    windows = pd.read_parquet(good[1] / "windows.parquet")
    known = windows[windows["valid"] & windows["cpu_s"].notna()]
    assert len(known)
    assert (known["read_s"] >= known["open_s"]).all()
    assert (known["cpu_s"] > 0).all()
    assert (known["cpu_s"] <= 1.02 * known["read_s"] + 0.02).all()  # one CPU each; ended children count in ticks
    if waits_are_counted():
        assert (known["cpu_s"] + known["waited_s"] <= 1.1 * known["read_s"] + 0.02).all()  # and one thread
    samples = pd.read_parquet(good[1] / "samples.parquet")
    read = samples[samples["source"] == "cputime"].pivot_table("value", ["window", "subject"], "metric")
    own = known.join(read.add_suffix("_read"), on=["window", "member"])
    assert own["cpu_s"].tolist() == pytest.approx(own["cpu_s_read"].tolist())


def test_the_record_names_the_commit_in_a_checkout(good):
    commit = good[2]["versions"].get("commit", "")
    assert bool(commit) is (our_git_state() is not None)
    assert not commit or commit.removesuffix("-dirty") in our_git_state()["described"]


def test_members_sit_on_their_cpus_with_pools_to_match(good):
    plan, folder, _ = good
    for member in plan.launches[0].cohort.members:
        first = (folder / "logs" / f"{member.name}.log").read_text().splitlines()[0]
        assert first == f"cpus {list(member.cpus)} threads 1"


def test_nothing_of_the_engine_leaks_into_a_workload(good):
    environment = good[2]["members"]["lead@0"]["environment"]
    assert environment["OMP_NUM_THREADS"] == "1"
    assert not any(key.startswith(("SNAKEMAKE", "PYTEST", "VIRTUAL_ENV")) for key in environment)


def test_samples_say_who_counted_what(good):
    samples = pd.read_parquet(good[1] / "samples.parquet")
    assert {"steal_s", "cpu_s", "minor_faults"} <= set(samples["metric"])
    assert good[2]["hardware"].keys() >= {"allocator", "monitor", "procstat"}


def holders(mark: str) -> Iterator[psutil.Process]:
    """Find every process that has the mark somewhere on its command line or in its environment."""
    for one in psutil.process_iter(["cmdline", "environ"]):
        words = " ".join(one.info["cmdline"] or [])
        if mark in words or any(mark in value for value in (one.info["environ"] or {}).values()):
            yield one


def nobody_left(mark: str) -> bool:
    """Wait until nobody has the mark."""
    return wait_for(lambda: not any(holders(mark)), f"nobody has {mark}", lambda: [one.info for one in holders(mark)])


def scratch_of(mark: str) -> set[Path]:
    """Find the folders that the running members of a launch were given."""
    environments = [one.info["environ"] or {} for one in holders(mark)]
    beats = {Path(one["CASTMATES_HEARTBEAT"]).parent for one in environments if "CASTMATES_HEARTBEAT" in one}
    return beats | {Path(one["TMPDIR"]) for one in environments if "TMPDIR" in one}


def test_the_search_for_those_left_finds_them(mark):
    said = ["sh", "-c", f"sleep 600; : {mark}"]  # only a part of a word
    sleepers = [subprocess.Popen(said, start_new_session=True)]
    sleepers.append(subprocess.Popen(["sleep", "600"], env=os.environ | {"TMPDIR": mark + "x"}))
    try:
        wanted = {one.pid for one in sleepers}  # the shell's child has its words too, until it is sleep
        wait_for(lambda: {one.pid for one in holders(mark)} == wanted, f"only {wanted} have {mark}")
    finally:
        os.killpg(sleepers[0].pid, signal.SIGKILL)
        sleepers[1].kill()
        for one in sleepers:
            one.wait()
    assert nobody_left(mark)


@pytest.mark.parametrize(
    ("command", "keys", "said"),
    [
        (["false"], {}, "false ended with status 1"),
        ([PYTHON, "-c", "raise SystemExit('out of memory, or so')"], {"progress": "heartbeat"}, "out of memory, or so"),
    ],
)
def test_a_workload_that_never_gets_ready_is_a_result(cache, tmp_path, mark, command, keys, said):
    bad = Workload.model_validate({"command": command, **keys})
    record = measured(plan_of({"lead": counter(), "bad": bad}, ["bad"], cache), tmp_path, cache)
    assert record["status"] == "failed"
    assert "bad@1" in record["reason"]
    assert said in record["reason"]
    assert pd.read_parquet(tmp_path / "windows.parquet").empty
    assert nobody_left(mark)


@pytest.mark.parametrize("then", ["sys.exit(1)", "signal.pause()"])
def test_a_workload_that_finds_its_own_result_wrong_is_a_result(cache, tmp_path, mark, then):
    check = f"""
import signal, sys
from castmates.workloads.heartbeat import Writer
beat = Writer.from_environment()
def verify(number, frame):
    beat.failed()
    print("the sum is 3, not 4", flush=True)
    {then}
signal.signal(signal.SIGTERM, verify)
beat.ready()
while True:
    sum(range(20000))
    beat.beat()
"""
    wrong = Workload(command=[PYTHON, "-c", check], progress="heartbeat", unit="step")
    record = measured(plan_of({"lead": counter(), "wrong": wrong}, ["wrong"], cache, rounds=1), tmp_path, cache)
    assert record["status"] == "failed"
    assert 'wrong@1 found its own result to be wrong; it last wrote "the sum is 3, not 4"' in record["reason"]
    assert pd.read_parquet(tmp_path / "windows.parquet").empty
    assert nobody_left(mark)


def start_runner(
    plan: Plan, cache: Path, folder: Path, *more: str, kind: str = "", nohup: bool = False
) -> subprocess.Popen:
    (folder / "plan.json").write_text(plan_text(plan))
    script = ["-c", WITH_SIGNALS] if kind == "signals" else ["scripts/measure_launch.py"]
    words = [plan.launches[0].path, "--plan", str(folder / "plan.json"), "--output", str(folder / "out/launch.json")]
    return subprocess.Popen(
        [*(["nohup"] if nohup else []), sys.executable, *script, *words, *more],
        env=os.environ | {"CASTMATES_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_round(runner: subprocess.Popen, number: int = 1) -> None:
    """Wait for it, also behind others who measure on this machine."""
    said = ""
    while f"round {number}:" not in said:
        assert select.select([runner.stderr], [], [], OF_LOCK)[0], f"the runner was silent for {OF_LOCK} s: {said}"
        more = os.read(runner.stderr.fileno(), 1 << 16)
        assert more, f"the runner ended before round {number}: {said}"
        said += more.decode()


def endless(cache: Path, mark: str, before: str = "") -> Plan:
    beside = Workload(command=["sh", "-c", f"sleep 0.01 # {mark}"])
    lead = counter()
    lead = lead.model_copy(update={"command": [PYTHON, "-c", before + lead.command[2], "1e9", mark]})
    return plan_of({"lead": lead, "beside": beside}, ["beside"], cache, rounds=1000)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_launch_cleanly_and_records_nothing(cache, tmp_path, mark, kind, number):
    runner = start_runner(endless(cache, mark), cache, tmp_path, kind=kind)
    wait_for_round(runner)
    scratch = scratch_of(mark)
    runner.send_signal(number)
    said = runner.communicate(timeout=PATIENCE)[1]
    assert runner.returncode == 130
    assert "ended early, nothing recorded" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out/launch.json").exists()
    assert len(scratch) == 2
    assert not any(folder.exists() for folder in scratch)
    assert nobody_left(mark)


# A child in its own session, and one whose parent has ended too: only its environment shows where it came from.
STRAY = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
ORPHAN = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {STRAY!r}])\n"


@pytest.mark.parametrize("before", ["", STRAY, ORPHAN], ids=["plain", "stray", "orphan"])
def test_sigkill_of_the_runner_leaves_nobody(cache, tmp_path, mark, kind, before):
    runner = start_runner(endless(cache, mark, before), cache, tmp_path, kind=kind)
    wait_for_round(runner)
    scratch = scratch_of(mark)
    strays = [one.pid for one in holders(mark) if one.info["cmdline"] == ["sleep", "600"]]
    runner.kill()
    runner.communicate(timeout=PATIENCE)
    assert len(scratch) == 2
    assert len(strays) == bool(before)
    assert nobody_left(mark)
    wait_for(lambda: not any(folder.exists() for folder in scratch), f"nothing is left of {scratch}")


def test_a_hangup_that_is_ignored_stays_ignored(cache, tmp_path, mark):
    runner = start_runner(endless(cache, mark), cache, tmp_path, nohup=True)
    wait_for_round(runner)
    runner.send_signal(signal.SIGHUP)
    wait_for_round(runner, 3)
    runner.send_signal(signal.SIGTERM)
    assert "SIGTERM came" in runner.communicate(timeout=PATIENCE)[1]
    assert runner.returncode == 130
    assert nobody_left(mark)


def test_a_launch_ends_when_the_one_who_asked_for_it_is_gone(cache, tmp_path, mark):
    owner = subprocess.Popen(["sleep", "600"])
    runner = start_runner(endless(cache, mark), cache, tmp_path, "--owner", str(owner.pid))
    wait_for_round(runner)
    owner.kill()
    owner.wait()
    assert "is gone" in runner.communicate(timeout=PATIENCE)[1]
    assert runner.returncode != 0
    assert nobody_left(mark)


def test_a_launch_ends_when_its_warden_is_dead(cache, tmp_path, mark):
    runner = start_runner(endless(cache, mark), cache, tmp_path)
    wait_for_round(runner)
    # What a program that runs nothing left behind, such as perf's `true`, is the runner's too, and has no command line.
    below = [one for one in psutil.Process(runner.pid).children() if one.status() != psutil.STATUS_ZOMBIE]
    (warden,) = [one for one in below if "castmates.runner.cleanup.outliving" in one.cmdline()]
    warden.kill()
    assert "castmates: the warden has ended" in runner.communicate(timeout=PATIENCE)[1]
    assert runner.returncode == 1
    assert nobody_left(mark)


@pytest.mark.parametrize(
    ("command", "cpus", "said"),
    [
        (["sleep", "1"], (4000,), "lead: .* cannot be put on CPU 4000"),
        (["./no-interpreter"], (0,), "lead: .*/no-interpreter cannot be started: Exec format error"),
    ],
)
def test_what_cannot_be_started_is_a_result(tmp_path, monkeypatch, command, cpus, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no-interpreter").write_text("echo hello\n")
    (tmp_path / "no-interpreter").chmod(0o755)
    environment = {"PATH": os.environ["PATH"]}
    start = Start("lead", cpus=cpus, nodes=(), command=command, environment=environment, ready_within=1)
    with pytest.raises(WorkloadFailed, match=said):
        launch(start, tmp_path, tmp_path, print)


def test_a_scratch_folder_that_cannot_be_made_is_a_sentence(cache, tmp_path, monkeypatch):
    plan = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(CastmatesError, match="no scratch folder can be made in TMPDIR or /tmp"):
        measure_launch(plan, plan.launches[0].path, tmp_path / "out", cache)
