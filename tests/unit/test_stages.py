"""Stages of tf.data: which of them work, which wait, and whose functions run elsewhere."""

import gzip

import pandas as pd
import pytest

from castmates.analysis.tables.input_stages import INPUT_STAGES, input_stages
from castmates.traces.operations import read_trace
from castmates.traces.reading import read_stages
from castmates.workloads.tfmodels.xspace import STEP
from tests.unit.operations_maker import COMMON, STEPS
from tests.unit.space_maker import Event, space
from tests.unit.xspace_file import RECORDED

ROOT = "Iterator::Root::Prefetch"
HOST = {
    "python": [
        Event(100, 200, STEP),
        Event(200, 300, STEP),
        Event(110, 140, "Iterator::Root"),
        Event(112, 138, ROOT),
        Event(210, 212, ROOT),
        Event(320, 330, ROOT),  # after the last step
    ],
    "tf_data/1": [  # the thread of Prefetch: its stage is asked here, and has its elements made elsewhere
        Event(120, 160, f"{ROOT}::ParallelMap")
    ],
    "tf_data/2": [  # the thread of ParallelMap, which asks its inputs and runs its function elsewhere
        Event(121, 155, "ParallelMapProduce"),
        Event(122, 140, f"{ROOT}::ParallelMap::Batch[0]::Range"),
        Event(125, 130, f"{ROOT}::ParallelMap::Batch[0]::Range[3]::Text"),
        Event(141, 150, "InstantiatedCapturedFunction::RunAsync", {"id": 7}),
        Event(152, 153, f"{ROOT}::ParallelMap::Batch[1]::Range"),
    ],
    "tf_data/3": [
        Event(142, 190, "ExecutorState::Process", {"id": 7}),
        Event(150, 180, "ExecutorState::Process", {"id": 7}),  # a function that this one calls
        Event(205, 207, "ExecutorState::Process", {"id": 8}),  # of the model
    ],
}


def stages_of(tmp_path, content):
    file = tmp_path / "x.xplane.pb"
    file.write_bytes(content)
    return {"/".join(stage.path): stage for stage in read_stages(file, read_trace(file))}


def test_stages_work_or_wait_and_have_their_functions(tmp_path):
    below = [Event(one.begin, one.end, one.name.replace("::Range", ""), one.stats) for one in HOST["tf_data/2"]]
    found = stages_of(tmp_path, space({"/host:CPU": HOST | {"tf_data/2": below}}))
    assert {name: (one.calls, one.own_ps, one.function_ps, one.waits) for name, one in found.items()} == {
        "Prefetch": (2, 28, 0, True),
        "Prefetch/ParallelMap": (1, 40, 48, True),
        "Prefetch/ParallelMap/Batch": (2, 14, 0, False),
        "Prefetch/ParallelMap/Batch/Text": (1, 5, 0, False),
    }
    assert len(found["Prefetch/ParallelMap"].threads) == 2  # where it is asked, and where its function runs


def test_a_recorded_pipeline_has_its_stages(tmp_path):
    found = stages_of(tmp_path, gzip.decompress(RECORDED.read_bytes()))
    assert {name: (one.calls, one.waits) for name, one in found.items()} == {
        "Prefetch": (2, True),
        "Prefetch/MapAndBatch": (2, True),
        "Prefetch/MapAndBatch/Range": (8, False),
    }
    assert found["Prefetch/MapAndBatch"].function_ps > 0


def test_a_trace_without_an_input_pipeline_has_no_stages(tmp_path):
    assert stages_of(tmp_path, space({"/host:CPU": {"python": [Event(0, 9, STEP), Event(1, 2, "a:Mul")]}})) == {}


def test_a_stage_that_a_trace_lacks_did_nothing_in_it():
    about = COMMON | {"scene": "alone", "kind": "alone", "mix": ""}
    stages, steps = [], []
    for launch, repetition in ((1, 1), (1, 2), (2, 1)):
        trace = about | {"launch": launch, "round": repetition}
        steps += [trace | {"part": "traced"}] * STEPS + [trace | {"part": "after"}]
        own = {"calls": STEPS, "own_ns": STEPS * 1_000_000, "function_ns": 0, "threads": 1}
        stages.append(trace | own | {"depth": 1, "stage": "Prefetch", "waits": True})
        if launch == 2:
            works = {"depth": 2, "stage": "Prefetch/Map", "waits": False, "function_ns": STEPS * 2_000_000}
            stages.append(trace | own | works)
    table = input_stages(pd.DataFrame(stages), pd.DataFrame(steps), pd.DataFrame(stages)[:0]).set_index("stage")
    assert set(INPUT_STAGES) <= {*table.reset_index().columns}
    assert table["waiting_ms"].to_dict() == pytest.approx({"Prefetch": 1.0, "Prefetch/Map": 0.0})
    assert table["work_ms"].to_dict() == pytest.approx({"Prefetch": 0.0, "Prefetch/Map": 1.5})  # one of two launches
    assert table["share"].to_dict() == pytest.approx({"Prefetch": 0.0, "Prefetch/Map": 1.0})
    assert (table["launches"] == 2).all()
