"""The jobs of PyTorch and JAX, really run in their own interpreters."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from castmates import project
from castmates.files import cache_folder
from castmates.runner.cleanup.warden import guarded
from castmates.traces.reading import FILES, read
from castmates.trials.workloads.check import Places, check_one
from castmates.workloads import environments, phase_file
from castmates.workloads.heartbeat import Reader, State, create
from castmates.workloads.jaxjobs.shapes import SHAPES as JAX
from castmates.workloads.tfmodels.profile_page import FOLDER, VARIABLE, Page
from castmates.workloads.torchjobs.shapes import SHAPES as TORCH
from tests.unit.phases.written_ranges import phases_of
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
PLACES = Places(ROOT / "envs", cache_folder())
MODULES = {"torch": "castmates.workloads.torchjobs", "jax": "castmates.workloads.jaxjobs"}
PHASES = {
    ("torch", "train"): ["input", "forward", "backward", "optimizer"],
    ("torch", "infer"): ["input", "forward"],
    ("jax", "train"): ["input", "compiled"],
    ("jax", "infer"): ["input", "compiled"],
}
FIRST = {"torch": "dlrm", "jax": "mlp"}
EVERY_JOB = [(name, *job) for name, shapes in (("torch", TORCH), ("jax", JAX)) for job in shapes]

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module", params=MODULES)
def framework(request) -> str:
    environments.build(request.param, PLACES.envs, PLACES.cache)
    return request.param


def start(framework: str, beats: Path, *words: str, path: str = "", **more: str) -> subprocess.Popen:
    create(beats)
    inside = environments.environment_of(environments.location(framework, PLACES.envs, PLACES.cache))
    path = path or os.pathsep.join([inside["PATH"], os.environ["PATH"]])
    # Wrong thread counts, as a workflow engine may export them, must not reach the job.
    variables = inside | {"PATH": path, "CASTMATES_HEARTBEAT": str(beats), "OMP_NUM_THREADS": "64", "NPROC": "64"}
    command = ["python", *(words or ("-m", MODULES[framework], "--model", FIRST[framework]))]
    return subprocess.Popen(
        command, env=variables | more, cwd=beats.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def job(framework: str, model: str, *words: str) -> tuple[str, ...]:
    return "-m", MODULES[framework], "--model", model, *words


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_a_job_beats_once_a_step_and_tells_its_phases(framework, mode, tmp_path):
    phase_file.create(tmp_path / "phases")
    words = job(framework, FIRST[framework], "--mode", mode, "--steps", "3", "--threads", "1")
    process = start(framework, tmp_path / "beats", *words, CASTMATES_PHASES=str(tmp_path / "phases"))
    said, complaints = process.communicate(timeout=4 * PATIENCE)
    assert (process.returncode, complaints) == (0, "")
    facts = json.loads(said)
    assert (facts["model"], facts["mode"], facts["threads"], facts[framework]) == (
        FIRST[framework], mode, 1, facts[framework],
    )  # fmt: skip
    assert facts["parameters"] > 500_000
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FINISHED
        assert [units for _, units in reader.beats().records] == [1, 2, 3]
    reader = phase_file.Reader(tmp_path / "phases")
    phases = phases_of(reader)
    assert [one.name for one in phases] == PHASES[framework, mode] * 9
    assert all(after.begin_ns >= before.end_ns for before, after in itertools.pairwise(phases)), "phases overlap"


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_a_wrong_result_is_found(framework, mode, tmp_path):
    """Where a framework computes something else, or another thing than before, the job fails."""
    broken = {
        "train": "model.SHAPES['{job}', 'tiny'].known['train'] *= 1.01",
        "infer": "model.loop.TOLERANCE = 9; j.{name}.again = lambda self: 0.1",
    }[mode]
    code = (
        f"import sys; from {MODULES[framework]} import __main__ as model, job as j; {broken}; "
        "sys.argv = ['x', '--model', '{job}', '--mode', '{mode}', '--steps', '1']; sys.exit(model.main())"
    ).format(job=FIRST[framework], mode=mode, name={"torch": "TorchJob", "jax": "JaxJob"}[framework])
    process = start(framework, tmp_path / "beats", "-c", code)
    _, complaints = process.communicate(timeout=4 * PATIENCE)
    assert process.returncode == 3
    assert {"train": "instead of", "infer": "gives 0.1 now"}[mode] in complaints
    assert complaints.count("\n") == 1
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FAILED


def test_steps_are_traced_when_they_are_asked_for_and_lie_between_heartbeats(framework, tmp_path):
    page = Page.create(tmp_path / "page")
    asked = {VARIABLE: str(page.path), FOLDER: str(tmp_path / "traces")}
    process = start(framework, tmp_path / "beats", *job(framework, FIRST[framework], "--threads", "1"), **asked)
    try:
        with Reader(tmp_path / "beats") as reader:
            wait_for(lambda: reader.head >= 1 or process.poll() is not None, "the job makes steps")
            number = page.ask(2)
            answer = wait_for(lambda: page.answered(number), "the trace is there")
            beats = [t_ns for t_ns, _ in reader.beats().records]
    finally:
        process.kill()
        process.communicate()
    assert "error" not in answer
    (file,) = [file for pattern in FILES for file in (tmp_path / "traces" / "1").rglob(pattern)]
    trace = read(file).trace
    assert trace.steps == 2
    assert trace.works
    assert trace.calls.shared_ps.sum() > 0
    (steady, real, _), (later, real_later, _) = answer["clocks"]
    sure = abs((real - steady) - (real_later - later)) + 1_000_000  # nanoseconds that clocks may drift apart
    begin, end = (trace.origin_ns + each // 1000 - (real - steady) for each in (trace.step_begin_ps, trace.step_end_ps))
    assert steady - sure < begin[0] < end[-1] < later + sure
    first = answer["first_step"]
    for number in range(2):
        before, after = beats[first + number - 1], beats[first + number]
        assert before - sure < begin[number] < after < end[number] + sure


@pytest.mark.nightly
def test_sigterm_ends_an_endless_job_between_two_steps(framework, tmp_path):
    process = start(framework, tmp_path / "beats")
    try:
        with Reader(tmp_path / "beats") as reader:
            wait_for(lambda: reader.head >= 2 or process.poll() is not None, "the job makes steps")
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=PATIENCE)
            assert (process.returncode, complaints) == (0, "")
            assert reader.state is State.FINISHED
    finally:
        process.kill()


def test_without_the_framework_it_says_where_to_run(framework, tmp_path):
    process = start(framework, tmp_path / "beats", path=str(Path(sys.executable).parent))
    _, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert f"castmates internals build-environment {framework}" in complaints
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FAILED


def test_the_workloads_keep_their_promises(framework, compiler):
    promised(f"{framework}-{FIRST[framework]}-train-tiny")


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in project.read_catalogue(ROOT / "config/workloads")
                                  if name.partition("-")[0] in MODULES and not name.endswith("-gpu")])  # fmt: skip
def test_every_workload_keeps_its_promises(name, compiler):
    environments.build(name.partition("-")[0], PLACES.envs, PLACES.cache)
    promised(name)


def promised(name: str) -> None:
    environments.build(environments.NATIVE, PLACES.envs, PLACES.cache)
    with guarded() as warden:
        workload = project.read_catalogue(ROOT / "config/workloads")[name]
        result = check_one(name, workload, PLACES, 1.0, warden)
    assert result.verdict == "kept", result.why


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "model", "size"), EVERY_JOB)
@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize("source", ["pipeline", "memory"])
def test_every_job_computes_what_is_known_of_it(name, model, size, mode, source, tmp_path):
    environments.build(name, PLACES.envs, PLACES.cache)
    words = job(name, model, "--size", size, "--mode", mode, "--source", source, "--steps", "1")
    process = start(name, tmp_path / "beats", *words)
    _, complaints = process.communicate(timeout=4 * PATIENCE)
    assert (process.returncode, complaints) == (0, "")
