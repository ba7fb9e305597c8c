"""What a study shows of operations: stages of the input by depth, kernels of GPUs, and losses of too few launches."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from castmates.analysis.tables.input_stages import INPUT_STAGES
from castmates.analysis.tables.kernels import KERNELS
from castmates.report.figures import operations
from castmates.report.figures.heatmap_grid import GREY_INK
from castmates.report.page.common_parts import environment
from castmates.report.text.operations import context
from castmates.results.columns.study import frame
from tests.unit.operations_maker import COMMON, results

SCENE = {name: COMMON[name] for name in ("study", "partition", "member", "platform")}
SCENE |= {"scene": "alone", "kind": "alone", "mix": ""}
WORKS = {"calls": 1.0, "work_ms": 1.5, "function_ms": 1.0, "waiting_ms": 0.25, "threads": 2.0, "launches": 3}
WORKS |= {"share": 1.0}


ON_GPU = {"device": "GPU:0", "stream": "Stream #7", "activity": "kernel", "type": "MatMul", "launches": 3, "mb": 0.0}
TIMES = {"calls": 2.0, "ms": 1.25, "shortest_ms": 0.5, "longest_ms": 0.75, "tensor_cores": True, "share": 0.8}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = results(tmp_path_factory.mktemp("results") / "study", 3)
    return replace(found, plan=found.plan.model_copy(update={"profiles": found.plan.launches}))


def text_of(shown):
    html = environment().get_template("operations.html.j2").render(operations=context(shown), first="")
    return re.sub(r"[\s]+", " ", re.sub(r"<[^>]+>", " ", html))


def test_stages_and_kernels_are_shown(made):
    stages = [
        SCENE | WORKS | {"depth": depth, "stage": stage} for depth, stage in ((1, "Prefetch"), (2, "Prefetch/Map"))
    ]
    kernel = SCENE | ON_GPU | TIMES | {"kernel": "h16816gemm", "operation": "model/dense/MatMul"}
    iterations = pd.DataFrame([SCENE | dict.fromkeys(made.iterations.columns.difference(list(SCENE)), 1)])
    shown = replace(
        made, input_stages=frame(stages, INPUT_STAGES), kernels=frame([kernel], KERNELS), iterations=iterations
    )
    text = text_of(shown)
    assert "lead alone Prefetch 1.0 1.500 1.000 100 0.250 2.0" in text
    assert "lead alone Map 1.0" in text
    assert "model/dense/MatMul h16816gemm GPU:0 Stream #7 2.0 1.250 80.0 0.00 yes" in text
    assert "tried on made traces alone" in text


def test_a_study_without_them_has_no_tables_of_them(made):
    text = text_of(made)
    assert "Stages of input pipelines" not in text
    assert "have a GPU run" not in text


@pytest.mark.parametrize("count", [1, 2])
def test_the_figure_of_too_few_launches_has_their_losses_without_an_interval(tmp_path, count):
    figure, source = operations.draw(results(tmp_path / "study", count))
    assert set(source["verdict"]) == {"too few launches"}
    assert [text for text in figure.texts if "grey without ±: fewer than three launches" in text.get_text()]
    losses = [text for axes in figure.axes for text in axes.texts if text.get_text() in ("16", "17")]
    assert losses
    assert {text.get_color() for text in losses} == {GREY_INK}, "the darkest colours are of what is proven"
