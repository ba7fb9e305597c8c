"""Traces of PyTorch and JAX: what was recorded, what must hold for any trace, and files that are none."""

import gzip
import json
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.explanations.layers import decisive_kind, torch_place
from castmates.errors import CastmatesError
from castmates.traces import json_events, wire
from castmates.traces.chrome import MODULE
from castmates.traces.operations import OUTSIDE
from castmates.traces.reading import read
from castmates.traces.thunks import _directions, path_of
from castmates.workloads.jobs.tracing import STEP
from tests.unit.test_traces import as_the_job_reads, rolled_by_type
from tests.unit.trace_maker import jax_bytes

RECORDED = Path(__file__).parents[1] / "data" / "traces"
TORCH = RECORDED / "torch.pt.trace.json.gz"
STEPS = [(10, 30), (30, 55)]
NAMES = {"Mul": "a/b:Mul", "Conv2D": "c:Conv2D"}  # of the same in a trace of TensorFlow


def places(trace) -> dict[tuple[str, str], tuple[int, str, str, str]]:
    """By operation and type: calls in steps, layer, kind and direction."""
    calls = Counter()
    for number, step in zip(trace.calls.operation.tolist(), trace.calls.step.tolist(), strict=True):
        calls[trace.operations[number]] += step != OUTSIDE
    return {
        (one.name, one.type): (count, one.place.layer, one.place.kind, one.place.direction)
        for one, count in calls.items()
    }


def both(file: Path):
    found = read(file)
    return found.trace, found.memory


def adds_up(trace) -> bool:
    whole = (trace.step_end_ps - trace.step_begin_ps).sum()
    return trace.unattributed_ps >= 0 and trace.calls.shared_ps.sum() + trace.unattributed_ps == pytest.approx(whole)


def test_a_recorded_trace_of_pytorch_has_modules_gradients_and_memory():
    trace, memory = both(TORCH)
    found = places(trace)
    assert trace.steps == 2
    assert adds_up(trace)
    assert found["layers/0/addmm", "addmm"] == (2, "layers/0", "matmul", "forward")
    assert found["layers/2/AddmmBackward0/mm", "mm"] == (4, "layers/2", "matmul", "backward")
    assert found["table/_embedding_bag", "_embedding_bag"] == (2, "table", "embedding", "forward")
    assert found["table/EmbeddingBagBackward0/index_add_", "index_add_"] == (2, "table", "embedding", "backward")
    assert found["layers/1/relu/clamp_min", "clamp_min"] == (2, "layers/1", "activation", "forward")
    # A gradient of what the loss calls is the loss's.
    of_loss = found["cross_entropy_loss/LogSoftmaxBackward0", "LogSoftmaxBackward0"]
    assert of_loss == (2, "no scope", "loss", "backward")
    assert found["SGD/add_", "add_"][1:] == ("SGD", "optimizer", "optimizer")
    assert found["input", "input"] == (2, "waiting for the batch", "input", "input")
    assert not any("castmates" in name for name, _ in found)
    assert (np.diff(memory.at_ps) >= 0).all()
    assert memory.in_use.tolist() == np.cumsum(memory.change).tolist()
    assert "layers/0/addmm" in memory.operation


def test_what_pytorch_marks_by_itself_is_the_input_the_optimizer_s_and_what_was_compiled(tmp_path):
    """A program that is not ours: its loader, clipping before the step, a closure within it, and a compiled region."""
    step, gradient = "Optimizer.step#LBFGS.step", "autograd::engine::evaluate_function: MmBackward0"
    marks = [
        ("enumerate(DataLoader)#_X.__next__", 10, 12),
        (f"{MODULE}Net/a", 12, 14),
        (step, 20, 28),
        (MODULE, 24, 27),
    ]
    called = [
        ("aten::stack", 10, 11), ("aten::mm", 12, 13), (gradient, 14, 18), ("aten::mm", 15, 17), ("aten::norm", 18, 19),
        ("aten::mul_", 19, 20), ("aten::add_", 21, 23), ("aten::mul", 25, 26), ("aten::sum", 28, 29),
        ("Torch-Compiled Region: 1/0", 31, 40), ("aten::addmm", 32, 34),
    ]  # fmt: skip
    events = [_event(name, "user_annotation", begin, end, 0) for name, begin, end in marks]
    events += [_event(name, "cpu_op", begin, end, 0) for name, begin, end in called]
    steps = json.loads(torch_bytes([]))["traceEvents"]
    trace, _ = both(written(tmp_path, torch_bytes([], traceEvents=[*steps, *events])))
    directions = {
        (name, type_): (layer, direction) for (name, type_), (_, layer, _, direction) in places(trace).items()
    }
    assert directions == {
        ("input", "input"): ("waiting for the batch", "input"),
        ("input/stack", "stack"): ("input", "input"),
        ("Net/a/mm", "mm"): ("Net/a", "forward"),
        ("", "runtime"): ("between operations", ""),
        ("MmBackward0/mm", "mm"): ("no scope", "backward"),
        ("LBFGS/norm", "norm"): ("LBFGS", "optimizer"),
        ("LBFGS/mul_", "mul_"): ("LBFGS", "optimizer"),
        ("LBFGS/add_", "add_"): ("LBFGS", "optimizer"),
        ("mul", "mul"): ("no scope", "forward"),
        ("sum", "sum"): ("no scope", "forward"),
        ("compiled 1.0/CompiledRegion", "CompiledRegion"): ("compiled 1.0", "forward"),
        ("compiled 1.0/addmm", "addmm"): ("compiled 1.0", "forward"),
    }


def _given(*tensors, words=()):
    """What a call is given: type, shape and, where it is not dense, strides of each tensor; then plain values."""
    tensors = [(*each, [math.prod(each[1][at + 1 :]) for at in range(len(each[1]))])[:3] for each in tensors]
    kinds = [kind for kind, *_ in tensors] + ["ScalarList"] * len(words)
    dims, strides = ([each[at] for each in tensors] + [[]] * len(words) for at in (1, 2))
    concrete = [""] * len(tensors) + list(words)
    return {"Input type": kinds, "Input Dims": dims, "Input Strides": strides, "Concrete Inputs": concrete}


def test_the_work_of_pytorch_counts_once_and_by_hand(tmp_path):
    """As PyTorch 2.13 calls on a CPU: by hand, and where FlopCounterMode knows them, it has the same."""
    image, taps, gradient = ("float", [1, 4, 8, 8]), ("float", [6, 4, 3, 3]), ("float", [1, 6, 8, 8], [0, 0, 0, 0])
    sizes = ["[6]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, True]"]
    flat = ("float", [16, 8])
    calls = [
        (
            "convolution_backward",
            11,
            15,
            _given(gradient, image, taps, words=sizes),
        ),  # of a gradient that is one number
        ("sum", 12, 13, _given(gradient, words=["[0, 2, 3]", "False"])),  # of the bias, which is not the convolution's
        ("_slow_conv2d_forward", 16, 17, _given(image, taps, words=["[3, 3]", "", "[1, 1]", "[1, 1]"])),
        (
            "mkldnn_convolution",
            17,
            18,
            _given(image, ("float", [6, 2, 3, 3]), ("float", [6]), words=[*sizes[1:4], "2"]),
        ),
        ("mean", 18, 22, _given(flat, words=["[]"])),
        ("sum", 19, 20, _given(flat, words=["[]"])),
        ("div_", 20, 21, _given(("float", []), words=["128"])),
        ("where", 23, 24, _given(("bool", [16, 8]), flat, flat)),
        ("mul", 24, 25, _given(("c10::complex<float>", [16, 8]), flat)),
    ]
    rows = [_event(f"aten::{name}", "cpu_op", begin, end, 0) | {"args": given} for name, begin, end, given in calls]
    steps = json.loads(torch_bytes([]))["traceEvents"]
    trace, _ = both(written(tmp_path, torch_bytes([], traceEvents=[*steps, *rows])))
    order = np.argsort(trace.calls.begin_ps)
    called = [trace.operations[at] for at in trace.calls.operation[order].tolist()]
    found = [(one.type, *one.work) for one in called if one.work.flops == one.work.flops]
    assert found == [
        ("convolution_backward", 2 * 2 * 6 * 64 * 36, 4 * (1 + 256 + 216 + 256 + 216)),
        ("sum", 384, 4 * (1 + 6)),
        ("_slow_conv2d_forward", 2 * 6 * 64 * 36, 4 * (256 + 216 + 384)),
        ("mkldnn_convolution", 2 * 6 * 64 * 18, 4 * (256 + 108 + 6 + 384)),
        ("sum", 128, 4 * (128 + 1)),
        ("div_", 1, 4 * 2),
        ("where", 128, 128 + 3 * 4 * 128),
    ]


def test_a_recorded_trace_of_jax_has_scopes_gradients_and_what_lies_between(tmp_path):
    file = tmp_path / "jax.xplane.pb"
    file.write_bytes(gzip.decompress((RECORDED / "jax.xplane.pb.gz").read_bytes()))
    trace, memory = both(file)
    found = places(trace)
    assert trace.steps == 2
    assert adds_up(trace)
    assert found["layer0/dot_general (ynn_fusion.2)", "dot_general"] == (2, "layer0", "matmul", "forward")
    gradient = found["transpose(jvp)/layer1/dot_general (dot.1)", "dot_general"]
    assert gradient == (2, "layer1", "matmul", "backward")
    assert found["layer0/max (broadcast_maximum_fusion)", "max"] == (2, "layer0", "activation", "forward")
    assert found["optimizer/sub (multiply_subtract_fusion)", "sub"] == (2, "optimizer", "optimizer", "optimizer")
    assert found["input", "input"] == (2, "waiting for the batch", "input", "input")
    assert found["", "runtime"][1:] == ("between operations", "runtime", "")
    assert len(memory.at_ps) == 0


@st.composite
def thread(draw):
    """Nested events, and some that overlap the end of the one they begin in, as clocks let them."""
    events = []
    for _ in range(draw(st.integers(0, 8))):
        begin = draw(st.integers(0, 60))
        events.append((begin, begin + draw(st.integers(0, 25)), draw(st.sampled_from(list(NAMES)))))
    return events


def torch_bytes(threads, indent: int | None = None, **more) -> bytes:
    events = [_event(f"{STEP}#{number}", "user_annotation", begin, end, 0) for number, (begin, end) in enumerate(STEPS)]
    for number, own in enumerate(threads):
        events += [_event(f"aten::{name}", "cpu_op", begin, end, number) for begin, end, name in own]
    content = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": events, "traceName": "x"} | more
    return json.dumps(content, indent=indent).encode()


def _event(name, category, begin, end, thread):
    about = {"Sequence number": 2**64 - 1, "Fwd thread id": 0, "braces": [{"a": "}, {"}, {}]}
    times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, **times, "args": about}


def written(folder: Path, content: bytes) -> Path:
    file = folder / "x.pt.trace.json"
    file.write_bytes(content)
    return file


@settings(deadline=None)
@given(st.lists(thread(), min_size=1, max_size=3), st.sampled_from([None, 1]), st.integers(40, 4000))
def test_any_trace_of_pytorch_is_divided_as_one_of_tensorflow_in_pieces_of_any_size(
    tmp_path_factory, threads, indent, at_once
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_events, "AT_ONCE", at_once)
        trace = read(written(tmp_path_factory.mktemp("trace"), torch_bytes(threads, indent))).trace
    named = {"python": [(*step, STEP) for step in STEPS]}
    named |= {str(n): [(begin, end, NAMES[name]) for begin, end, name in own] for n, own in enumerate(threads)}
    found = defaultdict(float)
    for place, ps in zip(trace.calls.operation, trace.calls.shared_ps, strict=True):
        found[trace.operations[place].type] += ps / 1e6  # its nanoseconds are the others' picoseconds
    wanted = rolled_by_type(as_the_job_reads(named))
    assert {name: ns for name, ns in found.items() if ns > 1e-9} == pytest.approx(wanted)
    assert (trace.calls.own_ps >= 0).all()


def test_an_instruction_that_other_threads_finish_lasts_until_then(tmp_path):
    """And what its thread does meanwhile is no part of it."""
    programs = {"jit_train(1)": [("dot.1", "dot", "jit(train)/a/dot_general"), ("add.1", "add", "jit(train)/a/add")]}
    threads = {
        "python": [(10, 50, STEP), (50, 90, STEP)],
        "tf_XLAEigen/1": [(12, 13, "dot.1"), (14, 20, "add.1"), (20, 20, "end: add.1"), (60, 80, "dot.1")],
        "tf_XLAEigen/2": [(30, 30, "end: dot.1"), (80, 80, "end: dot.1")],
    }
    file = tmp_path / "x.xplane.pb"
    file.write_bytes(jax_bytes(threads, programs, {}))
    trace = read(file).trace
    calls = {
        (trace.operations[operation].type, begin, end): (trace.threads[thread], own, parent, shared)
        for operation, thread, begin, end, own, parent, shared in zip(
            *(getattr(trace.calls, name).tolist()
              for name in ("operation", "thread", "begin_ps", "end_ps", "own_ps", "parent", "shared_ps")),
            strict=True,
        )
    }  # fmt: skip
    assert calls == {
        ("add", 14, 20): ("tf_XLAEigen/1", 6, -1, 3.0),
        ("dot_general", 60, 80): ("tf_XLAEigen/1", 20, -1, 20.0),
        ("dot_general", 12, 30): ("XLA, asynchronous/0", 18, -1, 15.0),
    }


def test_a_name_means_what_it_does_in_the_program_that_ran(tmp_path):
    programs = {
        "jit_train(1)": [("fusion", "fusion", "jit(train)/jvp(a)/mul"), ("while.1", "while", "")],
        "jit_infer(2)": [("fusion", "fusion", "jit(infer)/b/exp")],
        "jit_other(3)": [("fusion", "fusion", "jit(other)/c/log")],
    }
    threads = {"python": [(10, 50, STEP)], "a": [(12, 30, "while.1"), (12, 20, "fusion")], "b": [(25, 30, "fusion")]}
    file = tmp_path / "x.xplane.pb"
    file.write_bytes(jax_bytes(threads, programs, {"a": 1, "b": 2}))
    assert places(read(file).trace) == {
        ("a/mul (fusion)", "mul"): (1, "a", "elementwise", "forward"),
        ("b/exp (fusion)", "exp"): (1, "b", "elementwise", "forward"),
    }


def test_names_of_jax_are_taken_apart():
    path = path_of("jit(train)/transpose(jvp(layer0))/attention/bhqd,bhkd->bhqk/jit(_where)/dot_general")
    assert path.scopes == ("layer0", "attention")
    assert (path.functions, path.primitive, path.backward) == (("_where",), "dot_general", True)
    assert path_of("weights['layer0']").primitive == ""
    assert path_of("jit(epoch)/while/body/closed_call/layer0/add").scopes == ("layer0",)
    assert path_of("jit(f)/body/add").scopes == ("body",), "a module of this name, and no loop"


def test_an_instruction_without_a_name_has_the_direction_of_its_gradients_or_of_what_uses_it():
    ins = {  # in their order, by name: what JAX calls it, its operands, and the direction
        "input": ("", "", "forward"), "of both": ("", "", "backward"), "of the optimizer": ("", "", "optimizer"),
        "forward": ("jit(f)/jvp(a)/mul", "input", "forward"),
        "backward": ("jit(f)/transpose(jvp(a))/mul", "forward, of both", "backward"),
        "from a gradient": ("", "backward, input", "backward"), "from that": ("", "from a gradient", "backward"),
        "update": ("jit(f)/optimizer/sub", "from that, of both, of the optimizer", "optimizer"),
    }  # fmt: skip
    places = {name: place for place, name in enumerate(ins)}
    message = wire.message("Program")()
    computation = message.module.computations.add(id=1)
    for name, (of_jax, operands, _) in ins.items():
        numbers = [places[each] for each in operands.split(", ") if each]
        computation.instructions.add(id=places[name], operands=numbers).metadata.op_name = of_jax.encode()
    assert dict(zip(ins, _directions(computation.instructions), strict=True)) == {
        name: direction for name, (*_, direction) in ins.items()
    }


KINDS = {
    "convolution": ["mkldnn_convolution"],
    "attention": ["_scaled_dot_product_flash_attention_for_cpu_backward"],
    "normalisation": ["native_layer_norm"],
    "loss": ["NllLossBackward0"],
    "activation": ["_softmax", "GeluBackward0"],
    "pooling": ["max_pool2d_with_indices"],
    "matmul": ["baddbmm"],
    "elementwise": ["_foreach_add_"],
    "data movement": ["index_select"],
    "reduction": ["sum"],
    "other": ["torchvision.nms"],
}


def test_types_of_pytorch_are_of_a_kind():
    for kind, types in KINDS.items():
        for type_ in types:
            assert torch_place(("a",), type_, "forward", decisive_kind(type_)).kind == kind, type_


def refused(folder: Path, content: bytes, name: str = "x.pt.trace.json") -> str:
    file = folder / name
    file.write_bytes(content)
    with pytest.raises(CastmatesError) as problem:
        read(file)
    assert str(problem.value).startswith(f"{file}: ")
    assert "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it has no events"),
        (b"PK\x03\x04" * 9, "it has no events"),
        (b'{"a": 1}', "it has no events"),
        (torch_bytes([], schemaVersion=2), "this trace has the schema 2, and 1 is what can be read"),
        (torch_bytes([], traceEvents=[]), "none of the job's steps"),
        (torch_bytes([], traceEvents=[{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}]), "another form"),
        (torch_bytes([], traceEvents=[{"ph": "M", "name": "thread_name", "tid": 1, "args": 3}]), "another form"),
    ],
    ids=["empty", "zip", "other JSON", "newer", "no steps", "no times", "no name"],
)
def test_a_foreign_file_is_a_sentence(tmp_path, content, why):
    assert why in refused(tmp_path, content)


@settings(deadline=None)
@given(st.data())
def test_a_trace_that_was_cut_is_a_sentence(tmp_path_factory, data):
    whole = torch_bytes([[(12, 28, "Mul")]], indent=1)
    packed = gzip.compress(whole)
    folder = tmp_path_factory.mktemp("trace")
    refused(folder, whole[: data.draw(st.integers(0, len(whole) - 2))])
    refused(folder, packed[: data.draw(st.integers(0, len(packed) - 1))], "x.pt.trace.json.gz")
