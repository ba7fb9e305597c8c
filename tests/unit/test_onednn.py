"""oneDNN's log: lines of several versions are read, all others counted; primitives find their operations by time."""

from pathlib import Path

import numpy as np
import pytest

from castmates.analysis.explanations.layers import computes
from castmates.analysis.operations.instructions import (
    EXTENSIONS,
    HAS,
    LACKS,
    NOT_KNOWN,
    UNKNOWN,
    UNUSED,
    USED,
    WIDER,
    extension_state,
    instructions_of,
    use_of,
    work_of,
)
from castmates.analysis.operations.primitives import types_of
from castmates.errors import CastmatesError
from castmates.runner.profiles.graphs import joined
from castmates.traces.graphs import Execution, operand_types, read_log
from castmates.traces.operations import read_trace
from tests.unit.trace_maker import write_trace

DATA = Path(__file__).parents[1] / "data/traces"
# As TensorFlow 2.20 wrote them (oneDNN 3.7.3); formats of oneDNN 3.4, 2.x and 1.x, as its documentation and issues have
# them, with time stamps; and lines of others.
NEW, OLD, OTHERS = ((DATA / f"onednn-{name}.log").read_text() for name in ("new", "old", "others"))


def log_of(tmp_path, text):
    file = tmp_path / "onednn.log"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_log(file)


def test_lines_of_all_versions_are_read(tmp_path):
    log = log_of(tmp_path, NEW + OLD)
    assert (log.version, log.instructions) == ("v3.7.3", "Intel AVX-512 with Intel DL Boost and bfloat16 support")
    assert [(one.primitive, one.implementation, one.shapes) for one in log.executions] == [
        ("matmul", "brg_matmul:avx512_core", "4x64x384:4x384x64"),
        ("gemm_api", "", "256x384:384x512"),
        ("convolution", "brg_conv_fwd:avx512_core", "mb4_ic16oc32_ih28oh28kh3sh1dh0ph1_iw28ow28kw3sw1dw0pw1"),
        ("convolution", "jit:avx2", "mb1_ic3oc16_ih640oh320kh3sh2dh0ph1_iw640ow320kw3sw2dw0pw1"),
        ("inner_product", "brgemm:avx512_core", "mb200ic512oc128"),
        ("convolution", "jit:avx2", "mb2_ic16oc16_ih7oh7kh5sh1dh0ph2_iw7ow7kw5sw1dw0pw2"),
    ]
    assert log.executions[0].begin_ns == 1795745825295450928, "every digit counts: a float would lose 250 ns"
    assert [one.duration_ns for one in log.executions[:2]] == [156006, 97056900]
    for one in log.executions:
        assert dict(operand_types(one.operands)).items() >= {("src", "f32"), ("wei", "f32"), ("dst", "f32")}
    assert "bia" not in dict(operand_types(log.executions[2].operands)), "what is undefined is not there"


def test_other_lines_are_counted_and_end_nothing(tmp_path):
    log = log_of(tmp_path, OTHERS)
    assert log.executions == []
    assert dict(log.other_lines) == {
        "not oneDNN's": 1,
        "create": 1,
        "not on a CPU": 1,
        "without a time stamp": 1,
        "unknown form": 2,
        "cut": 1,
    }
    assert log_of(tmp_path, b"\xff\xfe\n" + NEW.encode()).other_lines["not oneDNN's"] == 1
    with pytest.raises(CastmatesError, match=r"none.log: oneDNN's log cannot be read \(No such file or directory\)"):
        read_log(tmp_path / "none.log")


@pytest.mark.parametrize(
    ("implementation", "isa"),
    [
        ("brg_matmul:avx512_core", "avx512_core"),
        ("brg_conv_bwd:avx512_core+brgconv_1x1:avx512_core", "avx512_core"),
        ("brg_matmul:avx10_1_512_amx", "avx10_1_512_amx"),
        ("jit:avx2", "avx2"),
        ("jit_1x1:avx2_vnni_2", "avx2_vnni_2"),
        ("jit:sse41", "sse41"),
        ("jit:uni", ""),
        ("x64:gemm:jit", ""),
        ("ref:any", ""),
        ("", ""),
    ],
)
def test_an_implementation_names_its_instructions_or_none(implementation, isa):
    assert instructions_of(implementation) == isa


FLOATS, SHORT, BYTES = (f"src:{kind} wei:{kind} dst:f32" for kind in ("f32", "bf16", "s8"))


@pytest.mark.parametrize(
    ("primitive", "isa", "types", "uses"),
    [  # AVX2, AVX-512, VNNI, AVX-512 BF16, AMX
        ("matmul", "avx2", FLOATS, (USED, UNUSED, "", "", "")),
        ("matmul", "avx512_core", FLOATS, (WIDER, USED, "", "", "")),
        ("matmul", "", FLOATS, (UNKNOWN, UNKNOWN, "", "", "")),
        ("matmul", "sse41", FLOATS, (UNUSED, UNUSED, "", "", "")),
        ("convolution", "avx512_core_bf16", SHORT, (WIDER, USED, "", USED, UNUSED)),
        ("convolution", "avx512_core", SHORT, (WIDER, USED, "", UNUSED, UNUSED)),
        ("matmul", "avx10_1_512_amx", SHORT, (WIDER, USED, "", WIDER, USED)),
        ("matmul", "avx512_core_vnni", BYTES, (WIDER, USED, USED, "", UNUSED)),
        ("matmul", "avx512_core_amx", BYTES, (WIDER, USED, WIDER, "", USED)),
        ("softmax", "avx512_core_bf16", "src:bf16 dst:bf16", (WIDER, USED, "", "", "")),
    ],
)
def test_only_what_an_implementation_names_counts_as_use(primitive, isa, types, uses):
    assert tuple(use_of(each, primitive, isa, types_of(types)) for each in EXTENSIONS) == uses


def test_what_the_processor_lacks_is_another_answer_than_what_it_has():
    flags = ["avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"]
    assert [extension_state(each, flags) for each in EXTENSIONS] == [HAS, HAS, HAS, LACKS, LACKS]
    assert [extension_state(each, flags[:2]) for each in EXTENSIONS] == [HAS, LACKS, LACKS, LACKS, LACKS]
    assert {extension_state(each, None) for each in EXTENSIONS} == {NOT_KNOWN}


@pytest.mark.parametrize(
    "types",
    [
        "MatMul _MklNativeFusedMatMul _MklFusedBatchMatMulV2 _FusedConv2D FusedBatchNormGradV3 ResourceApplyAdam Cast",
        "mm addmm convolution_backward native_layer_norm mul_ _foreach_add_ _foreach_norm _fused_adamw_ _log_softmax",
        "silu max_pool2d dot_general conv_general_dilated reduce_sum exp select_n convert convert_element_type",
    ],
)
def test_operations_that_compute_could_use_vectors(types):
    assert [name for name in types.split() if not computes(name)] == []


def test_operations_that_only_read_or_move_could_not():
    types = "AddmmBackward0 ResourceGather Reshape IteratorGetNext AssignVariableOp view embedding empty_like rev"
    assert [name for name in ("", *types.split()) if computes(name)] == []


F32 = {"src": "f32", "wei": "f32", "dst": "f32"}


@pytest.mark.parametrize(
    ("primitive", "shapes", "types", "flops", "moved"),
    [
        # 256 × 384 times 384 × 512, by hand: 2 · 256 · 512 · 384; 98,304 + 196,608 + 131,072 numbers of 4 bytes.
        ("gemm_api", "256x384:384x512", F32, 100_663_296, 1_703_936),
        ("matmul", "256x384:384x512", dict.fromkeys(F32, "bf16"), 100_663_296, 851_968),
        ("matmul", "4x64x384:4x384x64", F32, 12_582_912, 851_968),
        ("matmul", "8x2x3x5:1x1x5x7", F32, 2 * 16 * 3 * 7 * 5, 4 * (16 * 15 + 35 + 16 * 21)),
        ("inner_product", "mb256ic745oc256", F32 | {"bia": "f32"}, 97_648_640, 4 * (190_720 + 190_720 + 65_536 + 256)),
        ("inner_product", "mb2ic3ih4iw5oc7", F32, 2 * 2 * 60 * 7, 4 * (120 + 420 + 14)),
        # 32 filters of 3 × 3 × 16 at 28 × 28 places of 4 images.
        ("convolution", "mb4_ic16oc32_ih28oh28kh3sh1dh0ph1_iw28ow28kw3sw1dw0pw1", F32, 28_901_376, 620_544),
        ("convolution", "g16mb4_ic16oc16_ih32oh16kh3sh2dh0ph0_iw32ow16kw3sw2dw0pw0", F32, 2 * 4 * 144 * 256,
         4 * (65_536 + 144 + 16_384)),
        ("deconvolution", "mb1_ic8oc4_ih5oh10kh2sh2dh0ph0_iw5ow10kw2sw2dw0pw0", F32, 2 * 128 * 25,
         4 * (200 + 128 + 400)),
    ],
)  # fmt: skip
def test_work_by_hand(primitive, shapes, types, flops, moved):
    assert work_of(primitive, shapes, types) == (flops, moved)


@pytest.mark.parametrize(
    ("primitive", "shapes"),
    [("softmax", "256x512"), ("matmul", "256x384"), ("matmul", "2x3:4x5"), ("matmul", "*"), ("convolution", "ic3")],
)
def test_work_that_is_not_known_is_no_number(primitive, shapes):
    assert np.isnan(work_of(primitive, shapes, F32)).all()
    assert np.isnan(work_of("matmul", "2x3:3x2", {"src": "f32"}).bytes)


MS = 1_000_000_000  # picoseconds


def test_a_primitive_belongs_to_the_call_that_it_lies_in(tmp_path):
    file = write_trace(
        tmp_path / "x.xplane.pb",
        {
            "python": [(0, 10 * MS, "castmates_step")],
            "tf_Compute/1": [(1 * MS, 3 * MS, "a/MatMul:MatMul"), (5 * MS, 7 * MS, "b/Conv2D:_MklConv2D")],
            "tf_Compute/2": [(5 * MS, 8 * MS, "c/Relu:Relu")],
        },
    )
    trace = read_trace(file)

    def of(primitive, begin, end):
        one = Execution(0, 0, primitive, "", "undef", "", "", "", "")
        (place, how), = joined(trace, [one], np.array([int(begin * MS)]), np.array([int(end * MS)]))  # fmt: skip
        return ("" if place < 0 else trace.operations[place].name), how

    assert of("gemm_api", 1.2, 2.9) == ("a/MatMul", "time")
    assert of("gemm_api", 0.9995, 2.9) == ("a/MatMul", "time"), "clocks differ by less than 2 µs"
    assert of("gemm_api", 0.8, 2.9) == ("", ""), "it began before the call did"
    assert of("gemm_api", 3.5, 4.0) == ("", "")
    assert of("convolution", 5.5, 6.0) == ("b/Conv2D", "time and type")
    assert of("reorder", 5.5, 6.0) == ("", "several")
