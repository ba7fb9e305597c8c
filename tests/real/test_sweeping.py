"""Whoever ends a command that sweeps ends Snakemake and its jobs with it, in good order, and in bounded time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import has_ended, has_signal
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
ASKS = (
    "import sys; from pathlib import Path; from castmates.pipeline import snakemake; "
    "{}snakemake.sweep(Path('x.yaml'), '1', print)"
)
SHORT = "snakemake.outliving_command.ESCALATION = ((2, 0.3), (15, 0.3), (9, 5)); "
# A job as Snakemake starts one: a shell, and a program that puts everything right as soon as it may.
JOB = """
import pathlib, signal, time
def put_right(*_):
    pathlib.Path('putting').touch()
    while not pathlib.Path('may').exists():
        time.sleep(0.02)
    pathlib.Path('right').touch()
    raise SystemExit
signal.signal(signal.SIGINT, put_right)
while not pathlib.Path('waiting').exists():
    time.sleep(0.02)
pathlib.Path('begun').touch()
time.sleep(600)
"""
SNAKEMAKE = f"""
import pathlib, subprocess, sys
try:
    job = subprocess.Popen(['bash', '-c', 'set -e; echo $$ > job; "$0" -c "$1"; true', sys.executable, {JOB!r}])
    pathlib.Path('waiting').touch()
    job.wait()
except KeyboardInterrupt:
    job.wait()
    pathlib.Path('done').touch()
    sys.exit(1)
"""
DEAF = """
import os, pathlib, signal, time
for number in (2, 15, 1):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    pathlib.Path('job').write_text(str(os.getpid()))
    pathlib.Path('begun').touch()
time.sleep(600)
"""


@pytest.fixture
def asking(tmp_path):
    """Starts a command that sweeps, with a Snakemake of ours, and waits until its job has begun."""
    started = []

    def start(snakemake: str, before: str = "", **options):
        (tmp_path / "snakemake.py").write_text(snakemake)
        path = os.pathsep.join((str(tmp_path), str(ROOT)))
        words = [sys.executable, "-c", ASKS.format(before)]
        one = subprocess.Popen(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, text=True, **options)
        started.append(one)
        wait_for((tmp_path / "begun").exists, "the job has begun")
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_command_alone_lets_the_sweep_put_everything_right(tmp_path, asking, number):
    one = asking(SNAKEMAKE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    one.send_signal(number)
    wait_for((tmp_path / "putting").exists, "the job puts everything right")
    one.send_signal(number)  # whoever asks twice does not disturb it
    wait_for(lambda: not has_signal("ShdPnd", one.pid, number), "the second signal is taken")
    (tmp_path / "may").touch()
    said = one.communicate(timeout=PATIENCE)[0]
    assert one.returncode == 128 + number
    assert (tmp_path / "right").exists()
    assert (tmp_path / "done").exists()
    wait_for(lambda: has_ended(int((tmp_path / "job").read_text())), "the job ends")
    assert f"{number.name} came" in said
    assert "Traceback" not in said


def test_before_any_job_has_begun_it_ends_at_once_and_without_a_traceback(asking):
    one = asking(
        "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(600)",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    one.terminate()
    said = one.communicate(timeout=PATIENCE)[0]
    assert one.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in said


def test_what_does_not_want_to_end_is_killed_with_its_children(tmp_path, asking):
    one = asking(DEAF, SHORT)
    one.terminate()
    assert one.wait(PATIENCE) == 128 + signal.SIGTERM
    wait_for(lambda: has_ended(int((tmp_path / "job").read_text())), "the job ends")


def test_a_signal_that_is_ignored_stays_so_and_in_the_background_the_sweep_can_still_be_ended(tmp_path, asking):
    # As `nohup … &` in a script does it: HUP and INT are ignored.
    ignore = "import signal; signal.signal(1, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN); "
    one = asking(SNAKEMAKE, ignore)
    for number in (signal.SIGHUP, signal.SIGINT):
        one.send_signal(number)
        wait_for(lambda number=number: not has_signal("ShdPnd", one.pid, number), f"{number.name} is taken")
    (tmp_path / "may").touch()
    one.terminate()  # the status shows whom it obeyed
    assert one.wait(PATIENCE) == 128 + signal.SIGTERM
    assert (tmp_path / "done").exists()


def test_the_status_of_a_sweep_that_failed_is_told(asking):
    one = asking("import pathlib, sys; pathlib.Path('begun').touch(); sys.exit(3)", stderr=subprocess.PIPE)
    assert "ended with status 3" in one.communicate(timeout=PATIENCE)[1]
    assert one.returncode == 1


def test_a_sweep_ends_when_the_command_was_killed(tmp_path, asking):
    one = asking("import os, pathlib, time; pathlib.Path('job').write_text(str(os.getpid()))\n"
                 "pathlib.Path('begun').touch(); time.sleep(600)")  # fmt: skip
    one.kill()
    wait_for(lambda: has_ended(int((tmp_path / "job").read_text())), "the job ends")


def test_the_job_of_a_sweep_whose_command_was_killed_puts_everything_right(tmp_path, asking):
    waits = "import signal; signal.signal(15, lambda *_: None)\n"  # for its jobs, where SIGTERM comes
    one = asking(waits + SNAKEMAKE)
    one.kill()
    (tmp_path / "may").touch()
    wait_for(lambda: has_ended(int((tmp_path / "job").read_text())), "the job ends")
    wait_for((tmp_path / "done").exists, "Snakemake has waited for it")
    assert (tmp_path / "right").exists()
