"""The Model Garden jobs, really run in their own interpreter."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from castmates.workloads import environments
from castmates.workloads.heartbeat import Reader, State, create

REPOSITORY = Path(__file__).parents[2]
FACTS = {"model", "size", "mode", "parameters", "batch", "tensorflow", "threads", "seconds_to_first_step"}

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def interpreter():
    cache = Path(os.environ.get("CASTMATES_CACHE") or REPOSITORY / ".cache")
    return environments.environment_of(environments.build("tfmodels", REPOSITORY / "envs", cache))


def start(interpreter: dict[str, str], beats: Path, *arguments: str) -> subprocess.Popen:
    create(beats)
    path = os.pathsep.join([interpreter["PATH"], os.environ["PATH"]])
    # A wrong thread count, as a workflow engine may export it, must not reach the job.
    variables = interpreter | {"PATH": path, "CASTMATES_HEARTBEAT": str(beats), "OMP_NUM_THREADS": "64"}
    command = ["python", "-m", "castmates.workloads.tfmodels", *arguments]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# Every model and both modes; each start takes a quarter of a minute.
@pytest.mark.parametrize(("model", "mode"), [("dlrm", "train"), ("mobilenetv2", "infer"), ("bert", "train")])
def test_a_job_beats_once_a_step_and_finishes(interpreter, tmp_path, model, mode):
    beats = tmp_path / "beats"
    job = start(interpreter, beats, "--model", model, "--mode", mode, "--steps", "3", "--threads", "1")
    said, complaints = job.communicate(timeout=300)
    assert job.returncode == 0, complaints
    facts = json.loads(said)
    assert facts.keys() == FACTS
    assert (facts["model"], facts["mode"], facts["threads"]) == (model, mode, 1)
    assert facts["parameters"] > 100_000
    with Reader(beats) as reader:
        assert reader.state is State.FINISHED
        assert [units for _, units in reader.beats().records] == [1, 2, 3]


def test_sigterm_ends_an_endless_job_between_two_steps(interpreter, tmp_path):
    beats = tmp_path / "beats"
    job = start(interpreter, beats, "--model", "dlrm", "--mode", "infer", "--batch", "8")
    with Reader(beats) as reader:
        while reader.head < 2 and job.poll() is None:
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        _, complaints = job.communicate(timeout=60)
        assert job.returncode == 0, complaints
        assert reader.state is State.FINISHED


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "gpt"], "invalid choice: 'gpt'"),
        (["--model", "dlrm", "--steps", "0"], "'0' is not a whole number from 1 on"),
        (["--model", "dlrm", "--batch", "1"], "its smallest is 2"),
        ([], "--model is missing"),
    ],
)
def test_bad_arguments_are_one_sentence(interpreter, tmp_path, arguments, sentence):
    job = start(interpreter, tmp_path / "beats", *arguments)
    _, complaints = job.communicate(timeout=60)
    assert job.returncode == 2
    assert sentence in complaints
    assert complaints.count("\n") == 1


def test_without_tensorflow_it_says_where_to_run(interpreter, tmp_path):
    import sys

    own = interpreter | {"PATH": str(Path(sys.executable).parent)}
    job = start(own, tmp_path / "beats", "--model", "dlrm")
    _, complaints = job.communicate(timeout=60)
    assert job.returncode == 2
    assert "castmates build-environment tfmodels" in complaints
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FAILED
