"""A layer of several operations has the time of all of them."""

import pytest

from castmates.analysis.explanations.layers import layer_rows


def test_operations_of_one_layer_and_kind_are_added_up():
    found = [("model/dense/MatMul", "MatMul", False, 4, 3e6), ("model/dense/MatMul_1", "MatMul", False, 2, 5e6)]
    dense, rest = layer_rows(found, [0.010, 0.030])
    assert (dense.place.layer, dense.calls) == ("model/dense", 3)
    assert dense.ms_per_step == pytest.approx((3 + 5) / 2)
    assert dense.share == pytest.approx(4 / 20)
    assert rest.ms_per_step == pytest.approx(16)
