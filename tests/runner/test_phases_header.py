"""castmates_phases.h: what it writes is what the writer in Python writes, and compilers find nothing in it."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings

from castmates import shipped
from castmates.workloads import phase_file
from castmates.workloads.phase_file import Reader
from castmates.workloads.phase_writer import Writer
from tests.unit.phases.written_ranges import CALLS, Call, create, heard, make, phases_of, said

DRIVER = Path(__file__).with_name("phases_driver.c")
SECOND = """
#include "castmates_phases.h"
void elsewhere(void);
void elsewhere(void) { castmates_phase_end(); }
"""
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
FIRST_CALLS: list[Call] = [("begin", "", "a", 1, ""), ("begin", "input", "b", 2, ""), ("end", "input", "", 0, "")]


@pytest.fixture(scope="module")
def driver(compiler, tmp_path_factory) -> Path:
    """A program of two files that include the header, checked by the sanitizers where the compiler has them."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "second.c").write_text(SECOND)
    words = [*compiler, *WARNINGS, "-O1", f"-I{shipped.include()}", DRIVER, folder / "second.c", "-pthread"]
    for flags in (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], []):
        done = subprocess.run([*words, *flags, "-o", folder / "driver"], capture_output=True, text=True, check=False)
        if done.returncode == 0 or "-Werror" in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return folder / "driver"


def run(driver: Path, calls: list[Call], **variables: str) -> str:
    """Make the calls, and return what the program said on standard error."""
    lines = "".join("\t".join(map(str, call)) + "\n" for call in calls)
    environment = os.environ | variables
    return subprocess.run(
        [driver], input=lines, env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stderr


@settings(max_examples=40)
@given(CALLS)
def test_it_writes_what_the_writer_in_python_writes(driver, tmp_path_factory, calls):
    folder = tmp_path_factory.mktemp("phases")
    here, there = create(folder / "python"), create(folder / "c")
    make(Writer(folder / "python"), calls)
    run(driver, calls, CASTMATES_PHASES=str(folder / "c"))
    assert said(there) == said(here)
    assert all(one.begin_ns <= one.end_ns for one in heard(there))


@pytest.mark.parametrize("what", ["end", "unmark"])
def test_a_thread_that_ends_what_it_has_not_begun_is_not_the_first(driver, tmp_path, what):
    calls: list[Call] = [("begin", "input", "a", 0, ""), (what, "", "", 0, ""), ("other", "", "b", 0, "")]
    here, there = create(tmp_path / "python"), create(tmp_path / "c")
    make(Writer(tmp_path / "python"), calls)
    run(driver, calls, CASTMATES_PHASES=str(tmp_path / "c"))
    assert said(there) == said(here)
    assert [one.name for one in phases_of(here)] == ["b"]


def test_where_ranges_are_not_kept_it_writes_phases_alone(driver, tmp_path):
    calls: list[Call] = [*FIRST_CALLS, ("mark", "", "c", 3, "n=1"), ("start", "", "d", 1, ""), ("end", "", "", 0, "")]
    for name in ("c", "python"):
        phase_file.create(tmp_path / name, ["page-faults"], ranges=False)
    assert run(driver, calls, CASTMATES_PHASES=str(tmp_path / "c")) == ""
    make(Writer(tmp_path / "python"), calls)
    here, there = Reader(tmp_path / "python"), Reader(tmp_path / "c")
    assert said(there) == said(here)
    assert [(one.name, one.step) for one in phases_of(there)] == [("a/c", 3), ("a", 1)]
    assert there.counters == {"page-faults": "not counted"}


def test_threads_do_not_lose_or_mix_each_others_records(driver, tmp_path):
    reader = create(tmp_path / "file", capacity=1 << 17)
    run(driver, [("race", "", "", 0, "")], CASTMATES_PHASES=str(tmp_path / "file"))
    found = heard(reader)
    assert len(found) == 80_000
    for name in "abcd":
        own = [one for one in found if one.name == name]
        assert [one.step for one in own] == list(range(20_000))
        assert len({one.thread for one in own}) == 1
        assert {one.payload for one in own} == {"n=1"}


def test_another_process_goes_on_in_the_file_and_a_child_writes_nothing(driver, tmp_path):
    reader = create(tmp_path / "file", capacity=64)
    for _ in range(2):
        run(driver, [*FIRST_CALLS, ("fork", "", "", 0, "")], CASTMATES_PHASES=str(tmp_path / "file"))
    assert [(one.domain, one.path) for one in heard(reader)] == [("input", "b")] * 2
    assert reader.names == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "Cannot open"), (b"x" * 99, "is not a whole Castmates")],
    ids=["missing", "foreign"],
)
def test_a_file_that_is_none_is_a_sentence_and_the_program_goes_on(driver, tmp_path, content, sentence):
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    complaint = run(driver, FIRST_CALLS, CASTMATES_PHASES=str(tmp_path / "file"))
    assert sentence in complaint
    assert complaint.count("\n") == 1
    assert run(driver, FIRST_CALLS, CASTMATES_PHASES="") == ""
