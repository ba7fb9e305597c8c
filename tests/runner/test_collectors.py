"""Collectors on real processes that do a known amount of work when asked."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import psutil
import pytest

from castmates.analysis.effects.effects import taken
from castmates.counters.choose import NoCollector
from castmates.counters.events.counting import Migrations
from castmates.counters.package import collector as busy_clock
from castmates.counters.package.collector import Packages
from castmates.counters.proc import cpu_time, other_programs
from castmates.counters.proc.cpu_time import CpuTime
from castmates.counters.proc.other_programs import Culprits
from castmates.counters.proc.procstat import Places, ProcStat, Tree, tree_difference
from castmates.errors import CastmatesError
from castmates.linux.host import cpu_ticks, newest_number
from castmates.linux.perf_event import SOFTWARE, Target, open_event, read_group
from castmates.linux.processes import cpu_ns_of_processes, waits_are_counted
from castmates.protocols import Held
from castmates.rdt.choose import NoAllocator, NoMonitor
from castmates.study.spec import Share
from tests.opened import opened
from tests.unit import sysfs
from tests.waiting import wait_for

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


TICKS_S = 0.05  # the kernel's account of a process is four numbers of whole ticks


def spent(*pids: int) -> float:
    """CPU seconds of processes and of the children that they have waited for, by the kernel's own account."""
    accounts = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(one.user + one.system + one.children_user + one.children_system for one in accounts)


def collected(collector, active, orders=(), worker=None) -> dict:
    collector.start(active)
    for order in orders:
        worker.do(order)
    return {(sample.subject, sample.metric): sample for sample in collector.stop()}


needs_perf = pytest.mark.needs("events")


SLEEPS = 100  # of each thread, when it is asked to
THREADS = f"""
import sys, threading, time
def sleep():
    go.wait()
    for _ in range({SLEEPS}):
        time.sleep(0.001)
    sys.stdout.write("slept\\n")
    sys.stdout.flush()
    end.wait()
go, end = threading.Event(), threading.Event()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=sleep, daemon=True).start()
print("ready", flush=True)
input()
go.set()
input()
"""


@contextmanager
def running(program, *words):
    """A program in Python, from when it says that it is ready."""
    command = [sys.executable, "-c", program, *map(str, words)]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, bufsize=1, start_new_session=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def threads_that_sleep(number):
    """A process whose threads are there, and sleep when they are asked to."""
    return running(THREADS, number)


def let_them_sleep(process, number):
    process.stdin.write("\n")
    assert [process.stdout.readline() for _ in range(number)] == ["slept\n"] * number


@needs_perf
def test_perf_gives_no_value_for_who_does_not_run(worker):
    member = subprocess.Popen(["sleep", "600"], start_new_session=True)
    sleeper = psutil.Process(member.pid)
    wait_for(lambda: (sleeper.name(), sleeper.status()) == ("sleep", psutil.STATUS_SLEEPING), "the member is asleep")
    perf = Migrations()
    perf.attach({"lead": member.pid, "gone": 2**22 + 1})
    found = collected(perf, ["lead", "gone"])
    assert all(sample.value is None for sample in found.values())
    assert found["lead", "cpu_migrations"].note.startswith("not counted")
    assert "had ended" in found["gone", "cpu_migrations"].note
    member.kill()
    member.wait()
    after_death = collected(perf, ["lead"])
    assert {sample.value for sample in after_death.values()} == {None}
    open_before = len(list(OWN_FILES.iterdir()))
    perf.close()
    assert len(list(OWN_FILES.iterdir())) == open_before - 1
    perf.close()


def test_an_unprivileged_user_gets_no_false_zeros():
    script = """
import os
from castmates.counters.events.counting import Migrations
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(Migrations.available())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) >= 2:
        assert done.stdout.startswith("not counted: perf is refused")
    else:
        assert done.stdout == "None\n"


@pytest.mark.parametrize("where", ["here", "thread", "child"])
def test_procstat_counts_the_whole_tree(worker, where):
    stat = ProcStat()
    stat.attach({"lead": worker.pid})
    found = collected(stat, ["lead"], ["touch 3000 " + where, "sleep 300 " + where], worker)
    assert 3000 <= found["lead", "minor_faults"].value < 4500
    assert found["lead", "major_faults"].value == 0
    if where == "here":
        assert found["lead", "voluntary_switches"].value >= 280  # a sleep that is already over is none
    assert found["host", "pswpin"].value >= 0


@pytest.mark.parametrize("where", ["here", "thread", "child"])
def test_cpu_time_is_that_of_the_whole_tree(worker, where):
    times = CpuTime(sorted(os.sched_getaffinity(0)))
    times.attach({"lead": worker.pid})
    before = spent(worker.pid)
    found = collected(times, ["lead"], ["burn 300 " + where], worker)
    assert 0.28 <= found["lead", "cpu_s"].value <= spent(worker.pid) - before + TICKS_S
    cpu = {metric: sum(s.value for (_, m), s in found.items() if m == metric) for metric in ("user_s", "steal_s")}
    assert cpu["user_s"] + cpu["steal_s"] > 0  # how much, a guest's ticks show only roughly


def test_cpu_time_sees_short_work_finer_than_a_tick(worker):
    stat = CpuTime([0])
    stat.attach({"lead": worker.pid})
    found = collected(stat, ["lead"], ["burn 3 here"], worker)
    assert found["lead", "cpu_s"].value >= 0.003


COUNTING = """
import mmap, os, sys
os.sched_setaffinity(0, {int(sys.argv[2])})
with open(sys.argv[1], "r+b") as file:
    done = mmap.mmap(file.fileno(), 8)
print("ready", flush=True)
count = 0
while True:
    sum(range(1000))
    count += 1
    done[:] = count.to_bytes(8, "little")
"""


def counting(file, cpu):
    """A program that never rests on its CPU, and counts its work in a file."""
    file.write_bytes(bytes(8))
    return running(COUNTING, file, cpu)


def watched(cpu, file, **processes):
    """What the clocks of programs on a CPU show in a second, what others had of it, and the first one's work."""
    times = CpuTime([cpu])
    times.attach({name: process.pid for name, process in processes.items()})
    times.start(list(processes))
    before = int.from_bytes(file.read_bytes(), "little")
    time.sleep(1)
    after = int.from_bytes(file.read_bytes(), "little")
    read = {(sample.subject, sample.metric): sample.value for sample in times.stop()}
    had = sum(read[f"cpu{cpu}", metric] for metric in ("user_s", "system_s", "irq_s", "steal_s"))
    own = {metric: read["lead", metric] for metric in ("cpu_s", "waited_s", "read_s")}
    rival = read.get(("rival", "cpu_s"), 0.0)
    return own | {"work": after - before, "rival": rival, "others": max(0.0, had - own["cpu_s"])}


@pytest.mark.skipif(not waits_are_counted(), reason="this kernel does not count how long threads wait")
def test_what_an_equal_on_the_same_cpu_takes_is_half_of_it_and_nothing_of_the_work_in_a_second_of_it(tmp_path):
    """Whoever else is there: what the others had is in the ticks of the CPU, and in the clock of the equal."""
    cpu, file = max(os.sched_getaffinity(0)), tmp_path / "one"
    with counting(file, cpu) as lead:
        alone = watched(cpu, file, lead=lead)
        with counting(tmp_path / "two", cpu) as rival:
            beside = watched(cpu, file, lead=lead, rival=rival)
    found = pd.DataFrame([alone, beside]).assign(member="lead")
    shares = taken(found, pd.Series(1.0, index=found.index))
    assert shares.tolist() == pytest.approx((found["others"] / found["read_s"]).tolist(), abs=0.15)
    assert (found["cpu_s"] + found["waited_s"]).tolist() == pytest.approx(found["read_s"].tolist(), rel=0.05)
    strangers = 1 - (beside["cpu_s"] + beside["rival"]) / beside["read_s"]
    assert shares[1] == pytest.approx(strangers + (1 - strangers) / 2, abs=0.15)  # the equal has half of the rest
    per_second = found["work"] / found["cpu_s"]
    assert per_second[1] / per_second[0] == pytest.approx(1, abs=0.4)


def test_a_kernel_that_does_not_count_waits_gives_no_zeros(worker, monkeypatch):
    monkeypatch.setattr(cpu_time, "waits_are_counted", lambda: False)
    times = CpuTime([])
    times.attach({"lead": worker.pid})
    found = collected(times, ["lead"], ["burn 3 here"], worker)
    waited = found["lead", "waited_s"]
    assert (waited.value, waited.note) == (None, "this kernel does not count how long threads wait for a CPU")
    assert found["lead", "cpu_s"].value >= 0.003


@pytest.mark.parametrize(
    ("make", "beside"), [(ProcStat, {"host"}), (lambda: CpuTime([0]), {"cpu0", "runner"})], ids=["procstat", "cputime"]
)
def test_only_the_active_are_watched_and_the_dead_are_noted(worker, make, beside):
    member = subprocess.Popen(["sleep", "600"], start_new_session=True)
    stat = make()
    stat.attach({"lead": worker.pid, "other": member.pid})
    assert {s for s, _ in collected(stat, ["lead"])} == {"lead", *beside}
    stat.start(["other"])
    member.kill()
    member.wait()
    samples = [sample for sample in stat.stop() if sample.subject == "other"]
    assert {(sample.value, sample.note) for sample in samples} == {(None, "the member has ended")}
    stat.close()
    stat.close()
    assert stat.stop() == []


def test_cpu_time_counts_the_runner_itself_and_adds_up_what_is_around_the_launch(worker):
    cpus = sorted(os.sched_getaffinity(0))
    stat = CpuTime([], {"l3:0": [*cpus, 4095]})
    stat.attach({})
    before = time.process_time()
    stat.start([])
    begin = time.process_time()
    while time.process_time() - begin < 0.1:
        pass
    worker.do("burn 100 here")
    found = {(sample.subject, sample.metric): sample for sample in stat.stop()}
    assert 0.1 <= found["runner", "cpu_s"].value <= time.process_time() - before
    assert found["l3:0", "neighbours_busy_s"].value > 0.1
    assert found["l3:0", "neighbours_busy_s"].note == f"{len(cpus)} CPUs"


def test_an_offline_cpu_has_no_value():
    stat = CpuTime([4095])
    found = collected(stat, [])
    assert found["cpu4095", "steal_s"].value is None
    assert found["cpu4095", "steal_s"].note == "this CPU is offline"
    assert cpu_ticks([4095]) == {}


CPUS = sorted(os.sched_getaffinity(0))
BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"
WITH_THREADS = """
import hashlib, threading, time
def burn():
    end = time.thread_time() + 0.15
    while time.thread_time() < end:
        hashlib.sha256(bytes(1000000)).digest()
threads = [threading.Thread(target=burn) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("done", flush=True)
input()
"""
EVERYBODY = 1000  # so that what else is busy here hides nobody
CHILDREN = f"import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-c', {BURN.format(0.1)!r}])"


def somebody(script: str, cpu: int) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", script + "\nprint('done', flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )


@pytest.mark.parametrize(
    ("script", "who"),
    [(BURN.format(0.2), "python"), (WITH_THREADS, "python"), (CHILDREN, "children of python")],
    ids=["a program", "its threads", "children that came and went"],
)
def test_who_took_time_on_our_cpu_is_named(script, who, worker):
    culprits = Culprits({f"cpu{cpu}": [cpu] for cpu in CPUS} | {"all": CPUS}, EVERYBODY)
    culprits.attach({"lead": worker.pid})
    culprits.start(["lead"])
    other = somebody(script, CPUS[-1])
    other.stdout.readline()
    worker.do("burn 100 here")
    worker.do("burn 100 child")
    found = {(one.subject, one.note): one.value for one in culprits.stop()}
    in_all = spent(other.pid)
    other.communicate(b"\n")
    name = next(note for _, note in found if note.startswith(who) and f"(pid {other.pid})" in note)
    assert 0.15 <= found[f"cpu{CPUS[-1]}", name] <= in_all + TICKS_S
    assert found["all", name] == pytest.approx(found[f"cpu{CPUS[-1]}", name])
    assert len(CPUS) == 1 or (f"cpu{CPUS[0]}", name) not in found
    members = {str(worker.pid), str(os.getpid())}
    assert not [note for _, note in found if note.rpartition("pid ")[2].rstrip(")") in members]


ORPHAN = f"""
import os
input()
if os.fork():
    os._exit(0)
{BURN.format(0.2)}
print(os.getpid(), flush=True)
input()
"""


def test_an_orphan_in_a_members_session_is_no_culprit():
    member = subprocess.Popen([sys.executable, "-c", ORPHAN], stdin=-1, stdout=-1, start_new_session=True)
    ours, theirs = (Culprits({"all": CPUS}, EVERYBODY) for _ in range(2))
    ours.attach({"lead": member.pid})
    theirs.attach({})
    for one in (ours, theirs):
        one.start([])
    member.stdin.write(b"\n")
    member.stdin.flush()
    orphan = f"(pid {int(member.stdout.readline())})"
    assert orphan in str(theirs.stop())
    assert orphan not in str(ours.stop())
    member.communicate(b"\n")


def test_what_children_took_before_the_window_is_not_counted_when_they_end_in_it():
    grandchild = f"{BURN.format(0.6)}\nprint('half', flush=True)\ninput()\n{BURN.format(0.1)}"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {grandchild!r}])"
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {parent!r}])\nprint('all', flush=True)"
    culprits = Culprits({"all": CPUS}, EVERYBODY)
    culprits.attach({})
    other = subprocess.Popen([sys.executable, "-c", script + "\ninput()"], stdin=-1, stdout=-1)
    other.stdout.readline()
    culprits.start([])
    other.stdin.write(b"\n")
    other.stdin.flush()
    other.stdout.readline()
    found = {one.note: one.value for one in culprits.stop()}
    other.communicate(b"\n")
    (took,) = (value for who, value in found.items() if who.startswith("children of") and f"pid {other.pid})" in who)
    assert 0.08 <= took < 0.6, "what was burnt before is not in it"


def test_nobody_is_named_where_nobody_was():
    culprits = Culprits({"nowhere": [4095]}, EVERYBODY)
    culprits.attach({})
    assert culprits.stop() == []
    other = somebody(BURN.format(0.05), CPUS[0])
    culprits.start([])
    other.stdout.readline()
    assert culprits.stop() == []
    other.communicate(b"\n")


def test_who_slept_through_a_window_is_not_read_and_who_comes_or_wakes_is_named():
    culprits = Culprits({"all": CPUS}, EVERYBODY)
    sleepers = [somebody(f"print('ready', flush=True)\ninput()\n{BURN.format(0.2)}", CPUS[0]) for _ in range(3)]
    for each in sleepers:
        each.stdout.readline()
        wait_for(lambda pid=each.pid: psutil.Process(pid).status() == psutil.STATUS_SLEEPING, "it is asleep")
    culprits.attach({})
    seen = []
    for _ in range(3):
        with opened() as paths:
            culprits.start([])
            culprits.stop()
        seen.append(paths)
    assert not [path for path in seen[-1] for each in sleepers if path == f"/proc/{each.pid}/stat"]
    if newest_number() is not None:
        assert not all("/proc" in paths for paths in seen), "processes are listed only where numbers begin again"
    culprits.start([])
    newcomer = somebody(BURN.format(0.2), CPUS[0])
    sleepers[0].stdin.write(b"\n")
    sleepers[0].stdin.flush()
    for each in (newcomer, sleepers[0]):
        each.stdout.readline()
    found = {one.note.rpartition(" (pid ")[2]: one.value for one in culprits.stop()}
    for each in (newcomer, *sleepers):
        assert (f"{each.pid})" in found) == (each in (newcomer, sleepers[0]))
        each.communicate(b"\n\n")
    assert min(found[f"{each.pid})"] for each in (newcomer, sleepers[0])) >= 0.15


def test_clocks_of_many_are_each_their_own_and_those_of_the_dead_are_none():
    gone = [somebody("", CPUS[0]) for _ in range(2)]
    for each in gone:
        each.communicate()
    pids = [gone[0].pid, 1, os.getpid(), gone[1].pid, os.getppid(), gone[1].pid]
    first, one, own, *rest = cpu_ns_of_processes(pids)
    assert (first, rest[0], rest[2]) == (None, None, None)
    assert own <= time.process_time_ns()
    assert own > time.process_time_ns() - 10**9
    assert None not in (one, rest[1]) or cpu_ns_of_processes([1]) == [None]


def test_where_the_kernel_tells_no_clocks_of_others_everybody_is_read(monkeypatch):
    monkeypatch.setattr(other_programs, "cpu_ns_of_processes", lambda pids: [None for _ in pids])
    culprits = Culprits({"all": CPUS}, EVERYBODY)
    sleeper = somebody(f"print('ready', flush=True)\ninput()\n{BURN.format(0.2)}", CPUS[0])
    sleeper.stdout.readline()
    culprits.attach({})
    for _ in range(3):
        culprits.start([])
        culprits.stop()
    culprits.start([])
    sleeper.stdin.write(b"\n")
    sleeper.stdin.flush()
    sleeper.stdout.readline()
    found = {one.note.rpartition(" (pid ")[2]: one.value for one in culprits.stop()}
    sleeper.communicate(b"\n")
    assert found[f"{sleeper.pid})"] >= 0.15


# Its main thread stays on the first CPU, another thread goes to the last one when asked.
WANDERER = """
import os, sys, threading, time
first, last = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {first})
go = threading.Event()
def wander():
    go.wait()
    os.sched_setaffinity(0, {last})
    print("there", flush=True)
    time.sleep(600)
threading.Thread(target=wander, daemon=True).start()
print("ready", flush=True)
input()
go.set()
input()
"""


@pytest.mark.needs("two-cpus")
def test_the_cpu_that_a_thread_was_on_is_seen_of_the_frozen_too():
    places = Places()
    wanderer = subprocess.Popen(
        [sys.executable, "-c", WANDERER, str(CPUS[0]), str(CPUS[-1])], stdin=-1, stdout=-1, text=True, bufsize=1
    )
    wanderer.stdout.readline()
    places.attach({"lead": wanderer.pid, "frozen": wanderer.pid})

    def seen() -> dict[tuple[str, str], set[float]]:
        found: dict[tuple[str, str], set[float]] = {}
        for one in places.stop():
            found.setdefault((one.subject, one.metric), set()).add(one.value)
        return found

    places.start(["lead"])
    at_home = {("lead", "last_cpu"): {CPUS[0]}, ("frozen", "last_cpu"): {CPUS[0]}}
    assert seen() == at_home | {("lead", "threads_moved"): {0}}
    places.start(["lead"])
    wanderer.stdin.write("\n")
    wanderer.stdout.readline()
    both = {CPUS[0], CPUS[-1]}
    away = {("lead", "last_cpu"): both, ("frozen", "last_cpu"): both, ("lead", "threads_moved"): {1}}
    assert seen() == away
    wanderer.kill()
    wanderer.communicate()
    places.start(["lead"])
    assert seen() == {("lead", "threads_moved"): {0}}


@needs_perf
@pytest.mark.needs("two-cpus")
def test_a_member_of_one_cpu_never_migrates_and_one_that_leaves_it_does(worker):
    os.sched_setaffinity(worker.pid, {CPUS[0]})
    worker.do("burn 5 here")  # a sleeper moves when it wakes
    perf = Migrations()
    perf.attach({"lead": worker.pid})
    orders = [f"{what} {where}" for what in ("burn 5", "sleep 20") for where in ("here", "thread", "child")]
    assert collected(perf, ["lead"], orders, worker)["lead", "cpu_migrations"].value == 0
    perf.start(["lead"])
    for cpu in (CPUS[-1], CPUS[0]):  # there and back: at both edges it is where it belongs
        os.sched_setaffinity(worker.pid, {cpu})
        worker.do("burn 5 here")
    assert {one.metric: one.value for one in perf.stop()}["cpu_migrations"] >= 2
    perf.close()


def test_ended_threads_make_switches_a_lower_bound_and_an_unwaited_child_no_value():
    before = Tree(10, 3, {1: (5, 5), 2: (100, 100)})
    after = Tree(12, 2, {1: (7, 6), 3: (4, 0)})
    found = tree_difference(before, after)
    assert found["voluntary_switches"] == (6, "a lower bound: 1 threads ended in the window")
    assert found["involuntary_switches"][0] == 1
    assert found["minor_faults"] == (2, "")
    assert found["major_faults"][0] is None


def test_nothing_is_honest():
    allocator, monitor, collector = NoAllocator(), NoMonitor(), NoCollector("no perf")
    allocator.prepare({"lead": Held(1, (0,))})
    assert not allocator.apply(())
    with pytest.raises(CastmatesError, match="no partition can be applied"):
        allocator.apply((Share(member="lead", ways=1),))
    assert (allocator.read_back(), monitor.stop(), collector.stop()) == ({}, [], [])
    assert "no perf" in collector.about()["counters"]
    assert allocator.about()
    assert monitor.about()


def test_a_members_process_that_left_its_family_is_no_culprit(worker):
    culprits = Culprits({"all": CPUS}, EVERYBODY, is_ours=lambda pid: pid == other.pid)
    culprits.attach({"lead": worker.pid})
    culprits.start(["lead"])
    other = somebody(BURN.format(0.2), CPUS[-1])
    other.stdout.readline()
    found = culprits.stop()
    in_all = spent(other.pid)
    other.communicate(b"\n")
    (strays,) = [one.value for one in found if one.metric == "strays_s"]
    assert 0.15 <= strays <= in_all + TICKS_S
    assert not [one for one in found if one.metric == "foreign_s" and f"(pid {other.pid})" in one.note]


@pytest.mark.needs("whole-cpus")
def test_units_are_opened_as_sysfs_describes_them_and_counted_by_package(worker, tmp_path):
    """A unit of memory controllers as the kernel shows one, but that its events are the kernel's own page faults."""
    cpu = CPUS[-1]
    os.sched_setaffinity(worker.pid, {cpu})
    unit = tmp_path / "sys/bus/event_source/devices/uncore_imc_0"
    sysfs.write(tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", 3)
    sysfs.write(unit / "type", SOFTWARE)
    sysfs.write(unit / "cpumask", cpu)
    sysfs.write(unit / "format/event", "config:0-7")
    for name, event in (("cas_count_read", 2), ("cas_count_write", 5)):  # page faults, and the minor ones of them
        sysfs.write(unit / f"events/{name}", f"event={event:#04x}")
        sysfs.write(unit / f"events/{name}.scale", "2.0")
        sysfs.write(unit / f"events/{name}.unit", "Bytes")
    packages = Packages([cpu], tmp_path)
    assert packages.available() is None
    packages.attach({})
    before = time.monotonic()
    packages.start([])
    worker.do("touch 5000 here")
    found = {(sample.subject, sample.metric): sample for sample in packages.stop()}
    elapsed = time.monotonic() - before
    about = packages.about()["memory_read"]
    packages.close()
    every, minor = (found["package3", metric].value * elapsed for metric in ("memory_read", "memory_written"))
    assert 2 * 5000 <= minor <= every
    assert about.endswith("uncore_imc_0/cas_count_read/")


@pytest.mark.needs("whole-cpus")
def test_a_real_unit_of_this_kernel_is_opened_by_what_its_files_say():
    unit = busy_clock.msr_unit(Path("/"))
    terms = unit.named("tsc") if unit else None
    if unit is None or terms is None:
        pytest.skip("this kernel has no unit msr, or it counts no time stamps")
    fd = open_event(unit.attr(terms), Target(-1, CPUS[0]))
    try:
        first, second = (read_group(fd, 1) for _ in range(2))
    finally:
        os.close(fd)
    assert second[2] > first[2] > 0
