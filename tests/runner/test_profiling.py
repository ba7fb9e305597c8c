"""Profiles of a lead after the rounds: asked for through the page, by real processes."""

import json
import os
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from castmates import tables
from castmates.analysis import layers
from castmates.runner.measure import measure_block
from castmates.workloads import environments, inputs
from castmates.workloads.heartbeat import Reader, create
from castmates.workloads.tfmodels.profile_page import VARIABLE, Page
from tests.runner.stage import PYTHON, counter, plan_of

STEPS = 4
# Answers as a job does that can be profiled: so many operations of 1 ms in steps of 5 ms.
ANSWERING = """
import sys, time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.tfmodels.profile_page import Page
beat, page = Writer.from_environment(), Page.from_environment()
page.offer()
beat.ready()
done = 0
while True:
    time.sleep(0.002)
    beat.beat()
    if page.asked != done:
        done = page.asked
        operations = [["model/conv/Conv2D", "Conv2D", False, page.steps, 3e6 * page.steps]]
        good = {"step_seconds": [0.005] * page.steps, "operations": operations}
        page.answer(done, good if sys.argv[1] == "well" else {"error": "out of order"})
"""
needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


def measured(lead, folder: Path, cache: Path, capsys) -> tuple[dict, pd.DataFrame, str]:
    keys = {"events": [], "topdown": 0, "profile": STEPS}
    plan = plan_of({"lead": lead, "beside": counter()}, ["beside"], cache, keys, rounds=1)
    measure_block(plan, plan.blocks[0].path, folder, cache)
    said = capsys.readouterr().err
    return json.loads((folder / "block.json").read_text()), pd.read_parquet(folder / "layers.parquet"), said


def answering(how: str):
    return counter().model_copy(update={"command": [PYTHON, "-c", ANSWERING, how]})


@pytest.fixture(scope="module")
def cache(kernels):
    return kernels.parents[2]


@needs_two
def test_solo_and_corun_are_profiled_and_kept_apart_from_what_is_measured(tmp_path, cache, capsys):
    record, found, _ = measured(answering("well"), tmp_path, cache, capsys)
    assert record["status"] == "measured"
    assert record["windows"] == 5, "profiled scenes are no windows"
    assert list(found.columns) == list(tables.LAYERS)
    assert set(found["scene"]) == {"solo", "corun:lead+beside"}
    assert set(found["mix"]) == {"", "lead+beside"}
    assert (found["steps"] == STEPS).all()
    for _, rows in found.groupby("scene"):
        assert dict(zip(rows["kind"], rows["ms_per_step"], strict=True)) == pytest.approx(
            {"convolution": 3.0, "unattributed": 2.0}
        )
    cost = record["costs"]["profiler"]
    assert cost["pairs"] == 2
    assert cost["change_pct"] < -20, "steps of 5 ms against 2 ms and a little"


@needs_two
@pytest.mark.parametrize(
    ("lead", "sentence"),
    [
        (counter(), "cannot be profiled"),
        (answering("badly"), "was not profiled: the profiler of lead@0 says: out of order"),
    ],
    ids=["does not look at the page", "fails"],
)
def test_a_lead_that_cannot_be_profiled_is_told_and_measured_all_the_same(tmp_path, cache, capsys, lead, sentence):
    record, found, said = measured(lead, tmp_path, cache, capsys)
    assert sentence in said
    assert record["status"] == "measured"
    assert found.empty
    assert "profiler" not in record["costs"]


@pytest.mark.tensorflow
@pytest.mark.slow
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
    command = ["python", "-m", "castmates.workloads.tfmodels", *words]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as job, Reader(beats) as reader:
        try:
            wait_for(lambda: reader.head > 2, job)
            assert page.able
            answers = []
            for _ in range(2):
                number = page.ask(STEPS)
                wait_for(lambda number=number: (one := page.answered(number)) and not answers.append(one), job)
        finally:
            job.terminate()
    for answer in answers:
        assert len(answer["step_seconds"]) == STEPS, answer
        rows = layers.rows([tuple(one) for one in answer["operations"]], answer["step_seconds"])
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


def wait_for(look, job) -> None:
    deadline = time.monotonic() + 120
    while not look():
        assert job.poll() is None, "the job ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.02)
