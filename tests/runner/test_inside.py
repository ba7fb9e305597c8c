"""Counters that a process reads of itself: a process with many threads is counted whole, by both ways."""

import gc
import hashlib
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from castmates.counters.events.groups import open_groups
from castmates.counters.events.resolving import resolve
from castmates.inside import counting, open_counters, papi, perf
from castmates.inside.events import event_of
from castmates.inside.perf import PerfCounters
from castmates.linux.perf_event import Target

PAGE = os.sysconf("SC_PAGESIZE")
PAGES = 2000
EVENTS = ["page-faults", "context-switches", "task-clock", "cpu-migrations"]
countable = pytest.mark.needs("events")
ways = pytest.mark.parametrize(
    "way",
    [
        pytest.param("perf", marks=countable),
        pytest.param("papi", marks=pytest.mark.skipif(bool(papi.why_not()), reason=str(papi.why_not()))),
    ],
)


class Worker(threading.Thread):
    """Touches fresh pages, sleeps, and keeps a CPU busy outside of Python's lock, when it is asked to."""

    def __init__(self):
        super().__init__(daemon=True)
        self.begin, self.ended = threading.Event(), threading.Event()
        self.ready = threading.Event()

    def run(self):
        self.ready.set()
        self.begin.wait()
        import mmap

        with mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            for place in range(0, PAGES * PAGE, PAGE):
                memory[place] = 1
        for _ in range(20):
            time.sleep(0.0005)
        hashlib.sha256(b"x" * 20_000_000).digest()
        self.ended.set()
        threading.Event().wait(30)  # lives on, so that its counter is not folded into another


def open_files():
    gc.collect()  # what others have let go of is closed now, and not in between
    return len(list(Path("/proc/self/fd").iterdir()))


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, used.ru_nvcsw + used.ru_nivcsw, time.process_time_ns(), time.monotonic_ns()


@ways
def test_threads_of_before_and_after_are_counted_or_said_to_be_missed(way):
    early, late = [Worker() for _ in range(2)], [Worker() for _ in range(2)]
    for worker in early:
        worker.start()
        worker.ready.wait()
    with counting([*EVENTS, "instructions"], way) as counts:
        before = usage()
        for worker in late:
            worker.start()
        for worker in (*early, *late):
            worker.begin.set()
        for worker in (*early, *late):
            assert worker.ended.wait(20)
        faults, switches, ns, wall_ns = (b - a for a, b in zip(before, usage(), strict=True))
        found = counts.read()
        misses = counts.counters.misses
    assert faults > 4 * PAGES
    assert list(found) == [*EVENTS, "instructions"]
    values = {name: value.value for name, value in found.items()}
    if misses:
        assert way == "papi"
        assert "only the thread that opened them" in found["page-faults"].note
        assert values["page-faults"] < PAGES  # it touched none itself: a wrong sum would show
        return
    assert all(found[event].status == "counted" for event in EVENTS)
    assert values["page-faults"] == pytest.approx(faults, rel=0.02)
    assert values["context-switches"] == pytest.approx(switches, rel=0.1, abs=20)
    assert 0.9 * ns <= values["task-clock"] <= 4 * wall_ns  # it runs on while a hypervisor has the CPU
    instructions = found["instructions"]
    assert (instructions.value is None) == (instructions.status in ("not supported", "not counted"))


@countable
def test_without_inheritance_or_the_other_threads_much_is_missed():
    """What the test above would not see if the counters were opened carelessly."""
    worker = Worker()
    counters = PerfCounters([event_of("page-faults")], inherit=False)
    before = counters.read()[0]
    worker.start()
    worker.begin.set()
    assert worker.ended.wait(20)
    assert counters.read()[0] - before < PAGES
    counters.close()


@countable
def test_a_quick_read_gives_whole_numbers_in_the_order_of_the_names():
    before = open_files()
    counters = open_counters(["task-clock", "page-faults"])
    one, other = counters.read(), counters.read()
    assert sorted(counters.names) == ["page-faults", "task-clock"]
    assert all(isinstance(value, int) for value in one)
    assert all(a <= b for a, b in zip(one, other, strict=True))
    assert [reading.total for reading in counters.readings()] >= list(other)
    counters.close()
    counters.close()
    assert open_files() == before


BIRTHS = """
import _thread
print(flush=True)
while True:
    try:
        _thread.start_new_thread(bool, ())
    except RuntimeError:
        pass
"""


@countable
def test_a_reading_is_whole_while_threads_are_born_and_end():
    """The kernel answers ECHILD while one that inherits a group has only a part of it: to one of eight tries or so."""
    names = ["page-faults", "context-switches", "cpu-migrations"]
    with counting(names) as counts:
        outside = open_groups(resolve([("mine", names)], lambda _: None), [Target(os.getpid(), inherit=True)])
        command = [sys.executable, "-S", "-c", BIRTHS]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        try:
            for child in children:
                child.stdout.readline()
            for _ in range(1500):
                assert None not in counts.counters.read()
                assert set(outside.read()) == set(names)
            assert {value.status for value in counts.read().values()} == {"counted"}
        finally:
            for child in children:
                child.kill()
                child.communicate()
            outside.close()


@countable
def test_a_group_that_stays_broken_is_not_counted_and_raises_nothing(monkeypatch):
    def broken(*_):
        raise ChildProcessError

    with counting(["page-faults", "task-clock"]) as counts:
        monkeypatch.setattr(perf.os, "read", broken)
        quick, found = counts.counters.read(), counts.read()
        monkeypatch.undo()
    assert quick == (None, None)
    assert {(value.value, value.status) for value in found.values()} == {(None, "not counted")}


@countable
def test_children_are_counted_too():
    with counting(["page-faults"]) as counts:
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        assert counts.read()["page-faults"].value > 300


def test_without_papi_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr(papi, "_places", lambda: iter([]))
    papi._library.cache_clear()
    try:
        assert papi.why_not() == papi.NOWHERE
    finally:
        papi._library.cache_clear()


ORDINARY = """
import os, resource
from castmates.inside import counting
if os.geteuid() == 0:
    os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
with counting(["page-faults", "context-switches", "cpu-migrations:u"]) as counts:
    bytearray(8 << 20)
    for value in counts.read().values():
        print(*value, sep="|")
"""


@countable
def test_who_may_not_count_the_kernel_counts_user_mode_and_no_false_zeros():
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) != 2:
        pytest.skip("this machine lets users count more, or nothing (kernel.perf_event_paranoid is not 2)")
    done = subprocess.run([sys.executable, "-c", ORDINARY], capture_output=True, text=True, check=True)
    faults, switches, migrations = (line.split("|") for line in done.stdout.splitlines())
    assert float(faults[1]) > 1000
    assert (faults[2], faults[4]) == ("counted", "user mode only")
    assert (switches[1], switches[2]) == ("None", "not counted")
    assert "perf_event_paranoid is 2): set it to 1" in switches[4]
    assert (migrations[1], migrations[2]) == ("None", "not supported")
    assert "false zero" in migrations[4]
