"""The Model Garden jobs, really run in their own interpreter on data sets that were really made."""

import dataclasses
import itertools
import json
import os
import subprocess
import sys
from glob import glob
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.dataflow.summary import PARTS, path_traces
from castmates.analysis.dataflow.work import work_of
from castmates.analysis.explanations.layers import layer_place
from castmates.analysis.keys import TRACE
from castmates.runner.profiles.tables import Aligned
from castmates.runner.tracing.paths import traced_steps
from castmates.traces.graphs import read_graph
from castmates.traces.operations import WORKS, read_trace
from castmates.workloads import environments, inputs, phase_file
from castmates.workloads.heartbeat import Reader, State, create
from castmates.workloads.phase_records import Phase
from castmates.workloads.tfmodels import jobs
from castmates.workloads.tfmodels.anew import StorageBytes
from castmates.workloads.tfmodels.profile_page import GRAPH, Input, Page
from castmates.workloads.tfmodels.wish import SOURCES, Wish
from tests.unit.phases.written_ranges import phases_of
from tests.waiting import PATIENCE, wait_for

REPOSITORY = Path(__file__).parents[2]
ENVS = REPOSITORY / "envs"
CACHE = Path(os.environ.get("CASTMATES_CACHE") or REPOSITORY / ".cache")
JOBS = "castmates.workloads.tfmodels"
FACTS = {field.name for field in dataclasses.fields(Wish)} | {
    "parameters",
    "tensorflow",
    "seconds",
    "seconds_to_first_step",
}
EVERYTHING = list(itertools.product(jobs.MODELS, jobs.MODES, SOURCES))  # ten minutes

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def interpreter():
    return environments.environment_of(environments.build("tfmodels", ENVS, CACHE))


def data_of(model: str, size: str = "tiny") -> str:
    folder = inputs.build(jobs.SHAPES[model, size].inputs, ENVS, CACHE)
    return str(folder / ("*.tsv" if model == "dlrm" else "*.tfrecord"))


def start(interpreter: dict[str, str], beats: Path, *words: str, module: str = JOBS, **more: str) -> subprocess.Popen:
    create(beats)
    path = os.pathsep.join([interpreter["PATH"], os.environ["PATH"]])
    # A wrong thread count, as a workflow engine may export it, must not reach the job.
    variables = interpreter | {"PATH": path, "CASTMATES_HEARTBEAT": str(beats), "OMP_NUM_THREADS": "64"} | more
    variables["TMPDIR"] = str(beats.parent)  # a killed job leaves what AutoGraph generated
    command = ["python", "-m", module, *words]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def counted(beats: Path) -> list[int]:
    with Reader(beats) as reader:
        assert reader.state is State.FINISHED
        return [units for _, units in reader.beats().records]


def test_a_job_reads_its_records_beats_once_a_step_and_tells_its_phases(interpreter, tmp_path):
    phase_file.create(tmp_path / "phases")
    words = ["--model", "mobilenetv2", "--steps", "3", "--threads", "1", "--data", data_of("mobilenetv2")]
    job = start(interpreter, tmp_path / "beats", *words, CASTMATES_PHASES=str(tmp_path / "phases"))
    said, complaints = job.communicate(timeout=4 * PATIENCE)
    assert job.returncode == 0, complaints
    facts, medians = map(json.loads, said.splitlines())
    assert facts.keys() == FACTS
    assert (facts["model"], facts["mode"], facts["threads"], facts["source"]) == ("mobilenetv2", "train", 1, "records")
    assert facts["parameters"] > 1_000_000
    assert counted(tmp_path / "beats") == [1, 2, 3]
    assert_they_follow_each_other(told(tmp_path / "phases"), at_least=5)  # the first, the warm-up and the counted ones
    assert medians["unclear_steps"] == 0
    assert all(medians["phases_ms"][phase] > 0.1 for phase in ("forward", "backward", "optimizer"))


def told(path: Path) -> list[Phase]:
    reader = phase_file.Reader(path)
    return phases_of(reader)


def assert_they_follow_each_other(phases: list[Phase], at_least: int) -> None:
    assert len(phases) >= 4 * at_least
    names = ["input", "forward", "backward", "optimizer"]
    assert [one.name for one in phases] == names * (len(phases) // 4)
    assert all(after.begin_ns >= before.end_ns for before, after in itertools.pairwise(phases)), "phases overlap"
    assert all(one.end_ns - one.begin_ns > 100_000 for one in phases if one.name in ("forward", "backward"))


OFFICIAL = {
    "runtime": {"enable_xla": False},
    "task": {
        "model": {
            "encoder": {"bert": {"num_layers": 1, "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 8_000}},
            "cls_heads": [{"inner_dim": 64, "num_classes": 2, "name": "next_sentence"}],
        },
        "train_data": {"global_batch_size": 4, "seq_length": 64, "max_predictions_per_seq": 8},
    },
    "trainer": {
        "train_steps": 9,
        "steps_per_loop": 4,
        "optimizer_config": {
            "learning_rate": {"polynomial": {"decay_steps": 100}},
            "warmup": {"polynomial": {"warmup_steps": 10}},
        },
    },
}


@pytest.mark.nightly
def test_an_official_command_beats_once_a_step_whatever_its_inner_loop(interpreter, tmp_path):
    OFFICIAL["task"]["train_data"]["input_path"] = data_of("bert")
    words = ["official.nlp.train", "--experiment=bert/pretraining", "--mode=train", f"--model_dir={tmp_path / 'model'}"]
    words.append(f"--params_override={json.dumps(OFFICIAL)}")
    phase_file.create(tmp_path / "phases")
    told_to = {"CASTMATES_PHASES": str(tmp_path / "phases")}
    job = start(interpreter, tmp_path / "beats", "--threads", "1", "--", *words, module=f"{JOBS}.attach", **told_to)
    _, complaints = job.communicate(timeout=4 * PATIENCE)
    assert job.returncode == 0, complaints
    assert counted(tmp_path / "beats") == [1, 2, 3]  # of nine steps six warm up
    assert list((tmp_path / "model").glob("ckpt-9*")), "the command's own work is done too"
    assert_they_follow_each_other(told(tmp_path / "phases"), at_least=8)


@pytest.mark.nightly
@pytest.mark.parametrize(("model", "mode", "source"), EVERYTHING)
def test_every_job_runs_from_both_sources(interpreter, tmp_path, model, mode, source):
    words = ["--model", model, "--mode", mode, "--steps", "2", "--data", data_of(model), "--source", source]
    job = start(interpreter, tmp_path / "beats", *words)
    said, complaints = job.communicate(timeout=4 * PATIENCE)
    assert job.returncode == 0, complaints
    assert json.loads(said).keys() == FACTS
    assert counted(tmp_path / "beats") == [1, 2]


@pytest.mark.nightly
def test_tensorflow_lite_runs_a_job_quantised_and_half_as_wide(interpreter, tmp_path):
    words = ["--model", "mobilenetv2", "--mode", "infer", "--steps", "3", "--threads", "1", "--engine", "lite"]
    words += ["--precision", "int8", "--width", "0.5", "--data", data_of("mobilenetv2")]
    job = start(interpreter, tmp_path / "beats", *words)
    said, complaints = job.communicate(timeout=4 * PATIENCE)
    assert job.returncode == 0, complaints
    facts = json.loads(said)
    assert (facts["engine"], facts["precision"], facts["width"]) == ("lite", "int8", 0.5)
    assert 500_000 < facts["parameters"] < 1_000_000, "a third of those of the whole model"
    assert counted(tmp_path / "beats") == [1, 2, 3]


@pytest.mark.nightly
@pytest.mark.parametrize("phases", [[], ["--phases"]])
@pytest.mark.parametrize(("model", "mode"), list(itertools.product(jobs.MODELS, jobs.MODES)))
def test_the_graph_is_the_one_that_autograph_gives(interpreter, model, mode, phases):
    """Steps are traced without it, which is quicker: that must change nothing of what runs."""
    words = ["--model", model, "--mode", mode, "--size", "tiny", "--data", data_of(model), *phases]
    variables = interpreter | {"PATH": os.pathsep.join([interpreter["PATH"], os.environ["PATH"]])}
    graphs = [
        subprocess.run(
            ["python", Path(__file__).with_name("graphs.py"), how, *words],
            env=variables, capture_output=True, text=True, check=True, timeout=4 * PATIENCE,
        ).stdout.splitlines()[-1]
        for how in ("autograph", "plain")
    ]  # fmt: skip
    assert graphs[0] == graphs[1]


def test_files_of_another_kind_are_one_sentence(interpreter, tmp_path):
    words = ["--model", "bert", "--data", data_of("mobilenetv2")]
    job = start(interpreter, tmp_path / "beats", *words)
    _, complaints = job.communicate(timeout=2 * PATIENCE)
    assert job.returncode == 2
    assert "are not what this job reads" in complaints
    assert complaints.count("\n") == 1
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FAILED


def test_without_tensorflow_it_says_where_to_run(interpreter, tmp_path):
    own = interpreter | {"PATH": str(Path(sys.executable).parent)}
    job = start(own, tmp_path / "beats", "--model", "dlrm")
    _, complaints = job.communicate(timeout=PATIENCE)
    assert job.returncode == 2
    assert "castmates internals build-environment tfmodels" in complaints
    with Reader(tmp_path / "beats") as reader:
        assert reader.state is State.FAILED


KERAS_SCRIPT = """
import numpy as np
import tf_keras as keras
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(np.random.rand(256, 32), np.random.rand(256), batch_size=16, epochs=2, verbose=0)
"""


def test_a_job_begins_its_records_anew_from_storage_and_from_memory(interpreter, tmp_path):
    data, page = data_of("dlrm"), Page.create(tmp_path / "page")
    words = ["--model", "dlrm", "--threads", "1", "--data", data]
    profiled = {"CASTMATES_PROFILE": str(tmp_path / "page"), "CASTMATES_TRACES": str(tmp_path / "traces")}
    job = start(interpreter, tmp_path / "beats", *words, **profiled)
    read = {}
    try:
        wait_for(lambda: page.begins_anew or job.poll() is not None, "its first steps")
        for source in (Input.FROM_STORAGE, Input.ANEW, Input.GOES_ON):
            number = page.ask(2, source)
            read[source] = wait_for(lambda number=number: page.answered(number), "its trace")["storage_bytes"]
    finally:
        job.terminate()
        job.communicate()
        page.close()
    assert len(list((tmp_path / "traces").rglob("*.xplane.pb"))) == 3
    if storage_counts(data):
        assert read[Input.FROM_STORAGE] > max(read[Input.ANEW], read[Input.GOES_ON])
    else:  # such as a RAM disk
        assert not read[Input.FROM_STORAGE]


def storage_counts(pattern: str) -> bool:
    """Whether these files can be dropped from the page cache, and the kernel counts what is read of them again."""
    storage = StorageBytes()
    storage.begin()
    for file in glob(pattern):  # noqa: PTH207  (as the job finds them)
        with Path(file).open("rb") as content:
            os.posix_fadvise(content.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            content.read()
    storage.end()
    return bool(storage.read)


FIRST_BATCHES = """
from castmates.workloads.tfmodels import runtime, wish
wanted = wish.parse()
runtime.prepare(1, onednn=True, device="cpu")
runtime.spare(one_job=True)
tf = runtime.tensorflow(1, 1)
from castmates.workloads.tfmodels import job, steps
source = steps.batches(job.build(wanted), wanted)
for _ in range(3):
    print([float(tf.reduce_sum(tf.cast(each, tf.float64))) for each in tf.nest.flatten(next(source))])
    source.close()
    source.begin_anew()
"""


def test_a_job_that_shuffles_begins_anew_with_the_same_records(interpreter):
    words = ["--model", "mobilenetv2", "--mode", "train", "--threads", "1", "--data", data_of("mobilenetv2")]
    path = os.pathsep.join([interpreter["PATH"], os.environ["PATH"]])
    shown = subprocess.run(
        ["python", "-c", FIRST_BATCHES, *words], env=interpreter | {"PATH": path}, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert len(lines) == 3
    assert len({*lines}) == 1


def followed(interpreter, folder: Path, script: str, steps: int, step_function: str = ""):
    """A script that is not changed: its trace, the graph that it left, and the answer to the wish for both."""
    (folder / "train.py").write_text(script)
    page = Page.create(folder / "page")
    create(folder / "beats")
    path = os.pathsep.join([interpreter["PATH"], os.environ["PATH"]])
    variables = interpreter | {"PATH": path, "TMPDIR": str(folder), "CASTMATES_HEARTBEAT": str(folder / "beats")}
    variables |= {"CASTMATES_PROFILE": str(folder / "page"), "CASTMATES_TRACES": str(folder / "traces")}
    variables |= environments.variables(variables, step_function, CACHE)
    command = ["python", str(folder / "train.py")]
    job = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    answers = []
    try:
        wait_for(lambda: page.able or job.poll() is not None, "its first steps")
        number = page.ask(steps)
        wait_for(lambda: answers.append(page.answered(number)) or answers[-1] or job.poll() is not None, "its trace")
        assert job.poll() is None
        left = page.left(GRAPH)
    finally:
        job.terminate()
        said, _ = job.communicate()
        page.close()
    assert answers[-1], said
    (file,) = (folder / "traces").rglob("*.xplane.pb")
    trace = read_trace(file)
    assert trace.steps == steps
    assert left is not None
    return trace, read_graph(left), answers[-1]


def test_a_keras_script_that_is_not_changed_is_traced_step_by_step(interpreter, tmp_path):
    trace, graph, answer = followed(interpreter, tmp_path, KERAS_SCRIPT, 3)
    assert answer["versions"].keys() == {"python", "tensorflow", "tf_keras"}
    work = {trace.operations[place].name.partition("/")[0] for place in trace.calls.operation}
    assert {"gradient_tape", "sequential", "Adam"} <= work
    names = {trace.operations[place].place.direction for place in trace.calls.operation}
    assert {"forward", "backward", "optimizer"} <= names
    # The graph that it left has every operation of the trace, with shapes, and an order.
    nodes = {(node.operation, node.does.type): node.does for node in graph.nodes}
    called = {trace.operations[place] for place in np.unique(trace.calls.operation)}
    assert {(one.name, one.type) for one in called if one.level == WORKS} <= nodes.keys()
    products = [node for (_, type_), node in nodes.items() if type_.endswith("MatMul")]
    assert products
    assert all(work_of(node).flops > 0 for node in products)
    assert all(source < target for source, target, _ in graph.edges)


# A chain of four products, beside it a small product, and a variable that is read for the sum.
BRANCHES = """
import time
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads({threads})
chained, small, last = tf.random.normal([400, 400]) / 20, tf.random.normal([64, 64]), tf.Variable(1.0)

def sleep(x):
    time.sleep(0.1)
    return x

@tf.function
def one_step(x, y):
    for number in range(4):
        x = tf.linalg.matmul(x, chained, name=f"chain_{{number}}")
        if number == 1 and {threads} > 1:
            x = tf.ensure_shape(tf.py_function(sleep, [x], tf.float32, name="chain_nap"), [400, 400])
    y = tf.linalg.matmul(y, y, name="small_product")
    total = tf.add_n([tf.reduce_sum(x, name="chain_sum"), tf.reduce_sum(y, name="small_sum")], name="chain_total")
    return total * last.read_value()

while True:
    one_step(chained, small).numpy()
"""
CHAIN = {*(f"chain_{number}" for number in range(4)), "chain_sum", "chain_total"}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_paths_of_a_program_whose_chain_is_known(interpreter, tmp_path, threads):
    """One thread runs all, and so bounds the step with all; beside a chain that sleeps, a second thread has time."""
    trace, graph, _ = followed(interpreter, tmp_path, BRANCHES.format(threads=threads), 5, "one_step")
    nodes = pd.DataFrame(
        [{"node": at, "name": node.name, "operation": node.operation, "type": node.does.type}
         | dataclasses.asdict(layer_place(node.name, node.does.type)) for at, node in enumerate(graph.nodes)]
    ).rename(columns={"kind": "layer_kind"})  # fmt: skip
    edges = pd.DataFrame(graph.edges, columns=["from", "to", "output"])
    scene = SimpleNamespace(scene=SimpleNamespace(name="alone"), round=1)
    aligned = Aligned(trace, SimpleNamespace(first_step=0), 0, 0, {})
    steps = traced_steps(aligned, list(range(len(trace.threads))), scene)
    whole = dict.fromkeys(TRACE, "") | {"part": "traced", "threads_inter": threads}
    found = path_traces(*(each.assign(**whole) for each in (steps.calls, steps.steps)), nodes, edges)
    assert set(found.traces["reason"]) == {""}
    rows = found.operations.set_index("operation")
    of_graph, of_schedule = (set(rows.index[rows[f"on_{name}_path"] > 0.5]) for name in ("graph", "schedule"))
    chain = CHAIN | ({"chain_nap"} if threads > 1 else set())
    assert chain <= of_graph
    assert chain <= of_schedule
    assert not of_graph & {"small_product", "small_sum"}
    assert ("small_product" in of_schedule) == (threads == 1)
    (scene_,) = found.traces.to_dict("records")
    assert sum(scene_[part] for part in PARTS) == pytest.approx(scene_["step_ms"])
    if threads == 1:
        assert scene_["compute_ms"] == pytest.approx(scene_["work_ms"]), "what its only thread ran bounds the step"
    else:
        assert rows.loc["chain_nap", "path_ms"] >= 100
        assert rows.loc["small_product", "graph_slack_ms"] >= 100
