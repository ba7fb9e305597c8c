"""Collectors on real processes that do a known amount of work when told."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from castmates.counters.nothing import NoCollector
from castmates.counters.perf_event import HARDWARE, PerfEvent
from castmates.counters.procstat import ProcStat, Tree, read_cpus, tree_difference
from castmates.errors import CastmatesError
from castmates.rdt.nothing import NoAllocator, NoMonitor

# Obeys one order a line: touch N fresh pages, sleep N times, burn N ms of CPU; where: here, in a thread, in a child.
WORKER = """
import mmap, os, sys, threading, time
def touch(n):
    with mmap.mmap(-1, n * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        area.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(n):
            area[page * 4096] = 1
def sleep(n):
    for _ in range(n):
        time.sleep(0.0001)
def burn(n):
    end = time.thread_time() + n / 1000
    while time.thread_time() < end:
        pass
print("ready", flush=True)
for line in sys.stdin:
    what, n, where = line.split()
    work = globals()[what]
    if where == "here":
        work(int(n))
    elif where == "thread":
        thread = threading.Thread(target=work, args=(int(n),))
        thread.start()
        thread.join()
    else:
        if (pid := os.fork()) == 0:
            work(int(n))
            os._exit(0)
        os.waitpid(pid, 0)
    print("done", flush=True)
"""


OWN_FILES = Path("/proc/self/fd")


class Worker:
    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def do(self, order: str) -> None:
        self.process.stdin.write(order + "\n")
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def worker():
    made = Worker()
    yield made
    made.end()


def collected(collector, active, orders=(), worker=None) -> dict:
    collector.start(active)
    for order in orders:
        worker.do(order)
    return {(sample.subject, sample.metric): sample for sample in collector.stop()}


WHY_NOT = PerfEvent.available("context_switches")
needs_perf = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@needs_perf
@pytest.mark.parametrize("where", ["here", "thread", "child"])
def test_perf_counts_threads_and_children_born_after_attaching(worker, where):
    perf = PerfEvent()
    perf.attach({"lead": worker.pid})
    quiet = collected(perf, ["lead"], ["touch 1 " + where], worker)
    busy = collected(perf, ["lead"], ["touch 3000 " + where, "sleep 300 " + where, "burn 200 " + where], worker)
    perf.close()
    assert 3000 <= busy["lead", "page_faults"].value < 4500
    assert quiet["lead", "page_faults"].value < 1000
    assert busy["lead", "context_switches"].value >= 300
    assert 0.2 <= busy["lead", "task_clock_s"].value < 2
    assert busy["lead", "major_faults"].value == 0
    assert {sample.note for sample in busy.values()} == {""}


@needs_perf
def test_perf_counts_a_thread_that_was_there_before(worker):
    script = "import threading, time\nt = threading.Thread(target=lambda: [time.sleep(.001) for _ in range(10**6)])\n"
    script += "t.daemon = True; t.start(); print('ready', flush=True); time.sleep(600)"
    member = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    member.stdout.readline()
    perf = PerfEvent(["context_switches"])
    perf.attach({"lead": member.pid})
    perf.start(["lead"])
    time.sleep(0.5)
    (sample,) = perf.stop()
    perf.close()
    member.kill()
    member.wait()
    member.stdout.close()
    assert sample.value > 50


@needs_perf
def test_perf_gives_no_value_for_who_does_not_run(worker):
    member = subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(0.2)
    perf = PerfEvent()
    perf.attach({"lead": member.pid, "gone": 2**22 + 1})
    found = collected(perf, ["lead", "gone"])
    assert all(sample.value is None for sample in found.values())
    assert found["lead", "page_faults"].note.startswith("not counted")
    assert "had ended" in found["gone", "page_faults"].note
    member.kill()
    member.wait()
    after_death = collected(perf, ["lead"])
    assert {sample.value for sample in after_death.values()} == {None}
    open_before = len(list(OWN_FILES.iterdir()))
    perf.close()
    assert len(list(OWN_FILES.iterdir())) == open_before - 5
    perf.close()


@needs_perf
def test_a_missing_hardware_counter_is_none_with_a_sentence(worker):
    perf = PerfEvent(HARDWARE)
    perf.attach({"lead": worker.pid})
    for (_, event), sample in collected(perf, ["lead"], ["burn 50 here"], worker).items():
        if reason := PerfEvent.available(event):
            assert sample.value is None
            assert sample.note == reason
        else:
            assert sample.value is None or sample.value > 0
    perf.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up being root")
def test_an_unprivileged_user_gets_no_false_zeros():
    script = """
import os
from castmates.counters.perf_event import PerfEvent
os.setgroups([]); os.setgid(65534); os.setuid(65534)
perf = PerfEvent(["context_switches", "page_faults"])
perf.attach({"me": os.getpid()}); print(perf._notes, PerfEvent.available("context_switches"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) >= 2:
        assert "perf is refused for context_switches" in done.stdout
    else:
        assert done.stdout.strip() == "{} None"


@pytest.mark.parametrize("where", ["here", "thread", "child"])
def test_procstat_counts_the_whole_tree(worker, where):
    stat = ProcStat(sorted(os.sched_getaffinity(0)))
    stat.attach({"lead": worker.pid})
    found = collected(stat, ["lead"], ["touch 3000 " + where, "sleep 300 " + where, "burn 300 " + where], worker)
    assert 3000 <= found["lead", "minor_faults"].value < 4500
    assert 0.28 <= found["lead", "cpu_s"].value < 2
    assert found["lead", "major_faults"].value == 0
    if where == "here":
        assert found["lead", "voluntary_switches"].value >= 300
    cpu = {metric: sum(s.value for (_, m), s in found.items() if m == metric) for metric in ("user_s", "steal_s")}
    assert cpu["user_s"] >= 0.1
    assert cpu["steal_s"] >= 0
    assert found["host", "pswpin"].value >= 0


def test_procstat_sees_short_work_finer_than_a_tick(worker):
    stat = ProcStat([0])
    stat.attach({"lead": worker.pid})
    found = collected(stat, ["lead"], ["burn 3 here"], worker)
    assert found["lead", "cpu_s"].value >= 0.003


def test_procstat_watches_only_the_active_and_notes_the_dead(worker):
    member = subprocess.Popen(["sleep", "600"], start_new_session=True)
    stat = ProcStat([0])
    stat.attach({"lead": worker.pid, "other": member.pid})
    assert {s for s, _ in collected(stat, ["lead"])} == {"lead", "cpu0", "host"}
    stat.start(["other"])
    member.kill()
    member.wait()
    samples = [sample for sample in stat.stop() if sample.subject == "other"]
    assert {(sample.value, sample.note) for sample in samples} == {(None, "the member has ended")}
    stat.close()
    stat.close()
    assert stat.stop() == []


def test_an_offline_cpu_has_no_value():
    stat = ProcStat([4095])
    found = collected(stat, [])
    assert found["cpu4095", "steal_s"].value is None
    assert found["cpu4095", "steal_s"].note == "this CPU is offline"
    assert read_cpus([4095]) == {}


def test_ended_threads_make_switches_a_lower_bound_and_an_unwaited_child_no_value():
    before = Tree(2.0, 10, 0, {1: (5, 5), 2: (100, 100)})
    after = Tree(1.0, 12, 0, {1: (7, 6), 3: (4, 0)})
    found = tree_difference(before, after)
    assert found["voluntary_switches"] == (6, "a lower bound: 1 threads ended in the window")
    assert found["involuntary_switches"][0] == 1
    assert found["minor_faults"] == (2, "")
    assert found["cpu_s"][0] is None


def test_nothing_is_honest():
    allocator, monitor, collector = NoAllocator(), NoMonitor(), NoCollector("no perf")
    allocator.prepare({"lead": 1})
    allocator.apply("unmanaged")
    with pytest.raises(CastmatesError, match='"half" cannot be applied'):
        allocator.apply("half")
    assert (allocator.read_back(), monitor.stop(), collector.stop()) == ({}, [], [])
    assert "no perf" in collector.about()["counters"]
    assert allocator.about()
    assert monitor.about()
