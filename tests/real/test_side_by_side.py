"""Tasks run in separate processes and return what they make; a refusal is reported when all have ended."""

import os
import subprocess
import sys

import pytest

from castmates.errors import CastmatesError
from castmates.parallel import side_by_side
from tests.processes import has_ended
from tests.waiting import wait_for


def refuse(word):
    raise CastmatesError(f"No {word}.")


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_tasks(jobs):
    whole = list(range(1000))
    found = side_by_side({"b": lambda: sum(whole), "a": lambda: len(whole)}, jobs)
    assert list(found.items()) == [("b", 499500), ("a", 1000)]


def test_tasks_run_in_other_processes_and_no_more_than_asked_for():
    found = side_by_side({str(number): os.getpid for number in range(6)}, 2)
    assert os.getpid() not in found.values()
    assert len(set(found.values())) <= 2
    assert side_by_side({"a": os.getpid, "b": os.getpid}, 1) == {"a": os.getpid(), "b": os.getpid()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_refused_keeps_no_other_task_from_ending(tmp_path, jobs):
    tasks = {"a": lambda: refuse("a"), "b": (tmp_path / "b").touch, "c": lambda: refuse("c")}
    with pytest.raises(CastmatesError, match=r"^No a\. No c\.$"):
        side_by_side(tasks, jobs)
    assert (tmp_path / "b").exists()


PARENT = """
import os, sys, time
from pathlib import Path
from castmates.parallel import side_by_side

def wait(name):
    Path(sys.argv[1], f"{name}.new").write_text(str(os.getpid()))
    Path(sys.argv[1], f"{name}.new").rename(Path(sys.argv[1], name))
    time.sleep(600)

side_by_side({"a": lambda: wait("a"), "b": lambda: wait("b")}, 2)
"""


def test_no_process_outlives_the_one_that_wants_its_results(tmp_path):
    files = [tmp_path / "a", tmp_path / "b"]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    try:
        wait_for(lambda: all(file.exists() for file in files), "both children have begun")
    finally:
        parent.kill()
        parent.wait()
    children = [int(file.read_text()) for file in files]
    wait_for(lambda: all(map(has_ended, children)), "the children end with their parent")


def test_a_process_that_is_killed_is_a_sentence():
    with pytest.raises(CastmatesError, match="a, b was ended from outside, perhaps because memory ran out"):
        side_by_side({"a": lambda: os._exit(9), "b": os.getpid}, 2)
