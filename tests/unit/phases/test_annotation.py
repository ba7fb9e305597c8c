"""The annotations: `with phase(...)`, `@phase(...)`, `mark(...)`."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.workloads import phase_file, phases
from castmates.workloads.phase_file import Reader
from castmates.workloads.phase_writer import Writer
from castmates.workloads.phases import PhasesError, mark, phase
from tests.needs import lacks
from tests.unit.phases.written_ranges import phases_of as heard


@pytest.fixture
def listening(tmp_path, monkeypatch):
    """A runner that listens to this process."""
    phase_file.create(tmp_path / "file")
    monkeypatch.setenv(phase_file.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(phases._state, "writer", phases._unopened)
    return Reader(tmp_path / "file")


def test_phases_tell_name_step_and_times_of_the_steady_clock(listening):
    before = time.monotonic_ns()
    with phase("forward", step=7):
        pass
    after = time.monotonic_ns()
    (one,) = heard(listening)
    assert (one.name, one.step) == ("forward", 7)
    assert before <= one.begin_ns <= one.end_ns <= after


def test_a_phase_in_a_phase_has_both_names_and_the_step(listening):
    with phase("forward", step=1):
        with phase("attention"):
            pass
        with phase("attention", step=2):
            pass
    assert [(one.name, one.step) for one in heard(listening)] == [
        ("forward/attention", 1),
        ("forward/attention", 2),
        ("forward", 1),
    ]
    inner, _, outer = heard(listening)
    assert outer.begin_ns <= inner.begin_ns
    assert inner.end_ns <= outer.end_ns


def test_an_exception_ends_the_phases_that_it_leaves(listening):
    def fail() -> None:
        with phase("a"), phase("b"):
            mark("c")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with phase("d"):
        pass
    assert [one.name for one in heard(listening)] == ["a/b/c", "a/b", "a", "d"]


def test_a_mark_ends_the_one_before(listening):
    mark("input", 3)
    mark("forward")
    mark()
    mark()
    first, second = heard(listening)
    assert (first.name, first.step, second.name, second.step) == ("input", 3, "forward", None)
    assert first.end_ns <= second.begin_ns


def test_a_decorated_function_is_a_phase_each_time_also_within_itself(listening):
    @phase("down")
    def down(depth: int) -> int:
        """Count down."""
        return down(depth - 1) if depth else 0

    assert down(2) == 0
    assert down.__name__ == "down"
    assert [one.name for one in heard(listening)] == ["down/down/down", "down/down", "down"]


def test_what_returns_before_it_runs_is_refused():
    def numbers():
        yield 1

    async def later():
        pass

    for function in (numbers, later):
        with pytest.raises(PhasesError, match=r"put `with phase\(...\)` inside it"):
            phase("work")(function)


def test_other_threads_are_told_apart(listening):
    def work() -> None:
        with phase("decode"), phase("jpeg"):
            pass

    with phase("input"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [one.name for one in heard(listening)] == ["threads/decode/jpeg", "threads/decode", "input"]


def test_threads_do_not_lose_or_mix_each_others_records(tmp_path):
    phase_file.create(tmp_path / "file")
    writer = Writer(tmp_path / "file")

    def work(name: str) -> None:
        for step in range(2000):
            writer.begin(name, step)
            writer.end()

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = heard(Reader(tmp_path / "file"))
    assert len(found) == 8000
    for name in "abcd":
        steps = [one.step for one in found if one.name.endswith(name)]
        assert steps == list(range(2000))


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "threads", "n" * 124, None, 3])
def test_a_name_that_cannot_be_is_said_once_and_counted(listening, name, capfd):
    for _ in range(2):
        with phase(name), phase("inside"):
            pass
    with phase("good"):
        pass
    assert [one.name for one in heard(listening)] == ["good"]
    assert listening.dropped == 4
    assert capfd.readouterr().err.count("is not recorded") == 1


def test_more_names_than_the_table_holds_are_counted(listening, capfd):
    for number in range(514):
        with phase(f"layer {number}"):
            pass
    assert len(listening.names) == 512
    assert (len(heard(listening)), listening.dropped) == (512, 2)
    assert "There are 512 phases already" in capfd.readouterr().err


@given(st.lists(st.sampled_from(["begin a", "begin b", "end", "mark c", "mark"]), max_size=30))
def test_whatever_the_order_phases_nest_and_nothing_breaks(tmp_path_factory, calls):
    path = tmp_path_factory.mktemp("phases") / "file"
    phase_file.create(path, capacity=64)
    writer = Writer(path)
    begun = 0
    for call in calls:
        what, _, name = call.partition(" ")
        if what == "begin":
            writer.begin(name)
            begun += 1
        elif what == "end":
            writer.end()
        else:
            writer.mark(name or None)
            begun += bool(name)
    found = heard(Reader(path))
    assert len(found) <= begun
    for place, one in enumerate(found):
        for other in found[place + 1 :]:  # what ended later lies around it, or began after it
            around = other.begin_ns <= one.begin_ns and one.name.startswith(f"{other.name}/")
            assert around or other.begin_ns >= one.end_ns


def test_a_step_that_is_no_number_is_none(listening):
    for step in ("one", -1, 2**63, 1.5):
        with phase("work", step=step):
            pass
    assert {one.step for one in heard(listening)} == {None}


def test_a_child_process_does_not_write_into_its_parents_file(listening):
    with phase("parent"):
        child = os.fork()
        if child == 0:
            with phase("child"):
                pass
            os._exit(0)
        os.waitpid(child, 0)
    assert [one.name for one in heard(listening)] == ["parent"]


JOB = "from castmates.workloads.phases import mark, phase\nwith phase('a'):\n    mark('b')\nprint('done')"


@pytest.mark.parametrize(
    ("value", "said"), [(None, ""), ("", ""), ("/nowhere/file", "Cannot open"), ("foreign", "is not a Castmates")]
)
def test_a_job_goes_on_where_nobody_listens(tmp_path, monkeypatch, value, said):
    monkeypatch.chdir(tmp_path)
    Path("foreign").write_text("a file of somebody else's\n")
    variables = {key: text for key, text in os.environ.items() if key != phase_file.VARIABLE}
    variables |= {} if value is None else {phase_file.VARIABLE: value}
    done = subprocess.run([sys.executable, "-c", JOB], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
    assert said in done.stderr
    assert done.stderr.count("\n") == bool(said)


def test_counters_are_read_at_the_edges(tmp_path):
    phase_file.create(tmp_path / "file", ["page-faults", "no-such-event"])
    writer = Writer(tmp_path / "file")
    reader = Reader(tmp_path / "file")
    writer.begin("quiet")
    writer.end()
    assert reader.counters["no-such-event"] == "not counted"
    assert [one.counts for one in heard(reader)] == [(None, None)], "one event that does not exist refuses them all"


def test_counts_are_of_the_phase_alone(tmp_path):
    phase_file.create(tmp_path / "file", ["page-faults"])
    reader, code = Reader(tmp_path / "file"), (
        "import mmap\n"
        "from castmates.workloads.phases import phase\n"
        "with phase('touch'):\n"
        "    memory = mmap.mmap(-1, 4096 * 300)\n"
        "    for page in range(300): memory[4096 * page] = 1\n"
        "for _ in range(50):\n"
        "    with phase('nothing'): pass\n"
    )  # fmt: skip
    variables = os.environ | {phase_file.VARIABLE: str(tmp_path / "file")}
    subprocess.run([sys.executable, "-c", code], env=variables, check=True)
    if reader.counters != {"page-faults": "counted"}:
        lacks("events", f"page faults are {reader.counters['page-faults']} here")
    touch, *nothing = heard(reader)
    assert touch.counts[0] >= 300
    assert min(one.counts[0] for one in nothing) == 0
