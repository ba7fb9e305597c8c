"""How operations are called where people read them."""

import pytest

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
