"""The layer, kind and direction of an operation, from names that were seen in traces of the Model Garden jobs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.explanations.layers import (
    DIRECTIONS,
    KINDS,
    LayerPlace,
    layer_place,
    layer_rows,
    optimizer_scopes,
)
from tests.unit.snapshots import assert_as_before

RESNET, BERT = "classification_model/res_net/bottleneck_launch_15", "bert/bert_encoder/transformer/layer_0"
SEEN = [
    (f"{RESNET}/conv2d_2/Conv2D", "_MklNativeConv2D"),
    (f"gradient_tape/{RESNET}/conv2d_2/Conv2D/Conv2DBackpropFilter", "_MklNativeConv2DBackpropFilter"),
    # A fused operation has the name of the last one of them.
    (f"{RESNET}/activation_1/Relu", "_MklNativeFusedConv2D"),
    ("m/net/depthwise_conv2d/depthwise", "_MklNativeDepthwiseConv2dNative"),
    (f"{RESNET}/batch_normalization_2/FusedBatchNormV3", "_MklNativeFusedBatchNormV3"),
    (f"{BERT}/output_layer_norm/moments/SquaredDifference", "SquaredDifference"),
    ("classification_model/res_net/max_pooling2d/MaxPool", "_MklNativeMaxPool"),
    ("classification_model/global_average_pooling2d/Mean", "Mean"),
    (f"{BERT}/self_attention/value/einsum/Einsum", "_MklEinsum"),
    (f"gradient_tape/{BERT}/self_attention/einsum/Einsum_1", "_MklEinsum"),
    (f"{BERT}/intermediate/einsum/Einsum", "_MklEinsum"),
    ("ranking/mlp_1/dense_3/Relu", "_MklNativeFusedMatMul"),
    ("ranking/partial_tpu_embedding/tpu_embedding/embedding_lookup_25", "ResourceGather"),
    ("bert/bert_encoder/type_embeddings/MatMul", "_MklMatMul"),
    (f"gradient_tape/{BERT}/activation/Gelu/Pow/Pow", "Square"),
    ("bert/next_sentence/dropout_1/dropout/random_uniform/RandomUniform", "RandomUniform"),
    ("bert/cls/predictions/GatherV2", "GatherV2"),
    ("ranking_1/Sum_4", "Sum"),
    ("ranking_1/binary_crossentropy/mul_1", "Mul"),
    ("bottleneck_launch_7/conv2d_3/kernel/Regularizer/L2Loss", "L2Loss"),
    ("SGD/SGD/update_153/ResourceApplyKerasMomentum", "ResourceApplyKerasMomentum"),
    ("AdamWeightDecay/AdamWeightDecay/update_5/AssignSubVariableOp", "AssignSubVariableOp"),
    ("clip_by_global_norm/truediv", "Reciprocal"),
    # TensorFlow's optimiser of graphs, in a model of two branches.
    ("ArithmeticOptimizer/AddOpsRewrite_add_1", "AddV2"),
    ("AddN_70", "AddN"),
    ("StatefulPartitionedCall/net_1/while/body/_12/dense/MatMul", "MatMul"),
]


def test_operations_that_were_seen_are_where_they_belong():
    places = {" ".join(one): layer_place(*one, optimizers=optimizer_scopes(dict.fromkeys(SEEN))) for one in SEEN}
    assert_as_before("layers", {one: f"{at.kind}, {at.direction}: {at.layer}" for one, at in places.items()})


def test_a_scope_that_assigns_variables_is_an_optimizer_only_outside_of_the_model():
    update, moving = ("my_rule/AssignSubVariableOp", "AssignSubVariableOp"), "AssignMovingAvg/AssignSubVariableOp"
    gradient = ("gradient_tape/head/dense/MatMul/MatMul", "MatMul")
    averages = [(f"{model}/batch_normalization/{moving}", "AssignSubVariableOp") for model in ("head", "frozen")]
    frozen = ("frozen/conv2d/Conv2D", "_MklNativeConv2D")  # a part of the model that has no gradients
    assert optimizer_scopes([update, gradient, *averages, frozen]) == {"my_rule"}
    assert optimizer_scopes([update, *averages, frozen]) == set(), "nothing is trained"


def test_what_the_input_pipeline_runs_is_input_whatever_it_does():
    assert layer_place("resize/ResizeBilinear", "ResizeBilinear", True) == LayerPlace("resize", "input", "input")
    assert layer_place("PartitionedCall/DecodeCSV", "DecodeCSV", True) == LayerPlace("DecodeCSV", "input", "input")
    assert layer_place("IteratorGetNext", "IteratorGetNext", True).layer == "waiting for the batch"


def test_a_model_that_was_traced_again_keeps_its_layers():
    assert layer_place("model_1/conv2d_1/Conv2D", "Conv2D") == layer_place("model/conv2d_1/Conv2D", "Conv2D")
    assert layer_place("model/conv2d_1/Conv2D", "Conv2D") != layer_place("model/conv2d/Conv2D", "Conv2D")


names = st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)
types = st.from_regex(r"_?[A-Z][A-Za-z]{0,8}", fullmatch=True)
operations = st.lists(st.tuples(names, types, st.booleans(), st.integers(1, 50), st.floats(0, 1e6)), max_size=20)


@settings(max_examples=40, deadline=None)
@given(operations, st.lists(st.floats(0.02, 1.0), min_size=1, max_size=10))
def test_rows_add_up_to_the_step_whatever_the_operations_are(found, step_seconds):
    told = layer_rows(found, step_seconds)
    assert sum(row.ms_per_step for row in told) == pytest.approx(1e3 * sum(step_seconds) / len(step_seconds))
    assert sum(row.share for row in told) == pytest.approx(1)
    assert len({row.place for row in told}) == len(told)
    assert {row.place.kind for row in told} <= set(KINDS)
    assert {row.place.direction for row in told} <= set(DIRECTIONS)
    assert sum(row.calls for row in told) * len(step_seconds) == pytest.approx(sum(one[3] for one in found))
