"""Whole sweeps by way of a real Slurm: nodes go, jobs are killed, and the tables are those of a sweep without it.

On the nodes planning fails (cluster.py): where a job plans, none of these sweeps ends well.
"""

import itertools
import json
import os
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from castmates.machine.facts import cpu_model
from castmates.results.columns.registry import written_by
from castmates.study.cpus import format_cpu_list
from tests.slurm.cluster import CPUS, NODES, Cluster
from tests.slurm.conftest import OnCluster, on
from tests.workflow.conftest import MODELLED
from tests.workflow.sweeps import Sweeps

PATIENCE = float(os.environ.get("CASTMATES_PATIENCE", "900"))
TABLES = tuple(written_by("analyse"))
OF_THE_LAUNCH = ["host", "started", "total_seconds"]  # columns of `launches`: where and when it ran
# The study of the workflow's tests, with several cohorts, so that launches are there for two nodes.
MEASURED = {"antagonists": ["stream", "compute"], "budget": {"launches": 3, "rounds": 2, "window": 0.1, "settle": 0.02}}
OTHER = "Another Processor 9000"


@pytest.fixture
def disturbed(cluster: Cluster):
    """The nodes, which are all there again afterwards."""
    yield cluster
    if "drain" in cluster.states()["n1"]:
        cluster.call("scontrol", "update", "nodename=n1", "state=resume")


def test_tables_are_the_same_though_a_node_is_drained_and_jobs_are_killed(disturbed, tmp_path, cache):
    local = Sweeps.make(tmp_path / "local", cache)
    local.write_study(MODELLED)
    local.sweep()
    project = on(disturbed, Sweeps.make(tmp_path / "project", cache))
    project.write_study(MODELLED)
    running = project.start()
    try:
        drained, killed, again = disturb(disturbed)
        assert running.wait(PATIENCE) == 0, project.said()
    finally:
        end(running)
    assert disturbed.about(killed)["JobState"] in ("FAILED", "CANCELLED")
    assert disturbed.about(again)["Restarts"] == "1"
    later = [job["NodeList"] for job in jobs_of(disturbed, project) if span(job)[0] > drained]
    assert set(later) == {"n2"}
    for table in TABLES:
        one, other = (pd.read_parquet(each.results / f"tables/{table}.parquet") for each in (local, project))
        if table == "launches":
            one, other = (each.drop(columns=OF_THE_LAUNCH) for each in (one, other))
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert (project.results / "report/index.html").is_file()
    assert not list(project.results.rglob("*@n?"))  # files that were begun and not finished


def test_launches_have_a_node_to_themselves_and_there_are_as_many_at_a_time_as_nodes(cluster, tmp_path, cache):
    project = on(cluster, Sweeps.make(tmp_path / "project", cache))
    project.write_study(MEASURED)
    running = project.start("--until", "analyse")
    try:
        assert running.wait(PATIENCE) == 0, project.said()
    finally:
        end(running)
    jobs = [job for job in jobs_of(cluster, project) if "measure_launch" in job["Comment"]]
    assert {job["NumCPUs"] for job in jobs} == {str(CPUS)}  # though one was asked for
    spans = {node: [span(job) for job in jobs if job["NodeList"] == node] for node in ("n1", "n2")}
    assert not any(overlap(*pair) for node in spans.values() for pair in itertools.combinations(node, 2))
    assert any(overlap(*pair) for pair in itertools.product(*spans.values()))
    records = [project.record(path) for path in project.launches()]
    assert {record["host"] for record in records} == {"n1", "n2"}
    assert not any("Waiting for the machine" in log.read_text() for log, _ in project.logs())
    assert {record["cpu_model"] for record in records} == {cpu_model(Path("/"))}
    machine = json.loads((project.results / "machine.json").read_text())
    (other,) = {"n1", "n2"} - {machine["hostname"]}
    assert json.loads((project.results / f"machines/{other}.json").read_text())["hostname"] == other
    assert machine["hostname"] in ("n1", "n2")  # and not the machine that planned
    assert machine["topology"]["allowed"] == format_cpu_list(os.sched_getaffinity(0))  # the step in the job has all


def test_a_study_of_two_classes_has_rows_for_each_and_a_node_of_the_other_class_refuses(disturbed, tmp_path, cache):
    """One class is found by a feature; launches of the other one try what comes, and then stay away from there."""
    project = on(disturbed, Sweeps.make(tmp_path / "project", cache))
    with disturbed.another_processor("n2", OTHER):
        for node in NODES:
            project.on_node(node, "castmates", "doctor", "--capture", f"{node}.json.gz")
        classes = {"plain": "n1.json.gz", "newer": {"capture": "n2.json.gz", "slurm": {"constraint": NODES["n2"]}}}
        project.write_study(MEASURED | {"antagonists": ["stream"], "machines": classes})
        disturbed.call("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
        running = project.start()
        try:
            refused = project.results / ".jobs/refused/plain/n2"
            disturbed.wait_for(lambda: refused.exists() or running.poll() is not None, "a refusal", PATIENCE)
            assert running.poll() is None, project.said()
            disturbed.call("scontrol", "update", "nodename=n1", "state=resume")
            assert running.wait(PATIENCE) == 0, project.said()
        finally:
            end(running)
    ours = cpu_model(Path("/"))
    sentence = f"and n2 is not one: its processor is {OTHER}, and not {ours}; let it run on a node of that class"
    assert sentence in (project.folder / "sweep.log").read_text()
    windows, effects, stamps = (
        pd.read_parquet(project.results / f"tables/{table}.parquet") for table in ("windows", "effects", "stamps")
    )
    of_class = {(row.machine, row.host, row.processor) for row in windows.itertuples()}
    assert of_class == {("plain", "n1", ours), ("newer", "n2", OTHER)}
    assert set(effects["machine"]) == {"plain", "newer"}
    (stamp,) = stamps[stamps["stamp"] == "machines"].itertuples()
    assert (stamp.word, stamp.good) == ("2 classes of nodes", True)
    assert "nodes of newer and plain" in stamp.sentence
    assert (project.results / "report/index.html").is_file()


def disturb(cluster: Cluster) -> tuple[datetime, str, str]:
    """Drain n1, kill a job while it plays its launch, and put another one back into the queue; give time and jobs."""
    (killed,) = of_launches(cluster, 1)
    cluster.call("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
    drained = datetime.now() + timedelta(seconds=1)
    cluster.call("scancel", "--signal=KILL", "--full", killed)
    again = next(iter(of_launches(cluster, 1, but={killed})))
    cluster.call("scontrol", "requeue", again)
    cluster.wait_for(lambda: cluster.about(again)["JobState"] == "PENDING", "the job in the queue again")
    cluster.call("scontrol", "update", f"jobid={again}", "starttime=now")  # Slurm would wait for two minutes
    return drained, killed, again


def of_launches(cluster: Cluster, count: int, but: set[str] = frozenset()) -> list[str]:
    """So many jobs that play launches now, as soon as there are as many."""
    found: list[str] = []

    def are_there() -> bool:
        jobs = set(cluster.jobs("RUNNING")) - set(but)
        found[:] = sorted(job for job in jobs if "_launch" in cluster.about(job).get("Comment", ""))
        return len(found) >= count

    cluster.wait_for(are_there, f"{count} running launches", PATIENCE)
    return found[:count]


def jobs_of(cluster: Cluster, project: OnCluster) -> list[dict[str, str]]:
    """What Slurm knows of the jobs of this project."""
    numbers = cluster.jobs("COMPLETED", "FAILED", "CANCELLED", "RUNNING", "PENDING")
    every = [cluster.about(number) for number in numbers]
    return [job for job in every if job["WorkDir"] == str(project.folder)]


def span(job: dict[str, str]) -> tuple[datetime, datetime]:
    begin, end = (datetime.fromisoformat(job[key]) for key in ("StartTime", "EndTime"))
    return begin, end - timedelta(seconds=1)  # Slurm counts whole seconds


def overlap(one: tuple[datetime, datetime], other: tuple[datetime, datetime]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def end(running: "subprocess.Popen[str]") -> None:
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGINT)
        running.wait(60)
