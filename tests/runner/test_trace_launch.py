"""A trace launch of real processes: one timeline, true to what the members did, and nothing left running."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castmates.errors import CastmatesError
from castmates.linux.processes import numbers
from castmates.machine.quirks import latency_source
from castmates.pipeline.trace_launch import trace_launch
from castmates.results.columns.trace import PATHS_FILE, TRACE_TABLES
from castmates.runner.tracing import record, recorders, rounds
from castmates.study.model import Workload
from castmates.study.plan_text import task_for
from castmates.study.spec import Design, Tracing
from castmates.timeline import tables
from castmates.timeline.model import Timeline
from castmates.workloads import environments, inputs
from tests.needs import why_not
from tests.runner.stage import PYTHON, counter, plan_of, python_job
from tests.waiting import wait_for

SECONDS = 0.6
# Sleeps and wakes in a step, maps new memory, and counts its steps where a test can read them.
JOB = """
import mmap, os, subprocess, sys, time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.phases import phase
write = "import os, time; open(f'/tmp/perf-{os.getpid()}.map', 'w').close(); time.sleep(999)"
child = subprocess.Popen([sys.executable, "-c", write])  # names the code that it compiles
open(os.path.dirname(sys.argv[1]) + "/child", "w").write(str(child.pid))
beat = Writer.from_environment()
beat.ready()
step = 0
with open(sys.argv[1], "w", buffering=1) as steps:
    while True:
        with phase("work", step=step):
            memory = mmap.mmap(-1, 4096 * 20)
            memory.write(bytes(4096 * 20))
            memory.close()
        with phase("rest"):
            time.sleep(0.002)
        beat.beat()
        step += 1
        print(time.monotonic_ns(), file=steps)
"""
needs_two = pytest.mark.needs("two-cpus")


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(rounds, "USUAL", 0.3)


def traced(
    folder: Path, cache: Path, job: Workload | None = None, owner: int | None = None, **keys: object
) -> Timeline:
    job = job or python_job("", command=[PYTHON, "-c", JOB, str(folder / "steps")])
    plan = plan_of({"lead": job, "beside": counter()}, ["beside"], cache)
    launch = plan.launches[0]
    mix, scenes = launch.cohort.mixes[0], [each for each in launch.cohort.scenes if each.kind in ("alone", "corun")]
    cohort = launch.cohort.model_copy(update={"mixes": (mix,), "scenes": tuple(scenes)})
    events = ("scheduler", "syscalls", "faults", "interrupts")
    tracing = Tracing(**{"seconds": SECONDS, "rounds": 1, "steps": 0, "events": events, "keep": 10**8} | keys)
    changes = {"rounds": 0, "spare_rounds": 0, "monitor": 20.0, "tracing": tracing.model_dump()}
    design = Design.model_validate(launch.design.model_dump() | changes)
    task = task_for(launch.model_copy(update={"cohort": cohort, "design": design}), plan)
    trace_launch(task, folder / "trace", cache, owner)
    return tables.read(folder / "trace")


@needs_two
@pytest.mark.quiet
def test_everything_is_on_one_timeline_as_the_members_did_it(tmp_path, cache):
    before = set(numbers())
    timeline = traced(tmp_path, cache, counts=(("cpu-clock", 1_000_000), ("no-such-event", 7)))
    about, run = timeline.about, timeline.tracks.loc[timeline.tracks["kind"] == "run", "track"].item()
    assert (about["status"], about["reason"]) == ("measured", "")
    assert [scene["scene"] for scene in sorted(about["scenes"], key=lambda one: one["kind"])] == [
        "alone",
        "corun:lead+beside",
    ]
    for name, contract in TRACE_TABLES.items():
        assert list(timeline.table(name).columns) == list(contract)
    members = {member["pid"] for member in about["members"].values()}
    assert not any(pid in numbers() for pid in members)
    assert not [pid for pid in set(numbers()) - before if _program(pid) == "perf"], "perf ends with its launch"

    _heartbeats_are_the_members_own(timeline, tmp_path / "steps")
    own = timeline.intervals[timeline.intervals["track"] == run]
    for scene in about["scenes"]:
        inside = own[(own["name"] == scene["scene"]) & (own["value"] == scene["round"])]
        spans = {kind: list(zip(part["t0_ns"], part["t1_ns"], strict=True)) for kind, part in inside.groupby("kind")}
        assert spans["recording"] == [(scene["t0_ns"], scene["t1_ns"])]
        assert spans["usual"][0][1] <= scene["t0_ns"] < scene["t1_ns"] <= spans["usual"][1][0]
        assert scene["t1_ns"] - scene["t0_ns"] >= SECONDS * 1e9
        rates = scene["rates"]["lead@0"]
        assert rates["on"] > 0
        assert rates["off"] > 0
        assert scene["slower"] == pytest.approx(rates["off"] / rates["on"])
    phases = timeline.intervals[timeline.intervals["kind"] == "phase"]
    assert set(phases["name"]) == {"work", "rest"}
    _all_that_is_counted_lies_in_the_recordings(timeline)
    assert not list(Path("/tmp").glob(f"perf-{(tmp_path / 'child').read_text()}.map")), "of a worker too"
    names = set(timeline.samples["name"])
    assert {"cpu_share", "memory_bytes"} <= names
    assert list((tmp_path / "trace" / "raw").rglob("perf.data")) if _recorded(about) else True
    clocks = about["clocks"]
    assert {clock["at"] for clock in clocks} == {"begin", "end"}
    if _recorded(about):
        _perf_shows_the_lead(timeline)
        counts = timeline.instants[timeline.instants["kind"] == "count"]
        assert set(zip(counts["name"], counts["value"], strict=True)) == {("cpu-clock", 1e6)}
        assert any("perf cannot sample no-such-event" in words for words in about["missing"])
        _paths_are_of_steps(timeline, pd.read_parquet(tmp_path / "trace" / PATHS_FILE))


def _paths_are_of_steps(timeline: Timeline, paths: pd.DataFrame) -> None:
    """By who woke whom, as the lead has no graph: whole steps, from a heartbeat to the next."""
    assert timeline.about["graph"]["reason"]
    assert [each["reason"] for each in timeline.about["paths"]["recordings"]] == ["", ""]
    lead = timeline.tracks.loc[(timeline.tracks["kind"] == "member") & (timeline.tracks["name"] == "lead@0"), "track"]
    beats = timeline.instants[(timeline.instants["kind"] == "heartbeat") & timeline.instants["track"].isin(lead)]
    took = beats.set_index("value")["t_ns"].diff()
    found = paths.groupby("step")["ns"].sum()
    assert len(found) > 20
    assert (found == took[found.index]).all()
    assert "running" in set(paths["state"])
    assert paths.loc[paths["state"].isin(["blocked", "unknown"]), "reason"].str.startswith("sleep").any()


def _all_that_is_counted_lies_in_the_recordings(timeline: Timeline) -> None:
    """Perf is on all the time, rates are of the recording alone, and a counter is no sum that grows."""
    scenes = [(scene["t0_ns"], scene["t1_ns"]) for scene in timeline.about["scenes"]]
    samples = timeline.samples
    at = samples["t_ns"].to_numpy()
    slack = 50e6  # a look that was begun is ended
    assert np.any([(at >= begin - slack) & (at <= end + slack) for begin, end in scenes], axis=0).all()
    clock = samples[samples["name"] == "task-clock"]
    assert set(clock["unit"]) <= {"CPUs"}
    assert (clock["value"] < 1.5).all(), "each member has one CPU"
    if not _recorded(timeline.about):
        return
    whole = timeline.intervals[timeline.intervals["kind"] == "whole"]
    if not any(source["lost"] for source in timeline.about["sources"] if source["name"] == "perf"):
        assert sorted(zip(whole["t0_ns"], whole["t1_ns"], strict=True)) == sorted(scenes)
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    for begin, end in zip(states["t0_ns"], states["t1_ns"], strict=True):
        assert any(first <= begin and end <= last for first, last in scenes)


def _heartbeats_are_the_members_own(timeline: Timeline, steps: Path) -> None:
    """Each step that the job wrote down while its scene ran is a heartbeat, no other is, and none is there twice."""
    wrote = np.array([int(line) for line in steps.read_text().split()])
    lead = timeline.tracks.loc[(timeline.tracks["kind"] == "member") & (timeline.tracks["name"] == "lead@0"), "track"]
    beats = timeline.instants[(timeline.instants["kind"] == "heartbeat") & (timeline.instants["track"] == lead.item())]
    assert beats["value"].is_unique
    for scene in timeline.about["scenes"]:

        def within(times: np.ndarray, scene: dict = scene) -> int:
            return int(((times >= scene["t0_ns"]) & (times <= scene["t1_ns"])).sum())

        count = within(beats["t_ns"].to_numpy())
        assert count > 10
        assert abs(count - within(wrote)) <= 1, "a step that ends at an edge is written down a moment later"


def _perf_shows_the_lead(timeline: Timeline) -> None:
    """It sleeps in nanosleep and faults pages in, on its own thread; states neither overlap nor are anybody else's."""
    tracks, about = timeline.tracks, timeline.about
    leads = tracks[(tracks["kind"] == "thread") & (tracks["member"] == "lead@0")]
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    busiest = states[states["track"].isin(leads["track"])]["track"].mode().item()  # who keeps it sleeps all the while
    states = states[states["track"] == busiest]
    assert {"running", "blocked"} <= set(states["name"])
    assert (states["t0_ns"].to_numpy()[1:] >= states["t1_ns"].to_numpy()[:-1]).all()
    threads = tracks[tracks["kind"] == "thread"]
    assert set(threads["member"]) <= {"lead@0", "beside@1"}
    recorded = sum(
        source["events"].get("page-faults", 0) + source["events"].get("page-faults:u", 0)
        for scene in about["scenes"]
        for source in scene["sources"]
        if source["name"] == "perf"
    )
    faults = (timeline.instants["kind"] == "fault").sum()
    assert recorded == 0 or faults > 0


def _recorded(about: dict) -> bool:
    return not why_not("tracing") and not any(
        source["reason"] for source in about["sources"] if source["name"] == "perf"
    )


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@needs_two
@pytest.mark.needs("tracing")
def test_a_recording_ends_at_its_size_and_a_recorder_that_fails_stops_nobody(tmp_path, cache, monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError("no such format")

    monkeypatch.setattr(recorders.stacks, "arguments", lambda *_, **__: ["perf", "record", "--no-such-option"])
    monkeypatch.setattr(record, "write_all", broken)
    begin = time.monotonic()
    timeline = traced(
        tmp_path,
        cache,
        seconds=20.0,
        most=200_000,
        buffer=2**16,
        keep=0,
        events=("scheduler", "syscalls", "faults", "stacks", "latencies"),
    )
    assert time.monotonic() - begin < 30, "both recordings end at their size"
    for scene in timeline.about["scenes"]:
        sources = {source["name"]: source for source in scene["sources"]}
        assert "trace.most" in sources["perf"]["ended early"]
        assert sources["perf"]["events"]
        assert "no-such-option" in sources["stacks"]["reason"]
        assert latency_source(Path("/")) or "samples no loads" in sources["latencies"]["reason"]
    assert any("no-such-option" in words for words in timeline.about["missing"])
    written = json.loads((tmp_path / "trace" / "trace.json").read_text())
    assert written["status"] == "measured"
    assert any("no such format" in words for words in written["missing"]), "an exporter's fault loses no launch"
    assert not (tmp_path / "trace" / "raw").exists(), "none of the raw files was to be kept"
    whole = timeline.intervals[timeline.intervals["kind"] == "whole"]
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    for scene in timeline.about["scenes"]:
        perf = next(source for source in scene["sources"] if source["name"] == "perf")
        mine = whole[(whole["t0_ns"] >= scene["t0_ns"]) & (whole["t1_ns"] <= scene["t1_ns"])]
        assert 0 < mine["t1_ns"].max() <= perf["last_ns"], "no state is claimed behind what perf recorded"
        inside = states[(states["t1_ns"] > scene["t0_ns"]) & (states["t0_ns"] < scene["t1_ns"])]
        assert inside["t1_ns"].max() <= mine["t1_ns"].max()


@needs_two
def test_a_launch_that_fails_or_is_ended_leaves_the_trace_that_is_there(tmp_path, cache):
    folder = tmp_path / "trace"
    folder.mkdir()
    good = '{"status": "measured"}'
    (folder / "trace.json").write_text(good)
    fails = python_job("import sys; sys.exit('it never gets ready')")
    with pytest.raises(CastmatesError, match=r"the launch failed \(.*is kept"):
        traced(tmp_path, cache, job=fails)
    # Its owner is gone by the time that its worker has left a map for perf.
    owner = subprocess.Popen(["sh", "-c", "while ! test -s $0; do sleep 0.05; done", str(tmp_path / "child")])
    reap = threading.Thread(target=owner.wait)
    reap.start()
    with pytest.raises(SystemExit) as ended:
        traced(tmp_path, cache, owner=owner.pid)
    reap.join()
    assert ended.value.code == 130
    assert not Path(f"/tmp/perf-{(tmp_path / 'child').read_text()}.map").exists()
    assert (folder / "trace.json").read_text() == good
    assert not (tmp_path / ".new").exists()
    with pytest.raises(CastmatesError, match=r"may take 4000000\.0 GB on disk, and .* are free"):
        traced(tmp_path, cache, most=2 * 10**15, events=("scheduler",))


READING = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from castmates.runner.tracing import record
def read(*_):
    Path("reading").touch()
    time.sleep(600)
record._write = read
record.write(SimpleNamespace(pids={int(sys.argv[1])}, cast=[]), Path("trace"))
"""


def test_maps_for_perf_go_also_if_the_launch_is_killed_while_it_reads_stacks(tmp_path):
    pid = 2**22 + os.getpid()  # of no process
    left = Path(f"/tmp/perf-{pid}.map")
    left.touch()
    words = [sys.executable, "-c", READING, str(pid)]
    one = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    try:
        wait_for((tmp_path / "reading").exists, "stacks are being read")
        one.kill()
        one.wait()
        wait_for(lambda: not left.exists(), "the map is removed")
    finally:
        one.kill()
        left.unlink(missing_ok=True)


@needs_two
@pytest.mark.tensorflow
@pytest.mark.needs("tracing")
def test_operations_of_tensorflow_lie_on_the_threads_that_perf_saw_running(tmp_path, cache):
    here = environments.environment_of(environments.build("tfmodels", Path("envs"), cache))
    data = inputs.build("tfmodels-clicks-tiny", Path("envs"), cache)
    python = shutil.which("python", path=here["PATH"])
    words = ["--model", "dlrm", "--batch", "64", "--threads", "1", "--data", str(data / "*.tsv")]
    job = counter(variables=here | {"TMPDIR": str(tmp_path)}, ready_within=120.0)
    job = job.model_copy(update={"command": [python, "-m", "castmates.workloads.tfmodels", *words]})
    timeline = traced(tmp_path, cache, job=job, seconds=2.0, steps=4, events=("scheduler", "syscalls"))
    intervals = timeline.intervals
    for scene in timeline.about["scenes"]:
        profile = next(source for source in scene["sources"] if source["name"] == "profile")
        assert profile["reason"] == ""
        checked = profile["alignment checked"]
        assert checked["steps"] == checked["with_heartbeat"] == checked["in_order"] == 4
        assert profile["threads not found"] == 0
        inside = (intervals["t0_ns"] >= scene["t0_ns"]) & (intervals["t1_ns"] <= scene["t1_ns"])
        products = intervals[inside & (intervals["kind"] == "operation") & intervals["detail"].str.contains("MatMul")]
        assert len(products) > 20
        wants_to_run = intervals["name"].isin(["running", "runnable", "preempted"])
        states = intervals[(intervals["kind"] == "state") & wants_to_run]
        known, whole = 0, 0
        for track, own in products.groupby("track"):
            there = states[states["track"] == track]
            for begin, end in zip(own["t0_ns"], own["t1_ns"], strict=True):
                overlap = np.minimum(there["t1_ns"], end) - np.maximum(there["t0_ns"], begin)
                known, whole = known + overlap.clip(lower=0).sum(), whole + end - begin
        assert known > 0.8 * whole, "a product of matrices waits for nothing but a CPU: its thread is the right one"
    paths, scenes = timeline.about["paths"], timeline.about["scenes"]
    assert (paths["steps"], paths["reason"]) == (4 * len(scenes), "")
    assert [(each["scene"], each["steps"], each["reason"]) for each in paths["recordings"]] == [
        (scene["scene"], 4, "") for scene in scenes
    ]
    (file,) = tmp_path.rglob(PATHS_FILE)
    along = pd.read_parquet(file)
    steps = intervals[(intervals["kind"] == "step") & (intervals["source"] == "profile")].set_index("value")
    assert along.groupby("step")["ns"].sum().to_dict() == (steps["t1_ns"] - steps["t0_ns"]).to_dict()
    known = along[along["state"] != "unknown"].groupby("part")["ns"].sum()
    assert known.sum() > 0.8 * along["ns"].sum()
    assert "operations" in known.index
