"""Streams of GPUs in made traces, in the form that TensorFlow and XLA publish: no trace of a real GPU was at hand."""

from operator import attrgetter

import pandas as pd
import pytest

from castmates.analysis.tables.kernels import KERNELS, kernels
from castmates.results.columns.operations import DEVICE_CALLS
from castmates.runner.profiles.rounds import Taken
from castmates.runner.profiles.tables import Aligned, device_rows
from castmates.study.spec import UNMANAGED, Scene
from castmates.traces.devices import read_devices, uses_tensor_cores
from castmates.traces.operations import read_trace
from castmates.workloads.tfmodels.xspace import STEP
from tests.unit.operations_maker import COMMON
from tests.unit.space_maker import Event, space

US = 1_000_000  # picoseconds
MATMUL = "StatefulPartitionedCall/model/dense/MatMul:MatMul"
GEMM = "ampere_h16816gemm_128x128_ldg8_stages_64x3_nn"
DETAILS = "regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 launch:256,1,1 occ_pct:50"
MADE = {
    "/host:CPU": {
        "python": [Event(0, 100 * US, STEP), Event(100 * US, 200 * US, STEP)],
        "tf_Compute/1": [Event(5 * US, 9 * US, MATMUL)],
    },
    "/device:GPU:0": {
        "Stream #7(Compute)": [
            Event(10 * US, 30 * US, GEMM, {"tf_op": MATMUL, "correlation_id": 4, "kernel_details": DETAILS}),
            Event(110 * US, 140 * US, GEMM, {"tf_op": MATMUL, "correlation_id": 9, "kernel_details": DETAILS}),
            Event(210 * US, 240 * US, "late", {"kernel_details": DETAILS}),
            Event(40 * US, 50 * US, "fusion_1", {"kernel_details": DETAILS}, "loop fusion", {"hlo_op": "fusion.1"}),
        ],
        "Stream #8(MemcpyH2D)": [
            Event(
                0,
                5 * US,
                "MemcpyH2D",
                {"memcpy_details": "kind_src:pinned kind_dst:device size:4096 dest:0 async:1", "correlation_id": 2},
            )
        ],
        "XLA Ops": [Event(10 * US, 30 * US, "dot.1")],  # that a tool derived
    },
}


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "x.xplane.pb"
    file.write_bytes(space(MADE, {"Stream #8(MemcpyH2D)": "copies to the GPU"}))
    return file, read_trace(file)


def test_kernels_and_copies_know_their_operation_stream_and_what_they_are(trace):
    shown = attrgetter("stream", "activity", "name", "operation", "type", "bytes", "tensor_cores", "correlation")
    found = [shown(call) for call in read_devices(*trace)]
    gemm = ("Stream #7(Compute)", "kernel", GEMM, "model/dense/MatMul", "MatMul", 0, True)
    plain = ("Stream #7(Compute)", "kernel")
    assert found == [
        ("copies to the GPU", "copy", "MemcpyH2D", "", "", 4096, False, 2),
        (*gemm, 4),
        (*plain, "loop fusion", "fusion.1", "", 0, False, 0),
        (*gemm, 9),
        (*plain, "late", "", "", 0, False, 0),
    ]


def test_operations_have_a_list_of_their_kernels(trace):
    file, read = trace
    scene = Scene(name="alone", kind="alone", mix="", active=(), placebos=(), partition=UNMANAGED)
    common = COMMON | {"launch": 1, "round": 1, "scene": "alone", "kind": "alone", "mix": ""}
    rows = pd.DataFrame(device_rows(Aligned(read, Taken(scene, 1), 0, 0, common), read_devices(file, read)))
    assert set(rows.columns) == set(DEVICE_CALLS)
    table = kernels(rows, pd.DataFrame([common | {"part": "traced"}] * 2))
    assert set(KERNELS) <= set(table.columns)
    shown = table.set_index("kernel")[["operation", "calls", "ms", "mb", "tensor_cores", "longest_ms"]]
    assert shown.loc[GEMM].tolist() == ["model/dense/MatMul", 1.0, pytest.approx(0.025), 0.0, True, pytest.approx(0.03)]
    assert shown.loc["MemcpyH2D"].tolist() == ["", 0.5, 0.0025, 0.002048, False, 0.005]
    assert "late" not in shown.index
    assert table["share"].sum() == pytest.approx(1.0)


TENSOR_CORES = {
    "volta_h884gemm_64x128_ldg8_nn": True,
    "turing_fp16_s1688cudnn_fp16_128x128": True,
    "sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel": True,
    "sm90_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_simt": False,
    "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_32x6_nn_align8": True,
    "cutlass_80_simt_sgemm_128x128_8x4_nn_align1": False,
    "ampere_sgemm_128x64_nn": False,
    "void tensorflow::functor::RowReduceKernel<float*, float*, cub::Sum>(float*, float*, int, int)": False,
    "Eigen::internal::EigenMetaKernel<Assign<float, 16884>>": False,
}


def test_kernels_of_tensor_cores_are_known_by_their_names():
    assert {kernel: uses_tensor_cores(kernel) for kernel in TENSOR_CORES} == TENSOR_CORES
