"""What a timeline shows of real threads, against what the kernel counted and what perf prints of the same file."""

import ast
import os
import select
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.dataflow.wake_path import OWN
from castmates.linux import tracing_rights
from castmates.linux.processes import switches_of, thread_stat_line, threads_of
from castmates.linux.tracing_rights import FAMILIES, arguments, rights
from castmates.runner.tracing.paths import UNWOKEN, woken
from castmates.timeline.model import Making, Registry
from castmates.timeline.perf.header import KNOWN, fields_by_event
from castmates.timeline.perf.load import add_perf
from castmates.timeline.queries.asking import ask, query_of, values_of
from castmates.timeline.queries.database import TraceFolder, database
from castmates.timeline.tables import write
from castmates.workloads.native.build import find_compiler
from tests.waiting import wait_for

# Threads that wait for each other, sleep, fault pages in, burn time and make threads that live for a moment; all of
# them block before the begin, and again at the end, until told.
PROGRAM = """
import mmap, os, sys, threading, time
lock, gate, end = threading.Lock(), threading.Barrier(5), threading.Event()
def work(what):
    gate.wait()
    for turn in range(40):
        with lock:
            what()
        time.sleep(0.0005)
    gate.wait()
    end.wait()
def touch():
    with mmap.mmap(-1, 1 << 16) as pages:
        pages[0] = pages[1 << 14] = 1
def brief():
    one = threading.Thread(target=time.sleep, args=(0.001,))
    one.start()
    one.join()
jobs = (touch, touch, brief, lambda: sum(range(20000)))
threads = [threading.Thread(target=work, args=(job,), name="worker") for job in jobs]
for thread in threads:
    thread.start()
os.write(1, b"ready\\n")
os.read(0, 1)
gate.wait()
gate.wait()
os.write(1, b"done\\n")
os.read(0, 1)
end.set()
"""


@pytest.fixture
def program():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


class Recorder:
    """A perf that records when it is told."""

    def __init__(self, file, pid, counts=()):
        (self._theirs, self._ours), (self._answers, self._answer) = os.pipe(), os.pipe()
        options = {"rights": rights(), "pids": [pid], "counts": counts}
        command = arguments(FAMILIES, file, **options, control=f"fd:{self._theirs},{self._answer}")
        self._process = subprocess.Popen(command, pass_fds=(self._theirs, self._answer), stderr=subprocess.PIPE)

    def tell(self, what):
        os.write(self._ours, f"{what}\n".encode())
        assert os.read(self._answers, 16).startswith(b"ack")
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def end(self):
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()
        for fd in (self._theirs, self._ours, self._answers, self._answer):
            os.close(fd)

    def wait(self):
        assert self._process.wait() == 0, self._process.stderr.read()


def recorded(folder, command, counts=(), meanwhile=lambda: None):
    """Record a program from the moment at which it may begin until its line that says what it did: pid, ends, line."""
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline() == b"ready\n"
        recorder = Recorder(folder / "perf.data", program.pid, counts)
        try:
            begin = recorder.tell("enable")
            os.write(program.stdin.fileno(), b".")
            meanwhile()
            while not select.select([program.stdout], [], [], 0.05)[0]:
                meanwhile()
            line = program.stdout.readline().decode()
            end = recorder.tell("disable")
            recorder.tell("stop")
            recorder.wait()
        finally:
            recorder.end()
    finally:
        program.kill()
        program.communicate()
    return program.pid, begin, end, line


def counted(pid):
    """What the kernel has counted of each thread, once all of them are blocked: switches of both kinds, page faults."""

    def look():
        states = {tid: thread_stat_line(pid, tid).rpartition(b")")[2].split() for tid in threads_of(pid)}
        if any(fields[0] != b"S" for fields in states.values()):
            return None
        return {tid: (*switches_of(pid, tid), int(fields[7]) + int(fields[9])) for tid, fields in states.items()}

    def still():
        first = look()
        return first and first == look() and first

    return wait_for(still, "all threads to block")


@pytest.mark.needs("root", "tracing", "events")
def test_states_and_counts_are_those_of_the_kernel_and_of_perf(tmp_path, program):
    assert program.stdout.readline() == b"ready\n"
    before, file = counted(program.pid), tmp_path / "perf.data"
    recorder = Recorder(file, program.pid)
    try:
        begin = recorder.tell("enable")
        os.write(program.stdin.fileno(), b".")
        assert program.stdout.readline() == b"done\n"
        after = counted(program.pid)
        end = recorder.tell("disable")
        recorder.tell("stop")
        recorder.wait()
    finally:
        recorder.end()
    making = Making()
    found = add_perf(making, Registry(making), file, {program.pid: "lead@0"}, (begin, end))
    assert found["lost"] == 0
    assert found["missing"] == {}
    timeline = making.made()
    tids = dict(zip(timeline.tracks["track"], timeline.tracks["tid"], strict=True))
    states = timeline.intervals[timeline.intervals["kind"] == "state"].assign(tid=lambda rows: rows["track"].map(tids))
    faults = timeline.instants[timeline.instants["kind"] == "fault"].assign(tid=lambda rows: rows["track"].map(tids))
    unwoken = Counter(states.loc[(states["name"] == "unknown") & (states["detail"] != ""), "tid"])
    by_name, by_tid = Counter(zip(states["tid"], states["name"], strict=True)), Counter(faults["tid"])
    for tid, then in before.items():
        voluntary, involuntary, faulted = (now - one for now, one in zip(after[tid], then, strict=True))
        # The first wait had begun before, and shows where its end does: with a wake-up by a member.
        assert by_name[tid, "blocked"] + unwoken[tid] - voluntary in ({0, 1} if tid == program.pid else {1})
        assert by_name[tid, "preempted"] == involuntary
        assert by_tid[tid] == faulted
    for _, rows in states.groupby("track"):  # a chain: none overlap, and nothing is left out
        times = list(zip(rows["t0_ns"], rows["t1_ns"], strict=True))
        assert all(one[1] == other[0] for one, other in pairwise(times))
    whole = states[states["tid"].isin(before.keys() - {program.pid})].groupby("tid")
    assert (whole["t1_ns"].max() - whole["t0_ns"].min() == end - begin).all()
    assert set(states.loc[states["name"].isin(["blocked", "unknown"]), "detail"]) >= {"futex", "sleep"}
    printed = events_of(file)
    assert {name: found["events"].get(name, 0) for name in printed} == printed
    calls = timeline.intervals[timeline.intervals["kind"] == "syscall"]
    assert len(calls) == printed["raw_syscalls:sys_enter"] + (calls["detail"] == "began before").sum()
    assert found["switches"]["switches out"] == printed["sched:sched_switch"]
    ran = states[states["name"] == "running"].eval("t1_ns - t0_ns").groupby(states["tid"]).sum()
    assert {tid: ran.get(tid, 0) for tid in before} == {tid: ran_by(file)[tid] for tid in before}


# Threads that sleep again and again, for as long as others may be on their CPUs when they are woken.
NAPS = """
import os, threading, time
gate, end = threading.Barrier(4), threading.Event()
def nap():
    gate.wait()
    for turn in range(150):
        time.sleep(0.002)
    gate.wait()
    end.wait()
for number in range(3):
    threading.Thread(target=nap).start()
os.write(1, b"ready\\n")
os.read(0, 1)
gate.wait()
gate.wait()
os.write(1, b"done\\n")
os.read(0, 1)
end.set()
"""
SWITCH_NS = 40_000  # what a switch may take that no state has


def scheduled(pid):
    """Of each thread, once all of them are blocked: nanoseconds on a CPU, and in the queue of one, as Linux counts."""
    counted(pid)
    return {
        tid: [int(word) for word in Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[:2]]
        for tid in threads_of(pid)
    }


@pytest.mark.needs("tracing", "events")
def test_wakeups_that_others_deliver_are_not_known_and_never_blocked(tmp_path):
    """The kernel's own count of waits for a CPU lies between what was seen of them, and that with what is not known."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    program = subprocess.Popen([sys.executable, "-c", NAPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline() == b"ready\n"
        before, file = scheduled(program.pid), tmp_path / "perf.data"
        recorder = Recorder(file, program.pid)
        try:
            begin = recorder.tell("enable")
            os.write(program.stdin.fileno(), b".")
            assert program.stdout.readline() == b"done\n"
            after, switches = scheduled(program.pid), counted(program.pid)
            end = recorder.tell("disable")
            recorder.tell("stop")
            recorder.wait()
        finally:
            recorder.end()
    finally:
        for process in (program, *others):
            process.kill()
            process.communicate()
    making = Making()
    assert add_perf(making, Registry(making), file, {program.pid: "lead@0"}, (begin, end))["lost"] == 0
    timeline = making.made()
    states = timeline.intervals[timeline.intervals["kind"] == "state"].eval("ns = t1_ns - t0_ns")
    tids = dict(zip(timeline.tracks["track"], timeline.tracks["tid"], strict=True))
    for track, own in states.groupby("track"):
        tid = int(tids[track])
        known = own.groupby("name", observed=True)["ns"].sum()
        of, slack = known.get, SWITCH_NS * (1 + sum(switches[tid][:2]))
        on_cpu, queued = (now - then for now, then in zip(after[tid], before[tid], strict=True))
        seen = of("runnable", 0) + of("preempted", 0)
        assert seen <= queued + slack
        assert queued <= seen + of("unknown", 0) + slack
        assert of("blocked", 0) <= end - begin - on_cpu - queued + slack
    unseen = states[(states["name"] == "unknown") & (states["detail"] != "")]
    assert set(unseen["detail"]) <= {"sleep", "futex"}


# Phases of 5 ms, in which the only thread sleeps or works, with the time that it had a CPU. One that works has it, or
# waits for it: its own clock lacks what a hypervisor took of that time, which no guest sees as a state.
PHASES = """
import os, time
def waited():
    os.lseek(stat, 0, 0)
    return int(os.read(stat, 100).split()[1])
stat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
os.write(1, b"ready\\n")
os.read(0, 1)
told = []
for turn in range(60):
    for name in ("nap", "work"):
        begin, ran, queued = time.monotonic_ns(), time.thread_time_ns(), waited()
        if name == "nap":
            time.sleep(0.005)
            took = time.thread_time_ns() - ran
        else:
            while time.thread_time_ns() - ran < 5_000_000:
                pass
            took = time.monotonic_ns() - begin - (waited() - queued)
        told.append((name, begin, time.monotonic_ns(), took))
os.write(1, (repr(told) + "\\n").encode())
os.read(0, 1)
"""


@pytest.mark.needs("tracing", "events")
def test_time_on_cpus_by_phase_is_what_the_program_says_and_readings_of_longer_times_show_nothing(tmp_path):
    readings = []
    command = [sys.executable, "-c", PHASES]
    pid, begin, end, told = recorded(tmp_path, command, meanwhile=lambda: readings.append((time.monotonic_ns(), 0.5)))
    making = Making()
    making.about = {"lead": "lead@0"}
    registry = Registry(making)
    add_perf(making, registry, tmp_path / "perf.data", {pid: "lead@0"}, (begin, end))
    names, begins, ends, ran = zip(*ast.literal_eval(told), strict=True)
    member = registry.member("lead@0")
    making.intervals(t0_ns=[begin], t1_ns=[end], track=registry.run(), kind="recording", name="alone")
    making.intervals(t0_ns=list(begins), t1_ns=list(ends), track=member, kind="phase", name=list(names))
    at, values = zip(*readings, strict=True)
    making.samples(t_ns=list(at), track=member, name="cpu_share", value=list(values), unit="CPUs", source="numbers")
    write(making.made(), tmp_path / "trace")
    query = query_of("phases")
    with database([TraceFolder("lead", tmp_path / "trace")]) as connection:
        found = ask(connection, query.sql, values_of(query, ())).read_pandas().set_index(["part", "reading"])
    for phase in ("nap", "work"):
        own = [place for place, name in enumerate(names) if name == phase]
        truth = sum(ran[place] for place in own) / sum(ends[place] - begins[place] for place in own)
        assert found.loc[(phase, "running"), "beside"] == pytest.approx(truth, abs=0.03)
        assert found.loc[(phase, "running"), "beside_readings"] == 60
        assert np.isnan(found.loc[(phase, "cpu_share"), "beside"])


# Two threads, of which one works in an operation within another one, and touches new pages in both and in none.
OPERATIONS = """
import mmap, os, resource, threading, time
told, gate = [], threading.Barrier(2)
class operation:
    def __init__(self, name, depth, pages, seconds):
        self.name, self.depth, self.memory = name, depth, mmap.mmap(-1, pages << 12)
        self.pages, self.seconds = pages, seconds
    def spent(self):
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt, time.thread_time_ns()
    def __enter__(self):
        self.since, self.begin = self.spent(), time.monotonic_ns()
        for page in range(self.pages):
            self.memory[page << 12] = 1
        while time.thread_time_ns() - self.since[1] < 1e9 * self.seconds:
            pass
    def __exit__(self, *_):
        end, now = time.monotonic_ns(), self.spent()
        spent = [one - other for one, other in zip(now, self.since)]
        told.append((threading.get_native_id(), self.name, self.depth, self.begin, end, *spent))
def lead():
    for turn in range(5):
        with operation("conv", 0, 700, 0.03):
            with operation("pool", 1, 300, 0.01):
                pass
        with operation("", 0, 50, 0.01):
            pass
def helper():
    gate.wait()
    for turn in range(5):
        with operation("gradient", 0, 200, 0.02):
            pass
threading.Thread(target=helper).start()
lead()
told.clear()
os.write(1, b"ready\\n")
os.read(0, 1)
gate.wait()
begin = time.monotonic_ns()
lead()
while threading.active_count() > 1:
    time.sleep(0.001)
os.write(1, (repr([begin, time.monotonic_ns(), told]) + "\\n").encode())
os.read(0, 1)
"""
EVERY = {"page-faults": 1, "minor-faults": 7, "cpu-clock": 500_000}


@pytest.mark.needs("tracing", "events")
def test_counts_by_operation_are_what_the_program_counts_itself_within_the_noise_of_sampling(tmp_path):
    asked = [(event, period) for event, period in EVERY.items() if event != "page-faults"]
    pid, begin, end, words = recorded(tmp_path, [sys.executable, "-c", OPERATIONS], asked)
    first, last, told = ast.literal_eval(words)
    making = Making()
    making.about = {"lead": "lead@0"}
    registry = Registry(making)
    found = add_perf(making, registry, tmp_path / "perf.data", {pid: "lead@0"}, (begin, end))
    assert (found["lost"], found["missing"]) == (0, {})
    making.intervals(t0_ns=[begin], t1_ns=[end], track=registry.run(), kind="recording", name="alone")
    making.intervals(t0_ns=[first], t1_ns=[last], track=registry.member("lead@0"), kind="step", name="step", value=[1])
    truth = Counter()
    for tid, name, depth, t0, t1, faults, ns in told:
        if name:
            own = {"kind": "operation", "name": name, "detail": name, "depth": depth}
            making.intervals(t0_ns=[t0], t1_ns=[t1], track=registry.thread(tid), **own)
            truth["page-faults", name] += faults
            truth["cpu-clock", name] += ns
        if depth:  # of what it lies in it is no part
            truth["page-faults", "conv"] -= faults
            truth["cpu-clock", "conv"] -= ns
    write(making.made(), tmp_path / "trace")
    with database([TraceFolder("lead", tmp_path / "trace")]) as connection:
        query = query_of("counts-by-operation")
        rows = ask(connection, query.sql, values_of(query, ())).read_pandas().set_index(["event", "operation"])
    assert {name for _, name in rows.index} == {"conv", "pool", "gradient", "outside of operations"}
    for name, planted in (("conv", 5 * 700), ("pool", 5 * 300), ("gradient", 5 * 200)):
        exact = rows.loc[("page-faults", name)]
        assert exact["beside"] == exact["beside_low"] == exact["beside_high"]
        assert exact["beside"] == pytest.approx(truth["page-faults", name], abs=5)
        assert planted <= exact["beside"] <= planted + 50
        for event, expected in (("minor-faults", exact["beside"]), ("cpu-clock", truth["cpu-clock", name])):
            row, several = rows.loc[(event, name)], 2.5  # standard errors beyond the 95 % of a single interval
            assert row["beside_low"] < row["beside"] < row["beside_high"]
            low, high = (
                row["beside"] + several * (row[side] - row["beside"]) for side in ("beside_low", "beside_high")
            )
            assert low < expected < high


# In each step a thread works, waits for one that works and sleeps, then for a lock that a third one holds while it
# works. Both begin once it is seen to wait, whatever else runs on the machine.
WAITS = """
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum {STEPS = 15};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int job[2], done[2], hold[2], held[2];
static atomic_int arrives;
static long now(clockid_t of) {
  struct timespec t;
  clock_gettime(of, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void work(long ms) {
  for (long t = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000; now(CLOCK_THREAD_CPUTIME_ID) < t;) ;
}
static void rest(long us) { nanosleep(&(struct timespec){0, us * 1000}, 0); }
static void until_it_waits(void) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
  for (int file; !strstr(text, ") S "); close(file)) {
    rest(100);
    file = open(path, O_RDONLY);
    text[read(file, text, sizeof text - 1)] = 0;
  }
}
static void give(int *to) { write(to[1], "x", 1); }
static void take(int *from) { char c; read(from[0], &c, 1); }
static void *worker(void *_) {
  for (;;) { take(job); until_it_waits(); work(4); rest(3000); give(done); }
}
static void *holder(void *_) {
  for (;;) {
    take(hold); pthread_mutex_lock(&lock); give(held);
    while (!arrives) ;
    until_it_waits(); work(5); arrives = 0; pthread_mutex_unlock(&lock);
  }
}
int main(void) {
  pthread_t one; long ends[STEPS + 1];
  pipe(job); pipe(done); pipe(hold); pipe(held);
  pthread_create(&one, 0, worker, 0); pthread_create(&one, 0, holder, 0);
  write(1, "ready\\n", 6); getchar();
  for (int step = 0; step <= STEPS; step++) {
    ends[step] = now(CLOCK_MONOTONIC);
    work(2); give(job); take(done);
    give(hold); take(held); arrives = 1; pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);
  }
  for (int step = 0; step <= STEPS; step++) printf("%ld ", ends[step]);
  printf("\\n"); fflush(stdout); getchar(); getchar();
}
"""


@pytest.mark.needs("root", "tracing", "events", "compiler")
def test_the_critical_path_of_a_native_program_has_the_work_and_the_sleep_that_are_planted_on_it(tmp_path):
    (tmp_path / "p.c").write_text(WAITS)
    command = [*find_compiler(), "-O1", "-w", "-pthread", str(tmp_path / "p.c"), "-o", str(tmp_path / "p")]
    subprocess.run(command, check=True)
    pid, begin, end, words = recorded(tmp_path, [str(tmp_path / "p")])
    ends = list(map(int, words.split()))
    making = Making()
    making.about = {"scenes": [{"scene": "alone", "round": 1, "t0_ns": begin, "t1_ns": end, "sources": []}]}
    registry = Registry(making)
    assert add_perf(making, registry, tmp_path / "perf.data", {pid: "lead@0"}, (begin, end))["lost"] == 0
    beats = {"t_ns": ends, "value": range(len(ends))}
    making.instants(**beats, track=registry.member("lead@0"), kind="heartbeat", name="step")
    timeline = making.made()
    rows, without = woken(timeline, "lead@0", np.array([[begin, end]]))
    assert without == {}
    table, steps = pd.DataFrame(rows), len(ends) - 1
    for step, (first, last) in enumerate(pairwise(ends), start=1):
        own = table[table["step"] == step]
        edges = [*zip(own["t0_ns"], own["t1_ns"], strict=True)]
        assert (edges[0][0], edges[-1][1]) == (first, last)
        assert all(one[1] == other[0] for one, other in pairwise(edges))
    names = table["track"].map(dict(zip(timeline.tracks["track"], timeline.tracks["tid"] - pid, strict=True)))
    ms = table.groupby([names, "state", "reason"])["ns"].sum().div(steps * 1e6)
    main, worker, holder = 0, 1, 2  # in the order of their birth
    for thread, planted in ((main, 2), (worker, 4), (holder, 5)):
        assert planted - 0.1 <= ms[thread, "running", ""] <= planted + 0.7, ms
    asleep, unseen = ms.get((worker, "blocked", "sleep"), 0), ms.get((worker, "unknown", f"sleep: {UNWOKEN}"), 0)
    assert asleep + unseen >= 3, ms
    assert unseen or asleep <= 3.7, "where others run on its CPU, perf may not see how a timer wakes it"
    waits = sum(own for (thread, state, _), own in ms.items() if (thread, state) == (main, "blocked"))
    assert waits < 0.3, "in the place of its waits are the threads that it waited for"
    assert set(table.loc[names == main, "part"]) == {OWN}


@pytest.mark.needs("root", "events")
def test_tracepoints_lie_as_assumed_where_they_are_not_described():
    point = tracing_rights.mounted()
    for name, layout in KNOWN.items():
        text = tracing_rights.files(point, [name])[1].read_bytes()
        ((_, fields),) = fields_by_event(text).values()
        assert {field: place[:2] for field, place in layout.fields.items()} == {
            field: fields[field][:2] for field in layout.fields
        }, name


def printed_by(file, *options):
    command = ["perf", "script", "-i", str(file), "--ns", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def events_of(file):
    """How many of each event perf prints."""
    lines = printed_by(file, "-F", "tid,event").splitlines()
    names = [line.split(maxsplit=1)[1].strip().rstrip(":") for line in lines]
    return Counter("page-faults" if name.startswith("page-faults") else name for name in names)


def ran_by(file):
    """How many nanoseconds each thread ran, from what perf prints of its comings and goings."""
    came, ran = {}, Counter()
    for line in printed_by(file, "--show-switch-events", "-F", "tid,cpu,time,event").splitlines():
        tid, _, moment, event = line.split(maxsplit=3)
        at = int(moment.strip(":").replace(".", ""))
        if event.startswith("PERF_RECORD_SWITCH IN"):
            came[int(tid)] = at
        elif event.startswith("sched:sched_switch") and int(tid) in came:
            ran[int(tid)] += at - came.pop(int(tid))
    return ran
