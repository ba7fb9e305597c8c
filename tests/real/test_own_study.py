"""`castmates measure` tries a command before it writes a study of it."""

import os
import subprocess
import sys

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline import own_study
from castmates.pipeline.own_study import study_of, try_command
from castmates.project import load, read_catalogue
from castmates.shipped import catalogue, environments
from tests.processes import has_ended
from tests.waiting import wait_for


def test_a_command_that_ends_well_is_tried_and_a_study_of_it_can_be_planned(tmp_path, monkeypatch):
    known = read_catalogue(catalogue())
    (tmp_path / "envs").symlink_to(environments().resolve())
    monkeypatch.chdir(tmp_path)
    file = study_of([sys.executable, "-c", "bytes(50_000_000)"], ["stream"], "mine", known)
    study = load(file).study
    assert study.workloads["mine"].words[1:] == ["-c", "bytes(50_000_000)"]
    assert study.workloads["mine"].memory_bytes > 50_000_000


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["sh", "-c", "echo first >&2; echo no such input >&2; exit 3"], r'sh ended with status 3: it wrote "no such '),
        (["no-such-program-anywhere"], "no-such-program-anywhere cannot be started: No such file or directory"),
        ([os.devnull], "cannot be started: Permission denied"),
    ],
)
def test_a_command_that_fails_is_one_sentence(command, sentence):
    with pytest.raises(CastmatesError, match=sentence):
        try_command(command)


def test_a_command_that_goes_on_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(own_study, "LONGEST_RUN", 0.5)
    number = tmp_path / "number"
    with pytest.raises(CastmatesError, match="has not ended after"):
        try_command(["sh", "-c", f"sleep 600 & echo $! >{number}; wait"])
    if number.is_file() and number.read_text().strip():
        wait_for(lambda: has_ended(int(number.read_text())), "the end of what the command started")


TRIALS = {
    "measure": "from castmates.pipeline.own_study import try_command; try_command(command)",
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
