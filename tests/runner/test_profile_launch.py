"""Profile launches of real processes: traced in each scene, read, written; whatever goes wrong has a reason."""

import json
from pathlib import Path

import pytest

from castmates.analysis.dataflow.summary import critical_path, path_traces
from castmates.pipeline.measure_launch import measure
from castmates.results.columns.operations import OPERATIONS, PROFILED_STEPS
from castmates.results.columns.primitives import PRIMITIVES
from castmates.results.profiles import read_graph
from castmates.runner.profiles.rounds import NOTHING_READ
from castmates.study.model import Workload
from castmates.study.plan_text import plan_text, task_of
from castmates.study.spec import Design, Profiling
from tests.runner.stage import PYTHON, counter, plan_of, tables

STEPS = 3
TABLES = ("operations", "profiled_steps")
# Leaves a trace of the steps that it is asked for, as TensorFlow would; or fails in one of many ways.
JOB = """
import json, os, sys, time
from pathlib import Path
from castmates.workloads.heartbeat import Writer
from castmates.workloads.tfmodels.profile_page import FOLDER, GRAPH, Input, Page
from castmates.workloads.tfmodels.profiling import clock_pair
from castmates.workloads.tfmodels.step_graph import packed
from tests.unit.trace_maker import write_trace
from castmates.workloads.tfmodels.profile_page import LOG_SETTINGS, PrimitiveLog
beat, page, log = Writer.from_environment(), Page.from_environment(), PrimitiveLog.wanted()
page.offer(anew=sys.argv[1] != "goes on")
TENSOR = ["float32", [256, 256]]
NODES = [{"name": "x", "type": "_Arg", "device": "", "inputs": [], "outputs": [TENSOR]},
         {"name": "model/dense/MatMul", "type": "MatMul", "device": "", "inputs": ["x", "x"], "outputs": [TENSOR]}]
page.leave(GRAPH, packed({"nodes": NODES, "other_graphs": 2, "other_nodes": 5}) if sys.argv[1] == "well" else b"cut")
PRIMITIVE = ("primitive,exec,cpu,matmul,brg_matmul:avx512_core,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
             "dst:f32::blocked:ab::f0,,,256x384:384x512,0.25")
def execute(real_ns):
    # As oneDNN does where its log is switched on: straight to file descriptor 1.
    if all(os.environ.get(name) == value for name, value in LOG_SETTINGS.items()):
        stamp = f"{real_ns // 10**6}.{real_ns % 10**6:06}"
        os.write(1, f"onednn_verbose,v1,{stamp},{PRIMITIVE}\\n".encode())
os.write(1, b"onednn_verbose,v1,info,oneDNN v3.7.3 (commit N/A)\\n")
beat.ready()
done, beats, how = 0, 0, sys.argv[1]
while True:
    time.sleep(0.002)
    beat.beat()
    beats += 1
    if beats == 1 and log:
        log.warmed_up()
    execute(time.time_ns())  # goes nowhere: it belongs to no trace
    if page.asked != done:
        done, first = page.asked, beats
        folder = Path(os.environ[FOLDER]) / str(done)
        folder.mkdir(parents=True)
        before, began, begins = clock_pair(), time.time_ns(), []
        if log:
            log.begin(str(folder))
        for _ in range(page.steps):
            begins.append(1000 * (time.time_ns() - began))
            execute(time.time_ns())
            print("a line of the job")
            time.sleep(0.002)
            beat.beat()
            beats += 1
        if log:
            log.end()
        ends = [*begins[1:], 1000 * (time.time_ns() - began)]
        if how == "dies":
            sys.exit(5)
        if how == "fails":
            page.answer(done, {"error": "out of order"})
            continue
        marks = [(begin, end, "castmates_step") for begin, end in zip(begins, ends)]
        work = [(begin, begin + (end - begin) // 2, "model/dense/MatMul:MatMul") for begin, end in zip(begins, ends)]
        write_trace(folder / "x.xplane.pb", {"python": marks, "tf_Compute/1": work}, began_ns=began)
        if how == "cuts":
            os.truncate(folder / "x.xplane.pb", 40)
        answer = {"trace": done, "first_step": first, "clocks": [before, clock_pair()], "threads": [1, 1]}
        answer["storage_bytes"] = 4096 if page.input == Input.FROM_STORAGE and how != "in memory" else 0
        page.answer(done, answer | ({} if how == "badly" else {"write_seconds": 0.0}))
"""
needs_two = pytest.mark.needs("two-cpus")


def launched(how: str, folder: Path, cache: Path, lead: Workload | None = None, **more: object) -> dict:
    command = [PYTHON, "-c", JOB, how]
    program = lead or counter(variables={"PYTHONPATH": str(Path.cwd())}).model_copy(update={"command": command})
    plan = plan_of({"lead": program, "beside": counter()}, ["beside"], cache)
    launch = plan.launches[0]
    usual = {"steps": STEPS, "times": 2, "scenes": ("alone", "corun"), "keep": 10**9, "ranges": 0}
    profiling = Profiling.model_validate(usual | {"primitives": False, "first_epoch": False} | more)
    design = Design.model_validate(
        launch.design.model_dump() | {"rounds": 0, "spare_rounds": 0, "profiling": profiling.model_dump()}
    )
    whole = plan.model_copy(update={"profiles": (launch.model_copy(update={"design": design}),)})
    task = task_of(plan_text(whole), launch.path, "profiles")
    assert task is not None
    measure(task, folder, cache)
    return json.loads((folder / "profile.json").read_text())


@needs_two
def test_each_scene_is_traced_and_its_calls_lie_between_usual_heartbeats(tmp_path, cache):
    record = launched("well", tmp_path, cache)
    calls, steps = tables(tmp_path, *TABLES)
    assert (record["status"], record["reason"]) == ("measured", "")
    assert list(calls.columns) == list(OPERATIONS)
    assert list(steps.columns) == list(PROFILED_STEPS)
    traces = calls.groupby(["scene", "round"], observed=True).size()
    assert traces.to_dict() == {(scene, times): STEPS for scene in ("alone", "corun:lead+beside") for times in (1, 2)}
    assert (calls["operation"] == "model/dense/MatMul").all()
    for _, own in steps.groupby(["scene", "round"]):
        before, traced, after = (own[own["part"] == part] for part in ("before", "traced", "after"))
        assert (before["begin_ns"] + before["duration_ns"]).max() <= traced["begin_ns"].min()
        assert (traced["begin_ns"] + traced["duration_ns"]).max() <= after["begin_ns"].min()
        assert (traced["heartbeat"].diff().dropna() == 1).all()
    shares = calls["shared_ns"].sum() + steps["unattributed_ns"].sum()
    assert shares == pytest.approx(steps.loc[steps["part"] == "traced", "duration_ns"].sum(), rel=1e-3)
    assert all(0 <= trace["alignment_us"] < 1000 for trace in record["traces"])
    kept = [tmp_path / trace["kept"] for trace in record["traces"]]
    assert record["graph"] == {"reason": "", "nodes": 2, "edges": 2, "other_graphs": 2, "other_nodes": 5}
    graph = read_graph(tmp_path)
    assert graph is not None
    assert graph.nodes["flops"].tolist() == [0.0, 2.0 * 256**3]
    paths = critical_path(path_traces(calls, steps, graph.nodes, graph.edges))
    assert paths["joined"].tolist() == [1.0, 1.0]
    parts = ["before_ms", "batch_ms", "compute_ms", "other_ms", "idle_ms", "after_ms"]
    assert paths[parts].sum(axis=1).tolist() == pytest.approx(paths["step_ms"].tolist())
    assert len(kept) == 4
    assert all(list(folder.rglob("*.xplane.pb")) for folder in kept)


@needs_two
def test_under_the_log_primitives_find_their_operations_and_roofs_are_measured(tmp_path, cache):
    record = launched("well", tmp_path, cache, primitives=True)
    (found,) = tables(tmp_path, "primitives")
    assert list(found.columns) == list(PRIMITIVES)
    assert record["primitives"] is True
    assert record["onednn"]["version"] == "v3.7.3"
    assert len(found) == 4 * STEPS, "what is executed between traces is in none"
    assert sorted(found["step"].unique()) == list(range(STEPS))
    assert (found["isa"] == "avx512_core").all()
    assert set(found["operation"]) == {"model/dense/MatMul"}
    assert set(found["joined_by"]) == {"time"}
    assert [trace["log"]["other_lines"] for trace in record["traces"]] == [{}] * 4, "what Python prints is not in it"
    (steps,) = tables(tmp_path, "profiled_steps")
    traced = steps[steps["part"] == "traced"].merge(found, on=["scene", "round", "step"], suffixes=("_step", ""))
    assert (traced["begin_ns"] >= traced["begin_ns_step"]).all()
    assert (traced["begin_ns"] < traced["begin_ns_step"] + traced["duration_ns_step"]).all()
    assert min(record["roofs"]["memory_gbs"], record["roofs"]["compute_gflops_f64"]) > 0
    assert "a line of the job" in (tmp_path / "logs" / "lead@0.log").read_text()


@needs_two
def test_in_a_launch_of_the_first_epoch_each_scene_is_traced_from_storage_and_from_memory(tmp_path, cache):
    record = launched("well", tmp_path, cache, keep=0, first_epoch=True)
    assert record["first_epoch"] is True
    assert [trace["kept"] for trace in record["traces"]] == [""] * 8, "they are kept as long as they fit"
    assert not list(tmp_path.rglob("*.xplane.pb"))
    assert len(tables(tmp_path, "operations")[0]) == 8 * STEPS
    for scene in ("alone", "corun:lead+beside"):
        own = sorted((each for each in record["traces"] if each["scene"] == scene), key=lambda each: each["round"])
        about = [(each["round"], each["pair"], each["epoch"], each["storage_bytes"]) for each in own]
        assert about == [(1, 1, "first", 4096), (2, 1, "cached", 0), (3, 2, "first", 4096), (4, 2, "cached", 0)]
        assert not any(each["reason"] for each in own)


@needs_two
@pytest.mark.parametrize(
    ("how", "reason", "taken"), [("in memory", NOTHING_READ, 4), ("goes on", "lead@0 cannot begin its input anew", 0)]
)
def test_a_trace_that_is_of_no_first_epoch_has_a_reason_and_no_rows(tmp_path, cache, how, reason, taken):
    record = launched(how, tmp_path, cache, first_epoch=True)
    assert {each["reason"] for each in record["traces"] if each["epoch"] == "first"} <= {reason}
    assert [each["reason"] for each in record["traces"]].count("") == taken
    assert len(tables(tmp_path, "operations")[0]) == taken * STEPS


@needs_two
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("fails", "the profiler of lead@0 failed: out of order"),
        ("badly", "its answer is not what `castmates help operations` describes"),
        ("cuts", "this is no whole XSpace: it was cut."),
    ],
)
def test_a_trace_that_fails_has_a_reason(tmp_path, cache, how, reason):
    record = launched(how, tmp_path, cache)
    assert record["status"] == "measured"
    assert all(trace["reason"].endswith(reason) for trace in record["traces"])
    assert record["graph"] == {"reason": "the graph of its step cannot be read: it is cut or damaged"}
    assert read_graph(tmp_path) is None
    assert all(table.empty for table in tables(tmp_path, *TABLES))


@needs_two
@pytest.mark.parametrize(("how", "lead"), [("dies", None), ("", counter())], ids=["dies", "cannot be asked"])
def test_a_launch_that_fails_is_recorded_with_its_reason(tmp_path, cache, how, lead):
    record = launched(how, tmp_path, cache, lead=lead)
    assert record["status"] == "failed"
    assert record["reason"]
    assert record["traces"] == []
