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

RESNET, BERT = "classification_model/res_net/bottleneck_launch_15", "bert/bert_encoder/transformer/layer_0"
SEEN = {
    (f"{RESNET}/conv2d_2/Conv2D", "_MklNativeConv2D"): ("convolution", "forward", f"{RESNET}/conv2d_2"),
    (f"gradient_tape/{RESNET}/conv2d_2/Conv2D/Conv2DBackpropFilter", "_MklNativeConv2DBackpropFilter"): (
        "convolution",
        "backward",
        f"{RESNET}/conv2d_2",
    ),
    # A fused operation has the name of the last one of them.
    (f"{RESNET}/activation_1/Relu", "_MklNativeFusedConv2D"): ("convolution", "forward", f"{RESNET}/activation_1"),
    ("m/net/depthwise_conv2d/depthwise", "_MklNativeDepthwiseConv2dNative"): (
        "convolution",
        "forward",
        "m/net/depthwise_conv2d",
    ),
    (f"{RESNET}/batch_normalization_2/FusedBatchNormV3", "_MklNativeFusedBatchNormV3"): (
        "normalisation",
        "forward",
        f"{RESNET}/batch_normalization_2",
    ),
    (f"{BERT}/output_layer_norm/moments/SquaredDifference", "SquaredDifference"): (
        "normalisation",
        "forward",
        f"{BERT}/output_layer_norm",
    ),
    ("classification_model/res_net/max_pooling2d/MaxPool", "_MklNativeMaxPool"): (
        "pooling",
        "forward",
        "classification_model/res_net/max_pooling2d",
    ),
    ("classification_model/global_average_pooling2d/Mean", "Mean"): (
        "pooling",
        "forward",
        "classification_model/global_average_pooling2d",
    ),
    (f"{BERT}/self_attention/value/einsum/Einsum", "_MklEinsum"): (
        "attention",
        "forward",
        f"{BERT}/self_attention/value",
    ),
    (f"gradient_tape/{BERT}/self_attention/einsum/Einsum_1", "_MklEinsum"): (
        "attention",
        "backward",
        f"{BERT}/self_attention",
    ),
    (f"{BERT}/intermediate/einsum/Einsum", "_MklEinsum"): ("matmul", "forward", f"{BERT}/intermediate"),
    ("ranking/mlp_1/dense_3/Relu", "_MklNativeFusedMatMul"): ("matmul", "forward", "ranking/mlp_1/dense_3"),
    ("ranking/partial_tpu_embedding/tpu_embedding/embedding_lookup_25", "ResourceGather"): (
        "embedding",
        "forward",
        "ranking/partial_tpu_embedding/tpu_embedding",
    ),
    ("bert/bert_encoder/type_embeddings/MatMul", "_MklMatMul"): (
        "embedding",
        "forward",
        "bert/bert_encoder/type_embeddings",
    ),
    (f"gradient_tape/{BERT}/activation/Gelu/Pow/Pow", "Square"): ("activation", "backward", f"{BERT}/activation"),
    ("bert/next_sentence/dropout_1/dropout/random_uniform/RandomUniform", "RandomUniform"): (
        "dropout",
        "forward",
        "bert/next_sentence/dropout_1",
    ),
    ("bert/cls/predictions/GatherV2", "GatherV2"): ("data movement", "forward", "bert/cls/predictions"),
    ("ranking_1/Sum_4", "Sum"): ("reduction", "forward", "ranking_1"),
    ("ranking_1/binary_crossentropy/mul_1", "Mul"): ("loss", "forward", "ranking/binary_crossentropy"),
    ("bottleneck_launch_7/conv2d_3/kernel/Regularizer/L2Loss", "L2Loss"): (
        "regularisation",
        "forward",
        "bottleneck_launch_7/conv2d_3",
    ),
    ("SGD/SGD/update_153/ResourceApplyKerasMomentum", "ResourceApplyKerasMomentum"): ("optimizer", "optimizer", "SGD"),
    ("AdamWeightDecay/AdamWeightDecay/update_5/AssignSubVariableOp", "AssignSubVariableOp"): (
        "optimizer",
        "optimizer",
        "AdamWeightDecay",
    ),
    ("clip_by_global_norm/truediv", "Reciprocal"): ("optimizer", "optimizer", "clip_by_global_norm"),
    # TensorFlow's optimiser of graphs, in a model of two branches.
    ("ArithmeticOptimizer/AddOpsRewrite_add_1", "AddV2"): ("elementwise", "forward", "no scope"),
    ("AddN_70", "AddN"): ("elementwise", "backward", "no scope"),
    ("StatefulPartitionedCall/net_1/while/body/_12/dense/MatMul", "MatMul"): ("matmul", "forward", "net/dense"),
}


@pytest.mark.parametrize(("operation", "expected"), SEEN.items(), ids=lambda one: one[0][-40:])
def test_operations_that_were_seen_are_where_they_belong(operation, expected):
    place = layer_place(*operation, optimizers=optimizer_scopes(SEEN))
    assert (place.kind, place.direction, place.layer) == expected


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
operations = st.lists(
    st.tuples(
        names,
        st.from_regex(r"_?[A-Z][A-Za-z]{0,8}", fullmatch=True),
        st.booleans(),
        st.integers(1, 50),
        st.floats(0, 1e6),
    ),
    max_size=20,
)


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
