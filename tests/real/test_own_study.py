"""`castmates measure` tries a command before it writes a study of it."""

import os
import re
import subprocess
import sys

import pytest

from castmates.errors import CastmatesError
from castmates.linux import probe_points
from castmates.pipeline import command_trial
from castmates.pipeline.command_study import study_of
from castmates.pipeline.command_trial import Command, try_command
from castmates.project import load, read_catalogue
from castmates.shipped import catalogue, environments
from tests.needs import lacks
from tests.processes import has_ended
from tests.waiting import wait_for


def test_a_command_that_ends_well_is_tried_and_a_study_of_it_can_be_planned(tmp_path, monkeypatch):
    known = read_catalogue(catalogue())
    (tmp_path / "envs").symlink_to(environments().resolve())
    monkeypatch.chdir(tmp_path)
    file = study_of(Command([sys.executable, "-c", "bytes(50_000_000)"]), ["stream"], "mine", known, print)
    study = load(file).study
    assert study.workloads["mine"].words[1:] == ["-c", "bytes(50_000_000)"]
    assert study.workloads["mine"].memory_bytes > 50_000_000


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["sh", "-c", "echo first >&2; echo no such input >&2; exit 3"], r'sh ended with status 3: it wrote "no such '),
        (["no-such-program-anywhere"], "there is no program 'no-such-program-anywhere'"),
        ([os.devnull], "there is no program '/dev/null'"),
    ],
)
def test_a_command_that_fails_is_one_sentence(command, sentence):
    with pytest.raises(CastmatesError, match=sentence):
        try_command(Command(command), print)


BURN = "import time\nwhile time.process_time() < 0.5: pass"
THREADS = """
import hashlib, sys, threading
work = dict(target=hashlib.pbkdf2_hmac, args=("sha256", b"a", b"b", 700_000))
each = [threading.Thread(**work) for _ in range(int(sys.argv[1]))]
[one.start() for one in each]
[one.join() for one in each]
"""


@pytest.mark.parametrize(
    ("command", "cpus"),
    [
        ([sys.executable, "-c", BURN], 1),
        ([sys.executable, "-c", THREADS, "1"], 1),
        ([sys.executable, "-c", THREADS, "3"], 3),
        (["sh", "-c", '"$0" -c "$1" & "$0" -c "$1" & wait', sys.executable, BURN], 2),
        (["sleep", "0.3"], 1),
    ],
)
def test_the_cpus_that_a_program_could_use_are_counted_however_busy_the_machine_is(command, cpus):
    assert try_command(Command(command), print).cpus == cpus


STEPS = """
import itertools, time
print("set up")
for number in itertools.count():
    print("step", number, flush=True)
    time.sleep(0.02)
"""


MB = 1_000_000
HOLD = "import time\nheld = b'x' * 300_000_000\n"
TWO = ["sh", "-c", '"$0" -c "$1" & "$0" -c "$1" & wait', sys.executable, f"{HOLD}time.sleep(1)"]


@pytest.mark.parametrize(
    ("command", "step_line", "least"),
    [([sys.executable, "-c", HOLD + STEPS], r"step (\d+)", 300 * MB), (TWO, "", 500 * MB)],
)
def test_memory_is_that_of_all_processes_also_of_those_that_are_ended(command, step_line, least):
    assert try_command(Command(command, step_line=step_line), print).bytes > least


def test_of_a_program_that_prints_its_steps_only_some_are_run():
    trial = try_command(Command([sys.executable, "-c", STEPS], step_line=r"step (\d+)", ready_line="set up"), print)
    assert 0.02 <= trial.seconds < 2.0
    assert trial.cpus == 1
    assert trial.bytes > 1_000_000


def test_of_a_program_that_prints_nothing_calls_are_counted():
    command = Command([sys.executable, "-c", STEPS], counted="libc.so.6:clock_nanosleep")
    if why := probe_points.refusal(probe_points.find(command.counted, os.environ["PATH"])):
        with pytest.raises(CastmatesError, match="run as root"):
            try_command(command, print)
        lacks("root", why)
    assert 0.02 <= try_command(command, print).seconds < 2.0


@pytest.mark.parametrize("pattern", ["stop", "step 3$"])
def test_a_step_line_that_matches_too_little_is_one_sentence(pattern):
    command = Command([sys.executable, "-c", "for n in range(5): print('step', n)"], step_line=pattern)
    with pytest.raises(CastmatesError, match=rf"ended with (no|1) lines? that match(es)? '{re.escape(pattern)}'"):
        try_command(command, print)


def test_a_command_gets_the_variables_that_are_named_and_few_others(tmp_path, monkeypatch):
    monkeypatch.setenv("NOT_HANDED_ON", "x")
    try_command(Command(["sh", "-c", f"env >{tmp_path}/seen"], {"MINE": "1 2"}), print)
    lines = (tmp_path / "seen").read_text().splitlines()
    assert "MINE=1 2" in lines
    assert not [line for line in lines if line.startswith("NOT_HANDED_ON")]


def test_a_run_that_goes_on_is_told_of_long_before_it_is_refused(monkeypatch):
    monkeypatch.setattr(command_trial, "NEWS", 0.2)
    said = []
    try_command(Command(["sleep", "1"]), said.append)
    assert "castmates measure --step-line REGEX -- sleep 1" in "".join(said)


def test_a_command_that_goes_on_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(command_trial, "LONGEST_RUN", 0.5)
    number = tmp_path / "number"
    with pytest.raises(CastmatesError, match="has not ended after"):
        try_command(Command(["sh", "-c", f"sleep 600 & echo $! >{number}; wait"]), print)
    if number.is_file() and number.read_text().strip():
        wait_for(lambda: has_ended(int(number.read_text())), "the end of what the command started")


TRIALS = {
    "measure": "from castmates.pipeline.command_trial import Command, try_command; "
    "try_command(Command(command), print)",
    "profile": "from pathlib import Path; from castmates.pipeline.followed_trial import Wish, try_steps; "
    "try_steps(Wish(command, 'it'), Path('cache'), print)",
}


@pytest.mark.parametrize("trial", TRIALS)
def test_nothing_of_a_first_run_outlives_a_command_that_is_killed(trial, tmp_path):
    number, scratch = tmp_path / "number", tmp_path / "scratch"
    scratch.mkdir()
    command = ["sh", "-c", f"setsid sleep 600 & echo $! >{number}; wait"]
    one = subprocess.Popen(
        [sys.executable, "-c", f"command = {command!r}; {TRIALS[trial]}"],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    wait_for(lambda: number.is_file() and number.read_text().strip(), "the first run has begun")
    one.kill()
    one.wait()
    wait_for(lambda: has_ended(int(number.read_text())), "the end of what the command started")
    wait_for(lambda: not list(scratch.iterdir()), "its folder is removed")
