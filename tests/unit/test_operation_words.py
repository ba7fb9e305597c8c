"""How operations are called where people read them."""

import pytest
from matplotlib.figure import Figure

from castmates.report.figures.heatmap_grid import cell
from castmates.report.text.operations import operation_words


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("ranking/mlp_1/dense_3/Relu:_MklNativeFusedMatMul", "ranking/mlp_1/dense_3: FusedMatMul"),
        ("gradient_tape/ranking/mlp_1/dense_3/MatMul/MatMul_1:_MklMatMul", "ranking/mlp_1/dense_3: MatMul_1, gradient"),
        ("SGD/SGD/update*/ResourceScatterAdd:ResourceScatterAdd", "SGD/SGD/update*: ResourceScatterAdd"),
        ("MatMul:MatMul", "MatMul"),
        ("layers/0/AddmmBackward0/mm:mm", "layers/0/AddmmBackward0: mm"),
        ("transpose(jvp)/layer0/dot_general (dot.1):dot_general", "layer0: dot_general (dot.1), gradient"),
        ("small: optimizer optimizer", "small operations (optimizer)"),
        ("small: data movement backward", "small operations (data movement, backward)"),
        ("unattributed", "outside of operations"),
        ("waiting for the batch", "waiting for the batch"),
    ],
)
def test_an_operation_is_named_by_its_scope_and_type(group, words):
    assert operation_words(group) == words


def test_an_operation_of_too_few_launches_has_a_cell():
    row = {"verdict": "too few launches", "loss_pct": 4.0, "loss_low": float("nan"),
           "loss_high": float("nan"), "lead": "job@0", "antagonists": "stream", "launches": 1}  # fmt: skip
    axes = Figure().add_subplot()
    cell(axes, 0, 0, row, 10.0)
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["4.0"]
