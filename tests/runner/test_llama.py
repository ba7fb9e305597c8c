"""Requests to a language model, really answered by llama.cpp, and compared with its own account of them."""

import json
import os
import statistics
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from castmates.files import cache_folder
from castmates.workloads import environments, inputs, phase_file, request_file
from castmates.workloads.heartbeat import Reader, State, create
from castmates.workloads.llamajobs.__main__ import KNOWN
from tests.unit.phases.written_ranges import phases_of
from tests.waiting import PATIENCE

ENVS, CACHE = Path(__file__).parents[2] / "envs", cache_folder()
JOB = ("-P", "-m", "castmates.workloads.llamajobs")
# The job, which also prints llama.cpp's own account of each request.
TOLD = """
import sys
import llama_cpp
from castmates.workloads.llamajobs import __main__ as job
from castmates.workloads.llamajobs.job import LlamaJob
step = LlamaJob.step

def told(self, number):
    llama_cpp.llama_perf_context_reset(self.context)
    value = step(self, number)
    its = llama_cpp.llama_perf_context(self.context)
    print([its.n_p_eval, its.t_p_eval_ms, its.n_eval, its.t_eval_ms], flush=True)
    return value

LlamaJob.step = told
sys.exit(job.main())
"""

# Compiling llama.cpp takes minutes.
pytestmark = [pytest.mark.tensorflow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def place() -> Path:
    return environments.build("llama", ENVS, CACHE)


@pytest.fixture(scope="module")
def model(place) -> Path:
    return inputs.build("llama-tiny", ENVS, CACHE) / "model.gguf"


def run(place: Path, folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess:
    create(folder / "beats")
    found = environments.environment_of(place)
    path = os.pathsep.join([found["PATH"], os.environ["PATH"]])
    variables = found | {"PATH": path, "CASTMATES_HEARTBEAT": str(folder / "beats")} | more
    return subprocess.run(
        ["python", *words], env=variables, cwd=folder, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
    )


def test_the_phases_are_what_llama_cpp_itself_counts(place, model, tmp_path):
    """Its time of the prompt is in `prefill`, its time of further tokens in `decode`, and nearly all of both."""
    phase_file.create(tmp_path / "phases")
    words = ("--model", str(model), "--threads", "1", "--steps", "40", "--prompt", "64")
    done = run(place, tmp_path, "-P", "-c", TOLD, *words, CASTMATES_PHASES=str(tmp_path / "phases"))
    assert done.returncode == 0, done.stderr
    facts, *_ = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    theirs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert (facts["layers"], facts["parameters"]) == (2, 2 * (4 * 256**2 + 3 * 256 * 704 + 2 * 256) + 256 * 4097)
    header = model.stat().st_size - facts["bytes"]
    assert 0 < header < 4096, "all that the file holds is weights"
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FINISHED
        assert [units for _, units in reader.beats().records] == list(range(1, 41))
    ours = phases_of(phase_file.Reader(tmp_path / "phases"))
    assert [one.name for one in ours] == ["prefill", "decode"] * 47  # with those of the warm-up, and the first again
    assert all(after.begin_ns >= before.end_ns for before, after in pairwise(ours))
    assert {(prompt, tokens) for prompt, _, tokens, _ in theirs} == {(64, 16)}
    for phases, its in ((ours[::2], 1), (ours[1::2], 3)):
        more = [(one.end_ns - one.begin_ns) / 1e6 - each[its] for one, each in zip(phases, theirs, strict=True)]
        usual = statistics.median(each[its] for each in theirs)
        assert min(more) > -0.01, "llama.cpp's time lies within the phase"
        assert statistics.median(more) < 0.25 * usual


def test_requests_are_answered_by_a_schedule(place, model, tmp_path):
    request_file.create(tmp_path / "requests")
    words = ("--model", str(model), "--threads", "1", "--steps", "50", "--load", "40", "--arrivals", "3")
    done = run(place, tmp_path, *JOB, *words, CASTMATES_REQUESTS=str(tmp_path / "requests"))
    assert done.returncode == 0, done.stderr
    records = np.frombuffer(request_file.Runners(tmp_path / "requests").read(0).data, np.uint64).reshape(-1, 3)
    due, sent, answered = records.astype(np.int64).T
    assert len(due) == 50
    assert (np.diff(due) > 0).all()
    assert ((sent >= due) & (answered > sent)).all()
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FINISHED


def test_what_is_wrong_is_one_sentence(place, model, tmp_path):
    (tmp_path / "half.gguf").write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    for words, status, said in (
        (("--model", "none.gguf"), 2, "--model none.gguf is no file"),
        (("--model", "half.gguf"), 2, "cannot read the model half.gguf"),
        (("--model", str(model), "--generate", "0"), 2, "'0' is not a whole number from 1 on"),
    ):
        (tmp_path / "beats").unlink(missing_ok=True)
        done = run(place, tmp_path, *JOB, *words)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
        assert said in done.stderr


def test_a_model_of_other_weights_is_found(place, model, tmp_path):
    """A file of the same size with other weights: the known value is not reached."""
    content = bytearray(model.read_bytes())
    content[-100_000:] = bytes(100_000)
    (tmp_path / "other.gguf").write_bytes(content)
    assert len(content) in KNOWN
    done = run(place, tmp_path, *JOB, "--model", "other.gguf", "--threads", "1", "--steps", "1")
    assert done.returncode == 3
    assert "computes differently" in done.stderr
