"""Profiles of a lead after the rounds: asked for through the page, by real processes."""

import math
import os
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.explanations import layers
from castmates.results.columns.launch import LAYERS
from castmates.results.columns.study import frame
from castmates.runner.after_rounds import measure
from castmates.runner.outcome import Measured
from castmates.workloads import environments, inputs
from castmates.workloads.heartbeat import Reader, State, create
from castmates.workloads.tfmodels.profile_page import VARIABLE, Page, PageError
from castmates.workloads.tfmodels.profiling import Profiler
from tests.runner.stage import PYTHON, counter, measured, plan_of, tables
from tests.unit.makers import plan as planned
from tests.unit.makers import study
from tests.waiting import PATIENCE, wait_for

STEPS = 4
# Answers as a job does that can be profiled: operations of 30 ms in steps of 50 ms; or fails in one of many ways.
ANSWERING = """
import os, sys, time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.tfmodels.profile_page import Page
beat, page = Writer.from_environment(), Page.from_environment()
page.offer()
beat.ready()
done, how = 0, sys.argv[1]
if how == "no page":
    os.remove(page.path)
while True:
    time.sleep(0.002)
    beat.beat()
    if page and page.asked != done:
        done = page.asked
        operations = [["model/conv/Conv2D", "Conv2D", False, page.steps, 30e6 * page.steps]]
        good = {"step_seconds": [0.05] * page.steps, "operations": operations}
        if how == "dies":
            sys.exit(5)
        if how == "wrong" and done == 2:
            beat.failed()
            sys.exit(3)
        page.answer(done, good | {"step_seconds": [0.0]} if how == "zero" else good)
        if how == "cuts":
            page.close()
            os.truncate(page.path, 0)
            page = None
"""
needs_two = pytest.mark.needs("two-cpus")


def profiled(lead, folder: Path, cache: Path, capsys) -> tuple[dict, pd.DataFrame, str]:
    keys = {"events": [], "topdown": 0, "profile": STEPS}
    plan = plan_of({"lead": lead, "beside": counter()}, ["beside"], cache, keys, rounds=1, spare_rounds=0)
    return measured(plan, folder, cache), *tables(folder, "layers"), capsys.readouterr().err


def answering(how: str):
    return counter().model_copy(update={"command": [PYTHON, "-c", ANSWERING, how]})


@needs_two
def test_alone_and_corun_are_profiled_and_kept_apart_from_what_is_measured(tmp_path, cache, capsys):
    record, found, _ = profiled(answering("well"), tmp_path, cache, capsys)
    assert record["status"] == "measured"
    assert record["windows"] == 5, "profiled scenes are no windows"
    assert list(found.columns) == list(LAYERS)
    assert set(found["scene"]) == {"alone", "corun:lead+beside"}
    assert set(found["mix"]) == {"", "lead+beside"}
    assert (found["steps"] == STEPS).all()
    for _, rows in found.groupby("scene"):
        assert dict(zip(rows["kind"], rows["ms_per_step"], strict=True)) == pytest.approx(
            {"convolution": 30.0, "unattributed": 20.0}
        )
    cost = record["costs"]["profiler"]
    assert cost["pairs"] == 2
    assert cost["change_pct"] < -20, "steps of 50 ms against 2 ms and a little"
    assert record["afterwards"] == ""


@needs_two
@pytest.mark.parametrize(
    ("lead", "sentence"),
    [
        (counter(), "cannot be profiled"),
        (answering("zero"), "was not profiled: its answer is not what `castmates help layers` describes"),
        (answering("no page"), "cannot be profiled: its page was removed, replaced or cut"),
    ],
    ids=["does not look at the page", "answers with steps of no time", "removes its page"],
)
def test_a_lead_that_cannot_be_profiled_is_told_and_measured_all_the_same(tmp_path, cache, capsys, lead, sentence):
    record, found, said = profiled(lead, tmp_path, cache, capsys)
    assert sentence in said
    assert record["status"] == "measured"
    assert found.empty
    assert "profiler" not in record["costs"]


@needs_two
def test_a_page_that_is_cut_while_it_is_mapped_does_not_kill_the_runner(tmp_path, cache, capsys):
    record, found, said = profiled(answering("cuts"), tmp_path, cache, capsys)
    assert "was not profiled: its page was removed, replaced or cut" in said
    assert record["status"] == "measured"
    assert found["scene"].nunique() == 1, "what came before it was cut is kept"


@needs_two
def test_a_lead_that_dies_when_it_is_to_be_profiled_loses_no_window(tmp_path, cache, capsys):
    record, found, said = profiled(answering("dies"), tmp_path, cache, capsys)
    assert record["status"] == "measured"
    assert record["windows"] == 5
    assert "lead@0 ended by itself with status 5" in record["afterwards"]
    assert record["afterwards"] in said
    assert set(record["without_verdict"]) >= {"lead@0"}, "nobody was asked whether its result was right"
    assert found.empty


@needs_two
def test_a_lead_that_finds_its_result_wrong_when_it_is_to_be_profiled_fails_its_launch(tmp_path, cache, capsys):
    record, found, _ = profiled(answering("wrong"), tmp_path, cache, capsys)
    assert record["status"] == "failed"
    assert (record["windows"], record["costs"]) == (0, {})
    assert found.empty


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NUMBER = st.integers() | st.floats()
OPERATION = st.tuples(st.text() | JSON, st.text() | JSON, st.booleans(), NUMBER, NUMBER | JSON)
ANSWER = st.fixed_dictionaries({"step_seconds": st.lists(NUMBER), "operations": st.lists(OPERATION) | JSON})


@given(JSON | ANSWER)
@settings(max_examples=60)
def test_whatever_is_answered_is_refused_or_makes_rows_of_numbers(answer):
    launch = planned(study(["lead"], ["beside"])).launches[0]
    try:
        rows, seconds = measure._understood(Measured(launch), launch.cohort.scenes[0], answer)
    except (measure.NoAnswer, *measure.UNREADABLE):
        return
    assert seconds > 0
    assert all(math.isfinite(row["ms_per_step"]) for row in rows)
    key = {"study": "s", "cohort": "c", "launch": 1}
    pyarrow.Table.from_pandas(frame([key | row for row in rows], LAYERS))


@pytest.mark.parametrize("content", ["{", "\udc80", "[" * 100_000], ids=["cut", "not UTF-8", "deep"])
def test_an_answer_that_cannot_be_read_is_told(tmp_path, content):
    page = Page.create(tmp_path / "page")
    (tmp_path / "page.1.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(PageError, match="the answer cannot be read"):
        page.answered(1)


def test_a_job_without_room_for_its_trace_goes_on_and_says_so(tmp_path, monkeypatch):
    page = Page.create(tmp_path / "page")
    job = Profiler(page, SimpleNamespace(errors=SimpleNamespace(OpError=KeyError)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    number = page.ask(STEPS)
    job.step_is_over()
    assert "No such file" in page.answered(number)["error"]
    (tmp_path / "page.2.unfinished").mkdir()  # nor is there room for the answer
    number = page.ask(STEPS)
    job.step_is_over()
    assert page.answered(number) is None


@pytest.mark.tensorflow
def test_a_model_garden_job_tells_its_layers_when_asked(tmp_path):
    root = Path(__file__).parents[2]
    cache = Path(os.environ.get("CASTMATES_CACHE") or root / ".cache")
    interpreter = environments.environment_of(environments.build("tfmodels", root / "envs", cache))
    data = inputs.build("tfmodels-clicks-tiny", root / "envs", cache)
    beats, page = tmp_path / "beats", Page.create(tmp_path / "page")
    create(beats)
    words = ["--model", "dlrm", "--batch", "64", "--threads", "1", "--data", str(data / "*.tsv")]
    path = os.pathsep.join([interpreter["PATH"], os.environ["PATH"]])
    variables = interpreter | {"PATH": path, "CASTMATES_HEARTBEAT": str(beats), VARIABLE: str(page.path)}
    variables |= {"TMPDIR": str(tmp_path)}  # a killed job leaves what AutoGraph generated
    command = ["python", "-m", "castmates.workloads.tfmodels", *words]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as job, Reader(beats) as reader:
        try:
            wait_for(lambda: reader.head > 2 or job.poll() is not None, "the job makes steps")
            assert page.able
            answers = []
            for _ in range(2):
                asked = page.ask(STEPS)
                told = wait_for(
                    lambda asked=asked: page.answered(asked) or job.poll() is not None, "the job tells its layers"
                )
                answers.append(told)
            job.terminate()
            assert job.wait(PATIENCE) == 0
            assert reader.state is State.FINISHED
        finally:
            job.kill()
    for answer in answers:
        assert len(answer["step_seconds"]) == STEPS, answer
        rows = layers.layer_rows([tuple(one) for one in answer["operations"]], answer["step_seconds"])
        spent = pd.DataFrame([(row.place.kind, row.place.direction, row.ms_per_step, row.calls) for row in rows])
        spent.columns = ["kind", "direction", "ms", "calls"]
        assert spent["ms"].sum() == pytest.approx(1e3 * sum(answer["step_seconds"]) / STEPS)
        kinds = spent.groupby(["kind", "direction"])["ms"].sum()
        assert kinds["unattributed", ""] < 0.7 * spent["ms"].sum()
        assert kinds["matmul", "backward"] > kinds["matmul", "forward"] * 0.5 > 0
        assert kinds["optimizer", "optimizer"] > 0
        assert kinds["input", "input"] > 0
        gathers = spent[(spent["kind"] == "embedding") & (spent["direction"] == "forward")]
        assert gathers["calls"].sum() == 26, "one lookup for each of the tables"
