"""Stacks: what perf prints, folded, compared and written; with known answers."""

import json
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.report.traces import Trace
from castmates.runner.tracing import record, stacks
from castmates.study.spec import UNMANAGED
from castmates.timeline.flames import tree
from castmates.timeline.flames.files import colour, draw, folded, speedscope, write_beside
from castmates.timeline.flames.profile import ALONE, CORUN, NO_OPERATION, profile
from castmates.timeline.flames.reading import CUT, Lost, add_stacks, samples, scopes, stack
from castmates.timeline.flames.tree import BEYOND, difference, dispersion, fold, functions, root_of_deviance
from castmates.timeline.model import Making, Registry
from castmates.timeline.queries.database import TraceFolder
from castmates.timeline.tables import write
from tests.unit.snapshots import assert_as_before

SECOND = 1_000_000_000
MS = 10_000_000.0  # ns of CPU time that a sample stands for
PRINTED = """\
my worker 1/2  9774/9775 [001] 66552.418978516:   10101010 cpu-clock:u: 
\t         197a49a tensorflow::(anonymous namespace)::Op<a, b>::Run (/opt/my libs/libtf (1).so.2)
\t    7ff20b15b10c jit_brgemm_kernel_t.32 (/tmp/perf-9774.map)
\t          f00000 [unknown] (/opt/lib/libx.so (deleted))
\tffffffff81000000 do_futex ([kernel.kallsyms])
\t          1098eb clone3 (/usr/lib/libc.so.6)

python 9774/9774 [000] 66552.500000001:   10101010 cpu-clock:u: 
\t            1000 pthread_cond_signal@@GLIBC_2.3.2 (/usr/lib/libc.so.6)
\tffffffffffffffff [unknown] ([unknown])

python 9774/9774 [000] 66552.600000001: PERF_RECORD_LOST lost 12
a line that nobody expects
python 9774/9774 [000] 66552.700000001:   10101010 cpu-clock:u: 

"""  # noqa: W291 (as perf prints it)


def test_what_perf_prints_is_read():
    first, second, lost, third = samples(PRINTED.splitlines(keepends=True))
    assert (first.comm, first.pid, first.tid, first.cpu) == ("my worker 1/2", 9774, 9775, 1)
    assert (first.t_ns, first.weight, first.event) == (66552_418978516, 10101010.0, "cpu-clock")
    assert stack(first.frames) == (
        "clone3;do_futex_[k];[libx.so];jit_brgemm_kernel_t.32_[j];tensorflow::(anonymous namespace)::Op<a, b>::Run"
    )
    assert stack(second.frames) == f"{CUT};pthread_cond_signal"
    assert lost == Lost(12, of_samples=False)
    assert stack(third.frames) == CUT


def test_what_was_lost_is_counted_once(tmp_path, monkeypatch):
    """By a perf that prints both of its counts of the same losses."""
    text = (
        PRINTED + "python 9774/9774 [000] 66552.8: PERF_RECORD_LOST lost 3\n"
        "python 0/0 [000] 66553.0: PERF_RECORD_LOST_SAMPLES lost 9\n"
        "python 0/0 [001] 66553.0: PERF_RECORD_LOST_SAMPLES lost 4\n"
    )
    (tmp_path / "printed").write_text(text)
    (tmp_path / "perf").write_text(f"#!/bin/sh\ncat {tmp_path}/printed\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    making = Making()
    found = add_stacks(making, Registry(making), tmp_path / "printed", {9774: "lead@0"})
    assert (found["lost"], found["cut"], found["reason"]) == (15, 2, "")
    assert len(making.made().stacks) == 3


def made(alone: dict[str, int], beside: dict[str, int], steps=(100, 50), recordings: int = 1):
    """A trace whose lead has these stacks, alone and beside others, a second each and so many steps."""
    making = Making()
    registry = Registry(making)
    run, lead, thread = registry.run("x"), registry.member("lead@0"), registry.thread(11, 10, "worker", "lead@0")
    making.about = {"format": 1, "lead": "lead@0", "members": {"lead@0": {}}, "platform": "measured", "sources": []}
    done = 0.0
    for place in range(2 * recordings):
        scene, sampled = ((ALONE, alone), ("corun:lead@0+stream@1", beside))[place % 2]
        t0, t1 = place * SECOND, (place + 1) * SECOND
        making.intervals(t0_ns=t0, t1_ns=t1, track=run, kind="scene", name=scene)
        every = [name for name, count in sampled.items() for _ in range(count)]
        at = np.linspace(t0, t1 - 1, len(every)).astype(np.int64)
        making.stacks(t_ns=at, track=thread, cpu=0, event="cpu-clock", weight=MS, stack=every, source="perf")
        beats = np.array([t0, t1 - 1])
        counts = done + np.array([0.0, steps[place % 2]])
        making.instants(t_ns=beats, track=lead, kind="heartbeat", name="step", value=counts)
        done = counts[1]
    making.intervals(t0_ns=0, t1_ns=SECOND // 2, track=thread, kind="operation", name="outer;MatMul", depth=0)
    making.intervals(t0_ns=0, t1_ns=SECOND // 4, track=thread, kind="operation", name="inner", depth=1)
    return making.made()


BY_ITSELF = {"main;compute": 80, "main;compute;load<int>": 20, "main;setup": 12, "main;rare": 3}
BESIDE = {"main;compute": 40, "main;compute;load<int>": 60, "main;rare": 4, "main;steal": 11}


def test_a_difference_has_known_values_per_step_and_marks_noise():
    trace = made(BY_ITSELF, BESIDE)
    flame = difference(profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN), "step")
    main = flame.root.calls["main"]
    compute, load = main.calls["compute"], main.calls["compute"].calls["load<int>"]
    # 115 samples of 10 ms in 100 steps; 115 in 50
    assert flame.values(main) == pytest.approx((1.15 * MS, 2.3 * MS))
    assert flame.own(compute) == pytest.approx((0.8 * MS, 0.8 * MS))
    assert flame.values(load) == pytest.approx((0.2 * MS, 1.2 * MS))
    assert main.calls["setup"].after.samples == 0
    assert main.calls["steal"].before.samples == 0
    assert [main.calls[name].noise for name in ("setup", "steal", "rare")] == [False, False, True]
    assert not load.noise
    assert colour(flame, load) == "r4"
    assert colour(flame, main.calls["setup"]) == "b4 gone"
    assert colour(flame, main.calls["rare"]) == "noise"
    assert tree.verdict(main.calls["rare"]) == "too few samples"
    assert [one.name for one in functions(flame)[:2]] == ["load<int>", "steal"]
    by_second = difference(profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN), "second")
    assert by_second.values(by_second.root.calls["main"]) == pytest.approx((115 * MS, 115 * MS))
    assert by_second.root.calls["main"].noise


def test_without_a_difference_one_frame_in_twenty_is_beyond_and_more_where_recordings_vary_more():
    dice = np.random.default_rng(1)
    for mean in (8, 40, 300):
        pairs = dice.poisson([mean, 1.7 * mean], (4000, 2))
        beyond = np.mean([abs(root_of_deviance(one, other, 1.0, 1.7)) >= BEYOND for one, other in pairs])
        assert 0.03 < beyond < 0.065, mean
    assert root_of_deviance(0, 0, 1, 1) == 0
    assert root_of_deviance(30, 90, 1, 1) > 0 > root_of_deviance(90, 30, 1, 1)
    assert root_of_deviance(30, 90, 1, 1, dispersion=4) == pytest.approx(root_of_deviance(30, 90, 1, 1) / 2)


def test_recordings_that_vary_more_than_by_chance_widen_what_counts_as_noise():
    steady = profile(made(BY_ITSELF, BESIDE, recordings=3), "lead@0", ALONE)
    assert len(steady.stretches) == 3
    assert dispersion((steady,), "second") == 1.0
    uneven = steady.stacks.copy()
    uneven["samples"] *= np.where(uneven["stretch"] == 0, 3, 1)
    wild = type(steady)(**{**vars(steady), "stacks": uneven})
    assert dispersion((wild,), "second") > 5


def test_perf_that_began_late_does_not_count_the_time_before():
    trace = made({"main": 100}, {"main": 100})
    late = trace.stacks[trace.stacks["t_ns"] >= SECOND // 2]
    trace = type(trace)(**{**vars(trace), "stacks": late.reset_index(drop=True)})
    found = profile(trace, "lead@0", ALONE)
    assert found.seconds == pytest.approx(0.51, abs=0.03)
    assert found.steps == pytest.approx(51, abs=3)


def test_stacks_begin_with_the_innermost_operation():
    found = profile(made({"main": 100}, {"main": 10}), "lead@0", ALONE, by_operation=True).stacks
    counts = dict(zip(found["stack"], found["samples"], strict=True))
    assert counts.keys() == {"inner;main", "outer:MatMul;main", f"{NO_OPERATION};main"}
    assert abs(counts["inner;main"] - 25) <= 1
    assert abs(counts["outer:MatMul;main"] - 25) <= 1


def test_operations_are_of_the_time_in_which_the_profiler_was_on():
    trace = made({"main": 100}, {"main": 10})
    making = Making()
    making.intervals(t0_ns=0, t1_ns=SECOND // 2, track=1, kind="profiled", name="profiler on")
    both = pd.concat([trace.intervals, making.made().intervals]).reset_index(drop=True)
    found = profile(type(trace)(**{**vars(trace), "intervals": both}), "lead@0", ALONE, by_operation=True)
    assert found.seconds == pytest.approx(0.5)
    assert set(found.stacks["stack"]) == {"inner;main", "outer:MatMul;main"}


def test_perf_that_began_late_counts_the_steps_by_heartbeats():
    """Of 100 steps the second half of the recording, which is all that was sampled, has 90."""
    trace = made({"main": 100}, {"main": 100})
    late = trace.stacks[(trace.stacks["t_ns"] >= SECOND // 2) & (trace.stacks["t_ns"] < SECOND)]
    beats = trace.instants[trace.instants["t_ns"] <= SECOND - 1]
    middle = beats.iloc[:1].assign(t_ns=SECOND // 2, value=10.0)
    instants = pd.concat([beats.iloc[:1], middle, beats.iloc[1:]], ignore_index=True)
    trace = type(trace)(**{**vars(trace), "stacks": late.reset_index(drop=True), "instants": instants})
    found = profile(trace, "lead@0", ALONE)
    assert found.steps == pytest.approx(90, abs=2)


def test_what_is_wrong_with_stacks_is_shown_wherever_they_are():
    alone, beside = {f"{CUT};compute": 30, "main;compute": 70}, {f"{CUT};compute": 10, "main;compute": 90}
    trace = made(alone, beside)
    trace.about["sources"] = [
        {"name": "perf", "lost": 5},
        {"name": "stacks", "lost": 1234, "reason": "perf ended at 3"},
    ]
    flame = difference(profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN), "second")
    expected = [
        "about one in twenty is coloured by chance",
        "20 % of the stacks were cut",
        "perf lost 1,234 stacks",
        "not complete: perf ended at 3.",
    ]
    drawing = " ".join("".join(ElementTree.fromstring(draw(flame, "x", "y")).itertext()).split("\n"))
    head = folded(flame).splitlines()[0]
    assert re.search(r"[a-z)]$", head), "which no reader of folded stacks takes for one with its number"
    for text in (tree.how_to_read(flame), drawing, head, speedscope(flame, "x")["name"]):
        assert [each for each in expected if each not in text] == []
    one = tree.how_to_read(fold(profile(trace, "lead@0", ALONE, by_operation=True), "second"))
    assert "30 % of the stacks were cut" in one
    assert "twenty" not in one
    assert tree.notes(fold(profile(made({"main": 9}, {"main": 9}), "lead@0", ALONE), "second")) == []


def run_again(kept_by: str = "loop"):
    """A trace whose lead used a CPU for the whole of each second: 115 samples of 10 ms alone, and 50 beside others."""
    trace = made(BY_ITSELF, {"main;compute": 50})
    trace.about["members"] = {"lead@0": {"command": [f"/native/bin/{kept_by}", "--", "gzip"]}}
    making = Making()
    for second, clock in ((0, 1.25), (1, 1.0)):
        times = np.arange(1, 11) * SECOND // 10 + second * SECOND
        making.samples(t_ns=times, track=1, name="task-clock", value=clock, unit="CPUs", source="counters")
    return type(trace)(**{**vars(trace), "samples": making.made().samples})


def test_the_graph_of_a_command_that_is_run_again_says_how_much_was_not_sampled(tmp_path, monkeypatch):
    trace = run_again()
    alone, beside = profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN)
    assert (alone.unsampled, beside.unsampled) == (pytest.approx(0.08), pytest.approx(0.5))
    flame = difference(alone, beside, "step")
    drawing = " ".join("".join(ElementTree.fromstring(draw(flame, "x", "y")).itertext()).split("\n"))
    for text in (tree.warning(alone, beside), drawing, folded(flame), speedscope(flame, "x")["name"]):
        assert "8 % alone and 50 % beside others" in text
    monkeypatch.chdir(tmp_path)
    write(trace, tmp_path / "results/x/traces/lead+stream")
    (tmp_path / "results/x/plan.json").write_text("{}")
    shown = CliRunner().invoke(app, ["trace", "flame", "results/x", "lead+stream"])
    assert "8 % alone and 50 % beside others" in " ".join(shown.output.split())
    on_page = Trace(TraceFolder("lead+stream", tmp_path / "results/x/traces/lead+stream")).warnings()
    assert on_page == [tree.warning(alone, beside)]


def test_what_was_not_sampled_is_not_known_where_the_kernel_is_left_out_and_of_no_interest_to_others():
    trace = run_again()
    trace.about["scenes"] = [{"commands": {"stacks": ["perf", "--event", "cpu-clock:u"]}}]
    found = profile(trace, "lead@0", ALONE)
    assert (found.runs_again, found.unsampled) == (True, None)
    assert tree.warning(found) != ""
    assert tree.warning(profile(run_again(kept_by="lines"), "lead@0", ALONE)) == ""


def test_what_is_written_for_other_programs():
    trace = made(BY_ITSELF, BESIDE)
    flame = difference(profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN), "step")
    assert "main;compute;load<int> 20 60\n" in folded(flame)
    assert "main;setup 12 0\n" in folded(flame)
    assert "main;compute 80\n" in folded(fold(profile(trace, "lead@0", ALONE), "step"))
    data = speedscope(flame, "x")
    names = [each["name"] for each in data["shared"]["frames"]]
    alone = data["profiles"][0]
    assert alone["unit"] == "nanoseconds"
    assert alone["endValue"] == pytest.approx(115 * MS)
    weights = {
        ";".join(names[number] for number in one): weight
        for one, weight in zip(alone["samples"], alone["weights"], strict=True)
    }
    assert weights["main;compute;load<int>"] == pytest.approx(20 * MS)


def test_the_drawing_is_whole_and_widths_are_those_of_the_values():
    trace = made(BY_ITSELF, BESIDE)
    flame = difference(profile(trace, "lead@0", ALONE), profile(trace, "lead@0", CORUN), "step")
    text = draw(flame, "a < b & c", "measured · study x")
    root = ElementTree.fromstring(text)
    frames = {each.get("data-n"): each for each in root.iter("{http://www.w3.org/2000/svg}svg") if each.get("data-n")}
    assert frames.keys() == {"all", "main", "compute", "load<int>", "setup", "rare", "steal"}
    width = {name: float(each.get("data-w")) for name, each in frames.items()}
    unit = width["load<int>"] / 1.2
    assert width["compute"] == pytest.approx(2.0 * unit, rel=1e-3)
    assert width["setup"] == pytest.approx(0.12 * unit, rel=1e-3), "as wide as alone"
    assert width["main"] == pytest.approx((2.3 + 0.12) * unit, rel=1e-3), "with what is gone"
    ends = {name: float(each.get("data-x")) + width[name] for name, each in frames.items()}
    assert max(ends.values()) <= ends["all"] + 1e-3


def test_long_names_lose_their_templates():
    assert tree.short("short") == "short"
    assert tree.short("a::" + "Executor<" + "x" * 60 + ", T<int>>::run") == "a::Executor<…>::run"
    assert tree.short("f" * 61 + "::operator<< <int>") == "f" * 61 + "::operator<< <…>"


def test_the_command_and_its_refusals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = tmp_path / "results/x"
    write(made(BY_ITSELF, BESIDE), study / "traces/lead+stream")
    (study / "plan.json").write_text("{}")
    run = CliRunner()

    def ask(*words_: str):
        return run.invoke(app, ["trace", "flame", "results/x", "lead+stream", *words_])

    done = ask()
    assert done.exit_code == 0, done.output
    drawing = study / "traces/lead+stream/flame-lead@0-difference.svg"
    by_step = drawing.read_text()
    assert ask("--per", "second").exit_code == 0
    assert "per second" in drawing.with_name("flame-lead@0-difference-second.svg").read_text()
    assert drawing.read_text() == by_step
    alike = made({"main": 20}, {"main": 20}, steps=(50, 50))
    alike.about["partition"] = UNMANAGED  # as a launch records it, and no option takes it
    write(alike, study / "traces/few")
    few = run.invoke(app, ["trace", "flame", "results/x", "few"])
    said = {"a trace": [" ".join(done.output.split())], "too few samples": [" ".join(few.output.split())]}
    assert ask("--scene", "alone", "--output", "one.speedscope.json").exit_code == 0
    assert json.loads((tmp_path / "one.speedscope.json").read_text())["profiles"][0]["type"] == "sampled"
    wrong = ("--member ghost", "--thread ghost", "--scene ghost", "--scene alone --difference", "--output one.png")
    said |= {words_: str(ask(*words_.split()).exception) for words_ in wrong}
    said["no such mix"] = str(run.invoke(app, ["trace", "flame", "results/x", "no-such-mix"]).exception)
    assert_as_before("flames", said)


def test_a_trace_gets_its_graph_where_it_has_stacks_of_both_scenes(tmp_path):
    trace = made(BY_ITSELF, BESIDE)
    assert write_beside(trace, tmp_path, "x", "lead+stream") == tmp_path / "flame-lead@0-difference.svg"
    assert "measured · study x, trace of lead+stream" in (tmp_path / "flame-lead@0-difference.svg").read_text()
    without = type(trace)(**{**vars(trace), "stacks": trace.stacks.iloc[:0]})
    assert write_beside(without, tmp_path / "other", "x", "lead+stream") is None
    assert not (tmp_path / "other").exists()


def test_a_launch_draws_its_graph_unless_it_failed(tmp_path):
    launch = SimpleNamespace(
        study="x", cohort=SimpleNamespace(mixes=[SimpleNamespace(name="lead+stream", partitions=())])
    )
    record._draw(made(BY_ITSELF, BESIDE), tmp_path, SimpleNamespace(status="failed", launch=launch))
    assert list(tmp_path.iterdir()) == []
    record._draw(made(BY_ITSELF, BESIDE), tmp_path, SimpleNamespace(status="measured", launch=launch))
    assert [file.name for file in tmp_path.iterdir()] == ["flame-lead@0-difference.svg"]


def test_a_member_without_steps_is_compared_by_the_second():
    trace = made(BY_ITSELF, BESIDE)
    trace = type(trace)(**{**vars(trace), "instants": trace.instants.iloc[:0]})
    with pytest.raises(CastmatesError, match="--per second"):
        fold(profile(trace, "lead@0", ALONE), "step")
    assert fold(profile(trace, "lead@0", ALONE), "second").root.after.samples == 115


def test_only_one_writes_the_map_of_a_process_and_only_our_maps_are_removed(tmp_path, monkeypatch):
    assert stacks.environment((3, 11)) == {"ONEDNN_JIT_PROFILE": "2"}
    assert stacks.environment((3, 12))["ONEDNN_JIT_PROFILE"] == "0"
    monkeypatch.setattr(stacks, "PERF_MAPS", tmp_path)
    for name in ("perf-1.map", "perf-2.map", "target"):
        (tmp_path / name).write_text("x")
    (tmp_path / "perf-3.map").symlink_to(tmp_path / "target")
    stacks.remove_maps([1, 3, 4])
    assert {each.name for each in tmp_path.iterdir()} == {"perf-2.map", "perf-3.map", "target"}


def test_names_of_new_templates_keep_their_scopes():
    inside = "_ZZN10tensorflow7functor12HandleCopiesIfiiTnT1_Lin1EEES2_PNS_15OpKernelContextEENKUlllE_clEll"
    assert scopes(inside) == "tensorflow::functor::HandleCopies::{inside}"
    assert scopes("_ZNK3tsl2io5WriteEv") == "tsl::io::Write"
    assert scopes("_Z3fooi") == "_Z3fooi"
