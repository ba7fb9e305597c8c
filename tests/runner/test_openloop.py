"""The load generator of open-loop services: its schedule, what it records and verifies, and what freezing does to it.

Nothing here depends on how fast the machine is: what is asserted are the times at which requests were due, which no
server and no scheduler can move, and the order of what happened.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from castmates.runner.processes.freezer import SignalFreezer, choose_freezer
from castmates.runner.processes.launch import Start, clean_environment, launch
from castmates.runner.processes.member_log import RequestLog
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.stage import Stage
from castmates.study.model import Workload
from castmates.workloads.heartbeat import State
from castmates.workloads.identity import SERVERS
from tests.runner.stage import counter, measured, plan_of, tables
from tests.runner.standin import StandIn
from tests.waiting import wait_for

MASK = (1 << 64) - 1


@pytest.fixture
def server(tmp_path):
    standing = StandIn(tmp_path / "s")
    yield standing
    standing.close()


def command(kernels, tmp_path, load, *more):
    words = [str(kernels / "openloop"), "--server", "memcached", "--connect", str(tmp_path / "s")]
    return [*words, "--load", str(load), "--keys", "50", "--value", "20", "--wait", "sleep", *more]


def run(words, tmp_path, **variables):
    """Run it to its end; the records, and the process."""
    log = RequestLog.create(tmp_path / "requests")
    environment = os.environ | log.variables | variables
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    log.read()
    return log.records().astype(np.int64), done


def gaps(seed, load, count):
    """The times between arrivals that a seed stands for, in ns: xorshift64*, and a logarithm."""
    found = []
    for _ in range(count):
        seed ^= seed >> 12
        seed ^= seed << 25 & MASK
        seed ^= seed >> 27
        fraction = ((seed * 2685821657736338717 & MASK) >> 11) + 1
        found.append(-1e9 / load * np.log(fraction / 2**53))
    return np.array(found)


def test_arrivals_are_poissons_and_what_is_due_in_a_stall_waits(server, kernels, tmp_path):
    """No coordinated omission: the schedule goes on, and latencies count from it."""
    words = command(kernels, tmp_path, 2000, "--seed", "7", "--units", "3000", "--connections", "4")
    log = RequestLog.create(tmp_path / "requests")
    with subprocess.Popen(words, env=os.environ | log.variables, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: log._file.head > 1000 or process.poll() is not None, "requests are answered")
        server.stall(0.3)
        _, said = process.communicate(timeout=300)
    log.read()
    records = log.records().astype(np.int64)
    assert process.returncode == 0, said
    due, answered = np.sort(records[:, 0]), records[:, 2]
    # What was answered in the last look goes beyond --units, and what was due by then and not sent is given up.
    assert len(due) >= 3000
    expected = np.cumsum(gaps(7, 2000, len(due)))
    assert np.abs((due - due[0]) - (expected - expected[0])).max() <= 2  # ns: no answer has any influence
    assert stats.kstest(np.diff(due), "expon", args=(0, 1e9 / 2000)).pvalue > 0.01
    ((begin, end),) = server.stalled
    inside = records[(records[:, 0] > begin) & (records[:, 0] < end)]
    # Four connections hold as many requests at a time: all others that were due in the stall waited for its end.
    held = inside[(inside[:, 2] > 0) & (inside[:, 2] < end)]
    assert len(inside) > 300
    assert len(held) == 0 or (held[:, 1] < begin + 50_000_000).all()
    waited = inside[inside[:, 2] >= end]
    assert len(waited) > 0.9 * len(inside)
    assert (waited[:, 2] - waited[:, 0] >= end - waited[:, 0]).all()
    assert (answered[answered > 0] >= records[answered > 0, 1]).all()


def test_a_wrong_answer_is_found(server, kernels, tmp_path):
    server.lies = True
    _, done = run(command(kernels, tmp_path, 1000, "--units", "10"), tmp_path)
    assert done.returncode == 3
    assert "the result is wrong: memcached gave another answer" in done.stderr


def test_a_server_that_goes_away_is_a_failure(kernels, tmp_path):
    _, done = run(command(kernels, tmp_path, 1000, "--units", "10"), tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"openloop: cannot connect to {tmp_path}/s: No such file")


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_not_installed_is_named_with_its_package(name, kernels, tmp_path):
    if name == "nginx" and Path("/usr/sbin/nginx").exists():
        pytest.skip("it is found where Debian puts it, whatever the PATH is")
    words = [str(kernels / "openloop"), "--server", name, "--load", "10"]
    _, done = run(words, tmp_path, PATH=str(tmp_path), TMPDIR=str(tmp_path))
    package = {"redis": "redis-server"}.get(name, name)
    assert done.returncode == 1
    assert done.stderr.endswith(f"install it (apt-get install {package})\n")
    assert not list(tmp_path.glob("service-*"))


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--server", "memcached"], "without --load"),
        (["--load", "5"], "without --server"),
        (["--server", "mysql", "--load", "5"], "--server must be one of memcached, redis, nginx"),
        (["--server", "redis", "--load", "0"], "--load must be a number of requests a second"),
        (["--server", "redis", "--load", "x"], "--load must be a number of requests a second"),
        (["--server", "nginx", "--load", "5", "--writes", "5%"], "nginx only reads"),
        (["--server", "redis", "--load", "5", "--writes", "101%"], "--writes must be a share from 0% to 100%"),
    ],
)
def test_bad_arguments_are_a_sentence(words, what, kernels):
    done = subprocess.run([kernels / "openloop", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert what in done.stderr


@pytest.mark.needs("servers")
@pytest.mark.parametrize("name", SERVERS)
def test_each_server_gives_right_answers_and_leaves_nothing(name, kernels, tmp_path):
    words = [str(kernels / "openloop"), "--server", name, "--load", "2000", "--keys", "300", "--units", "1000"]
    records, done = run([*words, *(["--writes", "20%"] if name != "nginx" else [])], tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "requests answered, " in done.stderr
    assert (records[:, 2] > 0).sum() >= 1000
    assert not list(tmp_path.glob("service-*"))
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def staged(server, kernels, tmp_path, load, freezer):
    """A stage with a service on it, which stands still."""
    environment = clean_environment({}, tuple(os.sched_getaffinity(0)), tmp_path, {})
    start = Start(
        name="service@0",
        cpus=tuple(os.sched_getaffinity(0)),
        nodes=(),
        command=command(kernels, tmp_path, load, "--seed", "3"),
        environment=environment,
        ready_within=60,
        requests=True,
    )
    logs = tmp_path / "logs"
    logs.mkdir()
    running = launch(start, tmp_path, logs, freezer.adopt)
    wait_for(lambda: running.reader.state is State.READY, "the service is ready")
    freezer.freeze(running.name)
    return Stage([running], freezer, Hardware.none(), lambda: None), running


@pytest.mark.quiet  # a member that got no CPU just before it was frozen takes a part of that time for its own
@pytest.mark.needs("servers")
@pytest.mark.parametrize("kind", ["signals", "whatever there is"])
def test_time_for_which_it_is_frozen_is_no_latency_and_makes_no_flood(kind, server, kernels, tmp_path):
    """Frozen 40 times at arbitrary moments: no request was due then, and none of before is sent afterwards."""
    freezer = SignalFreezer() if kind == "signals" else choose_freezer("test-openloop")
    try:
        stage, running = staged(server, kernels, tmp_path, 20_000, freezer)
        pick, frozen = np.random.default_rng(1), []
        stage.exchange([running.name])
        for _ in range(40):
            time.sleep(pick.uniform(0.005, 0.03))
            begin = stage.now_ns()
            stage.exchange([])
            stood = stage.now_ns()
            time.sleep(pick.uniform(0.005, 0.03))
            thawing = stage.now_ns()
            stage.exchange([running.name])
            frozen.append((begin, stood, thawing))
            running.read_requests()
        stage.dismiss()
        records = running.requests.records().astype(np.int64)
    finally:
        freezer.close()
    due, sent = records[:, 0], records[:, 1]
    assert len(records) > 1000
    assert running.requests.lost == 0
    inside = [((due > stood) & (due < thawing)).any() for _, stood, thawing in frozen]
    assert sum(inside) <= 1  # nothing is due while it stands still, unless it had no CPU just before
    for begin, _, thawing in frozen:
        assert (sent[due <= begin] > thawing).sum() <= 1  # one may be frozen amid its sending


@pytest.mark.needs("servers")
def test_time_for_which_it_has_no_cpu_is_latency(server, kernels, tmp_path):
    """Stopped behind the runner's back, as one is who gets no CPU: what was due meanwhile is sent, and is late."""
    freezer = SignalFreezer()
    try:
        stage, running = staged(server, kernels, tmp_path, 1000, freezer)
        stage.exchange([running.name])
        wait_for(lambda: running.requests._file.head > 50, "requests are answered")
        os.kill(running.pid, signal.SIGSTOP)
        wait_for(lambda: "T" in stat_of(running.pid), "it is stopped")
        begin = stage.now_ns()
        time.sleep(0.2)
        end = stage.now_ns()
        os.kill(running.pid, signal.SIGCONT)
        head = running.requests._file.head
        wait_for(lambda: running.requests._file.head > head + 250, "what was due is answered")
        stage.dismiss()
        records = running.requests.records().astype(np.int64)
    finally:
        freezer.close()
    inside = records[(records[:, 0] > begin) & (records[:, 0] < end)]
    assert abs(len(inside) - 1000 * (end - begin) / 1e9) < 6 * np.sqrt(1000 * (end - begin) / 1e9)
    assert (inside[:, 2] >= end).all()


def stat_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.needs("two-cpus", "servers")
def test_a_launch_has_the_latency_of_requests_in_its_windows(server, cache, kernels, tmp_path):
    words = command(kernels, tmp_path, 500)
    service = Workload(command=words, progress="heartbeat", unit="request", requests=True)
    plan = plan_of({"lead": service, "counter": counter()}, ["counter"], cache, window=0.3, rounds=2)
    folder = tmp_path / "launch"
    measured(plan, folder, cache)
    windows, steps = tables(folder, "windows", "steps")
    lead = windows[(windows["role"] == "lead") & windows["valid"]]
    others = windows[windows["role"] != "lead"]
    assert len(lead) >= 4
    assert others[["requests", "offered", "p99_s"]].isna().all(axis=None)
    due = lead["requests"].sum()
    seconds = (lead["requests"] / lead["offered"]).sum()
    assert abs(due - 500 * seconds) < 6 * np.sqrt(500 * seconds) + 500 * 0.1 * len(lead)  # it may begin late
    assert (lead["rate"] * lead["p99_s"]).to_numpy() == pytest.approx(np.ones(len(lead)))
    assert (lead["p50_s"] <= lead["p99_s"]).all()
    assert steps["member"].str.startswith("lead@").any()
