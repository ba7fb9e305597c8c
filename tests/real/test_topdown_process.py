"""Real perfs between two edges: they count what they should, and none outlives a failure."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from castmates.counters.topdown import process
from castmates.counters.topdown.perf_reading import parse
from castmates.counters.topdown.process import PerfProcess, last_words
from tests.processes import has_ended
from tests.real.busy import busy, children, used_s
from tests.waiting import PATIENCE, wait_for

PERF = shutil.which("perf")
EVENTS = ["-j", "-e", "task-clock,page-faults"]
real = pytest.mark.needs("perf", "events")
RUNNER = """
import sys, time
from castmates.counters.topdown.process import PerfProcess
perf = PerfProcess(sys.argv[1], sys.argv[2:])
perf.order("disable")
perf.obeyed("disable", time.monotonic() + 10)
print(perf.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _long_patience(monkeypatch):
    """A perf that ends when it is asked may take its time, on a busy machine."""
    monkeypatch.setattr(process, "ENDS_WITHIN_S", PATIENCE)


@pytest.fixture
def impatient(monkeypatch):
    """For a perf that never ends by itself."""
    monkeypatch.setattr(process, "ENDS_WITHIN_S", 0.5)


def within(seconds):
    return time.monotonic() + seconds


def program(folder, text):
    file = folder / "perf"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


@real
@pytest.mark.parametrize("form", [["-j"], ["-x", ";"]])
def test_perf_counts_between_its_edges_and_not_outside(form):
    with busy() as pid:
        perf = PerfProcess(PERF, [*form, "-e", "task-clock,page-faults", "-p", str(pid)])
        perf.order("disable")
        assert perf.obeyed("disable", within(PATIENCE)), perf.why
        time.sleep(0.1)
        told = time.monotonic()
        perf.order("enable")
        assert perf.obeyed("enable", within(PATIENCE)), perf.why
        inner = used_s(pid)
        time.sleep(0.2)
        inner = used_s(pid) - inner
        perf.order("disable")
        assert perf.obeyed("disable", within(PATIENCE)), perf.why
        outer = time.monotonic() - told
        time.sleep(0.2)
        answer = perf.end()
    assert answer.why == ""
    clock = next(line for line in parse(answer.text).lines if line.event == "task-clock")
    # The scheduler's account is brought up to date at ticks, and lacks what a hypervisor stole, which perf's clock has.
    assert inner - 0.02 <= clock.value / 1000 <= outer
    assert gone(perf.pid)


@real
def test_an_event_that_is_not_there_is_told_with_perfs_own_words():
    perf = PerfProcess(PERF, ["-j", "-e", "nonsuch", "-p", str(os.getpid())])
    perf.order("disable")
    assert not perf.obeyed("disable", within(PATIENCE))
    answer = perf.end()
    assert "status 129" in answer.why
    assert "nonsuch" in answer.why


@real
def test_a_perf_that_is_killed_amid_a_window_is_told():
    with busy() as pid:
        perf = PerfProcess(PERF, [*EVENTS, "-p", str(pid)])
        perf.order("disable")
        assert perf.obeyed("disable", within(PATIENCE)), perf.why
        os.kill(perf.pid, signal.SIGKILL)
        perf.order("enable")
        assert not perf.obeyed("enable", within(PATIENCE))
        assert "status -9" in perf.end().why


@real
def test_a_perf_that_is_stopped_is_killed_and_nobody_waits_for_ever(impatient):
    with busy() as pid:
        perf = PerfProcess(PERF, [*EVENTS, "-p", str(pid)])
        perf.order("disable")
        assert perf.obeyed("disable", within(PATIENCE)), perf.why
        os.kill(perf.pid, signal.SIGSTOP)
        perf.order("enable")
        assert not perf.obeyed("enable", within(0.2))
        assert "did not acknowledge 'enable'" in perf.end().why
    assert gone(perf.pid)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("exit 3", "status 3"),
        ("echo 'Error: You may not have permission to collect stats.' >&2; exit 255", "You may not have permission"),
        ("echo garbage; exec sleep 60", "did not acknowledge"),
        ("trap '' INT; while :; do sleep 1; done", "did not acknowledge"),
    ],
)
def test_a_perf_that_does_not_obey(impatient, tmp_path, text, word):
    before = children()
    perf = PerfProcess(program(tmp_path, text), EVENTS)
    perf.order("disable")
    assert not perf.obeyed("disable", within(PATIENCE if "exit" in text else 0.3))
    assert perf.ended_by_itself == ("exit" in text)
    assert word in perf.end().why
    assert perf.end().why  # twice does no harm
    assert children() == before


def test_it_obeys_where_more_than_a_thousand_files_are_open(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"no more than {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        perf = PerfProcess(program(tmp_path, "printf 'ack\\n' >/proc/self/fd/${5##*,}\nexec sleep 60"), EVENTS)
        assert perf.hears > 1024
        assert perf.obeyed("disable", within(PATIENCE)), perf.why
        perf.end()
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("left", range(7))
def test_where_no_more_files_may_be_opened_it_says_so_and_leaks_none(tmp_path, left):
    here, (soft, hard) = Path("/proc/self/fd"), resource.getrlimit(resource.RLIMIT_NOFILE)
    file, first = program(tmp_path, "exit 3"), os.dup(0)
    os.close(first)
    tempfile.gettempdir()  # is looked for once
    before = len([*here.iterdir()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (first + left, hard))
    try:
        perf = PerfProcess(file, EVENTS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "cannot be started: Too many open files" in perf.why
    perf.order("disable")
    assert not perf.obeyed("disable", within(PATIENCE))
    assert "Too many open files" in perf.end().why
    assert len([*here.iterdir()]) == before


def test_no_perf_at_all(tmp_path):
    perf = PerfProcess(str(tmp_path / "nonsuch"), EVENTS)
    perf.order("disable")
    assert not perf.obeyed("disable", within(PATIENCE))
    assert "cannot be started: No such file or directory" in perf.end().why


@real
def test_no_perf_outlives_a_runner_that_is_killed():
    with busy() as busy_pid:
        command = [sys.executable, "-c", RUNNER, PERF, *EVENTS, "-p", str(busy_pid)]
        runner = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        with runner.stdout as said:
            pid = int(said.readline())
            assert not gone(pid)
            runner.kill()
            runner.wait()
        wait_for(lambda: has_ended(pid), "perf ends with its runner")


def test_the_last_words_are_the_complaint():
    assert last_words("Events disabled\nevent syntax error: 'nonsuch'\n   \\___ parser error\n\n Usage: perf stat") == (
        "event syntax error: 'nonsuch'"
    )
    assert last_words("") == ""
