"""Programs in several people's idioms are profiled as they are; what is found is compared with what is known of them.

What is known: sleeps and bytes that are in the programs; how often the framework's own profiler, in a run without
Castmates, has each operation in a step; and what the framework's own marks and readers make of the same trace.
"""

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castmates.analysis.dataflow.summary import bounds
from castmates.analysis.dataflow.work import Graph, work_of
from castmates.files import cache_folder
from castmates.traces.graphs import read_graph
from castmates.traces.operations import WORKS, Trace
from castmates.traces.reading import FILES, read
from castmates.workloads import environments, heartbeat
from castmates.workloads.tfmodels.profile_page import FOLDER, GRAPH, VARIABLE, Page
from tests.waiting import PATIENCE, wait_for

HERE = Path(__file__).parent
ENVS = HERE.parents[1] / "envs"
STEPS = 8
MS = 1e9  # picoseconds
CLOSE = 0.03  # of a step, between two ways to add up the same trace

pytestmark = pytest.mark.tensorflow


@dataclass(frozen=True)
class Case:
    """A program, and what is known of it."""

    steps: int = STEPS  # in the trace: whole epochs, where epochs are short
    counted: bool = True  # every step calls the same operations: as many as the profiler's table has
    marked: bool = True  # optimizers do nothing else, and nothing is theirs before them
    input_ms: float = 0.0  # at least, of a step, waits for its batch
    other_ms: float = 0.0  # at least, of a step, is something else
    layers: tuple[str, ...] = ()
    calls: Mapping[str, int] = field(default_factory=dict)  # of operations or functions in a step
    step_function: str = ""
    rounds: int = 0  # of its loop in a step, whose work XLA counts once; 0: other programs run in a step, too
    chains: int = 0  # of equally many products that do not need each other, where it only goes forward
    products: float = 0.0  # operations of products and convolutions in a step, counted by hand


TORCH = {
    "mnist": Case(counted=False, layers=("Net/conv1", "Net/fc1", "Adadelta")),  # its epochs end with an evaluation
    "slow_data": Case(10, input_ms=20, other_ms=10, layers=("Model/0", "CrossEntropyLoss", "SGD")),
    "workers": Case(counted=False, layers=("RMSprop",)),
    "gan": Case(layers=("Generator/main/0", "Discriminator/main/2", "BCEWithLogitsLoss"), calls={"leaky_relu": 3}),
    "accumulation": Case(marked=False, layers=("Sequential/1", "AdamW"), calls={"gelu": 4, "mse_loss": 4}),
    "amp": Case(marked=False, layers=("Sequential/0", "SGD"), calls={"nll_loss_forward": 1}),
    "lbfgs": Case(2, marked=False, layers=("Sequence/lstm", "LBFGS"), calls={"lstm_cell": 19 * 4}),
    "compiled": Case(layers=("compiled 0.0", "Adam")),
    "compiled_function": Case(layers=("compiled 0.0", "NAdam")),
    "language": Case(layers=("GPT/blocks/1/project", "GPT/head"), calls={"scaled_dot_product_attention": 2}),
    "trainer": Case(marked=False, layers=("AutoEncoder/encoder", "Adagrad"), calls={"mse_loss": 1}),
    "policy": Case(layers=("Sequential/2", "Adam"), calls={"multinomial": 10}),
    "sparse": Case(marked=False, layers=("Towers/users", "SparseAdam", "Adam"), calls={"embedding_bag": 2}),
    "memory": Case(layers=("Linear", "SGD")),
}
JAX = {
    "scratch": Case(calls={"update": 1}),
    "adam": Case(layers=("encoder", "decoder", "optimizer"), calls={"train_step": 1}, rounds=1),
    "slow_data": Case(other_ms=20, calls={"step": 1}, rounds=1),
    "scan": Case(calls={"epoch": 1}, rounds=10),
    "method": Case(calls={"train": 1, "augment": 1}),
    "parallel": Case(),
    "ahead": Case(),
}
TENSORFLOW = {
    "keras_fit": Case(input_ms=20, layers=("sequential/dense",), products=2 * 16 * (2 * 32 * 64 + 3 * 64)),
    "keras_train_step": Case(layers=("denoiser/dense",), products=2 * 64 * 5 * 64 * 128),
    "keras_batches": Case(
        other_ms=10, layers=("sequential/dense",), products=2 * 8 * (2 * 4 * 4 * 4 * 3 * 3 * 2 + 3 * 64 * 4)
    ),
    "tf_loop": Case(marked=False, other_ms=10, step_function="train_step", products=2 * 128 * 2 * 64 * 64),
    "tf_chains": Case(marked=False, step_function="one_step", chains=4, products=24 * 2 * 384**3),
}
# At landings, besides which all run nightly: each kind of loop, input that is slow, compiled code.
LANDINGS = {"accumulation", "slow_data", "compiled", "adam", "scan", "keras_fit", "tf_loop"}


def each_of(cases: Mapping[str, Case]) -> list[Any]:
    return [pytest.param(name, marks=() if name in LANDINGS else pytest.mark.nightly) for name in cases]


def test_there_are_twenty_programs_and_each_is_compared_with_something():
    programs = {file.stem for file in (HERE / "foreign").glob("*.py")} - {"torch_by_hand", "keras_backend"}
    assert programs == {f"torch_{each}" for each in TORCH} | {f"jax_{each}" for each in JAX} | set(TENSORFLOW)
    assert len(programs) >= 20


@pytest.mark.parametrize("name", each_of(TORCH))
def test_a_program_of_pytorch(name, tmp_path):
    case, script = TORCH[name], HERE / "foreign" / f"torch_{name}.py"
    file, answer = traced("torch", script, tmp_path, case)
    found = read(file)
    shares = checked(found.trace, case)
    counts = Counter(found.trace.operations[place].type for place in in_steps(found.trace))
    per_step = {type_: count / case.steps for type_, count in counts.items()}
    assert per_step | case.calls == per_step
    assert not any("frame_compile" in type_ for type_ in counts), "it was compiled again to be traced"
    if case.counted:
        assert flops_of(found.trace, types=PRODUCTS) == said_of("torch_flops", script, case.steps, tmp_path)
        table = said_of("torch_table", script, case.steps, tmp_path)
        assert {type_: number for type_, number in per_step.items() if type_ in table} == table
    marks = marks_of(file)
    assert shares["input"] == pytest.approx(marks["input"], abs=CLOSE)
    assert marks["backward"] - shares[""] - CLOSE < shares["backward"] < marks["backward"] + CLOSE
    if case.marked:
        assert shares["optimizer"] == pytest.approx(marks["optimizer"], abs=CLOSE)
    if name == "memory":
        assert Counter(found.memory.change[found.memory.step >= 0].tolist())[1 << 22] == case.steps
    assert set(answer["versions"]) == {"python", "torch"}


@pytest.mark.parametrize("name", each_of(JAX))
def test_a_program_of_jax(name, tmp_path):
    case = JAX[name]
    script = HERE / "foreign" / f"jax_{name}.py"
    file, _ = traced("jax", script, tmp_path, case)
    trace = read(file).trace
    shares = checked(trace, case)
    theirs = json.loads(said("jax", [str(HERE / "references" / "jax_events.py"), str(file)]))
    assert theirs["steps"] == case.steps
    assert {each: theirs["calls"].get(each, 0) for each in case.calls} == {
        each: number * case.steps for each, number in case.calls.items()
    }
    works = [place for place in in_steps(trace) if trace.operations[place].level == WORKS]
    assert len(works) == sum(theirs["instructions"].values())
    assert shares["forward"] + shares["backward"] + shares["optimizer"] + shares["own"] >= theirs["work"] - CLOSE
    assert {"forward", "backward"} <= {trace.operations[place].place.direction for place in works}
    if case.rounds:
        told = json.loads(said("jax", [str(HERE / "references" / "jax_cost.py"), str(script), *case.calls]))
        assert flops_of(trace, case.layers) == pytest.approx(told * case.rounds, rel=1e-4)


@pytest.mark.parametrize("name", each_of(TENSORFLOW))
def test_a_program_of_tensorflow(name, tmp_path):
    case = TENSORFLOW[name]
    file, _ = traced("tfmodels", HERE / "foreign" / f"{name}.py", tmp_path, case)
    trace = read(file).trace
    checked(trace, case)
    wanted = {"forward", *([] if case.chains else ["backward"]), *(["optimizer"] if case.marked else [])}
    assert wanted <= {trace.operations[at].place.direction for at in in_steps(trace)}
    graph = read_graph((tmp_path / f"page.left.{GRAPH}").read_bytes())
    work = [work_of(node.does).flops for node in graph.nodes if re.search("MatMul|Conv", node.does.type)]
    assert sum(work) == case.products
    if case.chains:
        source, target = np.array([edge[:2] for edge in graph.edges], np.int64).T
        products = np.array([["MatMul" in node.does.type for node in graph.nodes]], np.int64)
        found = bounds(Graph(len(graph.nodes), source, target), products)
        assert found.work[0] == case.chains * found.longest[0]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_keras_trains_by_pytorch_and_by_jax(name, tmp_path):
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tmp_path / "keras"), "keras"]
    subprocess.run(pip, check=True, timeout=8 * PATIENCE)
    file, answer = traced(name, HERE / "foreign" / "keras_backend.py", tmp_path, Case())
    trace = read(file).trace
    shares = checked(trace, Case())
    assert set(answer["versions"]) == {"python", name, "keras"}
    assert shares["backward"] > shares["optimizer"] > 0
    works = [trace.operations[place] for place in in_steps(trace) if "conv" in trace.operations[place].type]
    found = Counter((each.type, each.place.direction) for each in works)
    # Of two layers. Each has a gradient of its weights, and the second one also of its input, which JAX computes apart.
    if name == "torch":
        assert found["conv2d", "forward"] == found["convolution_backward", "backward"] == 2 * STEPS
    else:
        assert found["conv_general_dilated", "forward"] == 2 * STEPS
        assert found["conv_general_dilated", "backward"] >= 3 * STEPS


@pytest.mark.parametrize(
    "name", ["slow_data", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("accumulation", "memory"))]
)
def test_the_screen_that_ends_a_profile_says_what_is_known_of_the_program(name, tmp_path):
    script = HERE / "foreign" / f"torch_{name}.py"
    words = ["profile", "--beside", "", "--environment", "torch", "--traced", "1", "--times", "2", "--name", "known"]
    here = os.environ | {"CASTMATES_CACHE": str(cache_folder().absolute()), "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "castmates", *words, "--steps", "10", "--", "python", str(script)], cwd=tmp_path,
        env=here, capture_output=True, text=True, timeout=16 * PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 40
    shares = {kind: int(share) / 100 for kind, share in re.findall(r"([a-z]+) (\d+) %[,.]", done.stdout)}
    files = [*(tmp_path / "results").rglob("traces/alone/*/**/*.json.gz")]
    lengths = [
        float((trace.step_end_ps - trace.step_begin_ps).mean()) for trace in (read(file).trace for file in files)
    ]
    marks = [marks_of(file) for file in files]
    assert len(marks) == 2
    theirs = {kind: np.average([each[kind] for each in marks], weights=lengths) for kind in ("input", "backward")}
    assert shares.get("input", 0.0) == pytest.approx(theirs["input"], abs=CLOSE)
    least = theirs["backward"] - shares["idle"] - CLOSE  # a mark of PyTorch has the time between its operations too
    assert least < shares.get("backward", 0.0) < theirs["backward"] + CLOSE
    (ms,) = re.findall(r"and ([\d.]+) ms while it is traced", done.stdout)
    if name == "slow_data":
        assert shares["input"] * float(ms) > TORCH[name].input_ms * 0.98  # per cent are rounded
        assert shares["idle"] * float(ms) > TORCH[name].other_ms * 0.98
        assert "! Steps wait for their input (suspected: too few launches for an interval)" in done.stdout
    if name == "memory":
        (given,) = re.findall(r"([\d.]+) MB for empty", done.stdout)
        assert float(given) == pytest.approx((1 << 22) / 1e6, abs=0.01)
    page = next((tmp_path / "results").rglob("report/index.html")).read_text()
    assert "no losses measured" in page


def checked(trace: Trace, case: Case) -> dict[str, float]:
    """The shares of a step by direction; planted sleeps and names are there."""
    assert trace.steps == case.steps
    shares = shares_of(trace)
    step_ms = float((trace.step_end_ps - trace.step_begin_ps).sum()) / MS / trace.steps
    assert shares["input"] * step_ms >= case.input_ms
    assert (1 - shares["input"]) * step_ms >= case.other_ms
    layers = {trace.operations[place].place.layer for place in in_steps(trace)}
    assert layers >= set(case.layers)
    return shares


def shares_of(trace: Trace) -> dict[str, float]:
    """What operations of each direction take of the steps; "own" are the framework's own copies."""
    whole, found = float((trace.step_end_ps - trace.step_begin_ps).sum()), Counter(dict.fromkeys(KINDS, 0.0))
    for place, shared in zip(trace.calls.operation.tolist(), trace.calls.shared_ps.tolist(), strict=True):
        operation = trace.operations[place]
        own = operation.level == WORKS and not operation.place.direction
        found["own" if own else operation.place.direction] += shared / whole
    return found


def flops_of(trace: Trace, layers: tuple[str, ...] = (), types: str = ".*") -> float:
    """What operations of these layers and types compute in a step, as far as it is known."""
    work = [trace.operations[place] for place in in_steps(trace)]
    work = [
        one for one in work if re.fullmatch(types, one.type) and (not layers or one.place.layer.split("/")[0] in layers)
    ]
    return float(np.nansum([one.work.flops for one in work])) / trace.steps


PRODUCTS = r"(add|b|badd)?mm|mkldnn_convolution|convolution_backward"  # what PyTorch's counter knows, too
KINDS = ("input", "forward", "backward", "optimizer", "own", "")


def in_steps(trace: Trace) -> list[int]:
    """The operation of each call that begins in a step."""
    return trace.calls.operation[trace.calls.step >= 0].tolist()


def marks_of(file: Path) -> dict[str, float]:
    """What PyTorch's own marks cover of the steps: operations under optimizers, gradients, waits for a loader."""
    events = [one for one in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"] if one.get("ph") == "X"]
    spans: dict[str, list[tuple[float, float]]] = {"step": [], "optimizer": [], "backward": [], "input": [], "any": []}
    names = {
        "castmates_step": "step", "Optimizer.": "optimizer", "autograd::engine": "backward",
        "enumerate(DataLoader)": "input", "castmates_input": "input", "aten::": "any",
    }  # fmt: skip
    for event in events:
        kind = next((kind for name, kind in names.items() if event["name"].startswith(name)), "")
        if kind and event.get("cat") in ("cpu_op", "user_annotation"):
            spans[kind].append((event["ts"], event["ts"] + event["dur"]))
    steps = merged(spans["step"])
    whole = length(steps)
    optimizer = common(merged(spans["optimizer"]), merged(spans["any"]))
    found = {"optimizer": optimizer, "backward": merged(spans["backward"]), "input": merged(spans["input"])}
    return {kind: length(common(each, steps)) / whole for kind, each in found.items()}


Spans = list[tuple[float, float]]


def merged(spans: Spans) -> Spans:
    found: Spans = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def common(some: Spans, others: Spans) -> Spans:
    both = ((max(a, c), min(b, d)) for a, b in some for c, d in others)
    return [(begin, end) for begin, end in both if begin < end]


def length(spans: Spans) -> float:
    return float(np.sum([end - begin for begin, end in spans]))


def inside(name: str) -> dict[str, str]:
    """The variables of an environment, with one thread: what is asked is who takes time, not how well threads do."""
    own = environments.environment_of(environments.build(name, ENVS.absolute(), cache_folder()))
    path = os.pathsep.join([own["PATH"], os.environ["PATH"]])
    return own | {
        "PATH": path,
        "HOME": os.environ.get("HOME", "/"),
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TORCHINDUCTOR_CACHE_DIR": str(cache_folder().resolve() / "torchinductor"),  # a compiler runs for each program
    }


def said(name: str, words: list[str]) -> str:
    done = subprocess.run(
        ["python", *words], env=inside(name), capture_output=True, text=True, timeout=8 * PATIENCE, check=True
    )
    return done.stdout


def said_of(reference: str, script: Path, steps: int, folder: Path) -> Any:
    """What a reference finds in a run of its own, without Castmates."""
    reader, writer = os.pipe()
    words = [str(HERE / "references" / f"{reference}.py"), str(script), str(steps)]
    shell = f'exec python "$@" 3>&{writer}'
    done = subprocess.run(
        ["bash", "-c", shell, "bash", *words], env=inside("torch"), pass_fds=[writer], cwd=folder, timeout=8 * PATIENCE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        content = file.read()
    assert content, done.stderr
    return json.loads(content)


@contextmanager
def started(name: str, script: Path, folder: Path, step_function: str) -> Iterator[tuple[subprocess.Popen, Page]]:
    """A program that is followed."""
    heartbeat.create(folder / "beats")
    page = Page.create(folder / "page")
    plain = inside(name) | {heartbeat.VARIABLE: str(folder / "beats"), "TMPDIR": str(folder)}
    plain |= {VARIABLE: str(folder / "page"), FOLDER: str(folder / "traces")}
    plain |= environments.variables(plain, step_function, folder / "cache")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["python", str(script)], env=plain, cwd=folder, stdout=log, stderr=log)
    try:
        yield process, page
    finally:
        process.kill()
        process.wait()
        page.close()


def traced(name: str, script: Path, folder: Path, case: Case) -> tuple[Path, dict[str, Any]]:
    """The trace of a program's steps, and its answer."""
    with started(name, script, folder, case.step_function) as (process, page):
        with heartbeat.Reader(folder / "beats") as reader:
            wait_for(lambda: reader.head > 2 or process.poll() is not None, "steps")
        number = page.ask(case.steps)
        answer = wait_for(lambda: page.answered(number) or process.poll() is not None, "the answer")
    assert isinstance(answer, dict), (folder / "log").read_text()
    assert "error" not in answer
    (file,) = (file for pattern in FILES for file in (folder / "traces").rglob(pattern))
    return file, answer
