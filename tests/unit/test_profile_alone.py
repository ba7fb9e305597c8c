"""A study of which steps were only traced: its page, its answer and its findings, and which steps are slow."""

import re
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from castmates.analysis.explanations.layers import UNATTRIBUTED
from castmates.analysis.operations.per_trace import by_type
from castmates.cli.main import app
from castmates.pipeline.analyse import analyse
from castmates.pipeline.estimates import write_operation_tables
from castmates.report.results import read_results
from castmates.report.text.operations import told_apart
from castmates.report.text.step_summary import OF_SCENE, _drawn, _in_use
from castmates.results.folder import StudyFolder
from castmates.study.model import Workload
from tests.unit.makers import plan, study, workloads
from tests.unit.operations_maker import ALONE, COMMON, THREADS, call_of, launches, of_steps
from tests.unit.test_estimate_primitives import USUAL_MS, leave

TEXT = "name: s\nleads: [lead]\nantagonists: [{}]\nprofile: {{launches: 3}}\ncontrols: null\n"


@pytest.fixture(params=["", "stream"])
def traced(request, tmp_path, monkeypatch):
    """The folder of a study with three profile launches and no other one: of a lead by itself, or beside another."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "s.yaml"
    file.write_text(TEXT.format(request.param))
    job = Workload(command="python train.py", progress="heartbeat", attach="torch")
    asked = study(["lead"], [request.param] if request.param else [], name="s", profile={"launches": 3})
    made, folder = plan(asked, programs=workloads("stream", lead=job)), StudyFolder.of("s")
    for launch in made.profiles:
        leave(launch, folder.profile(launch.path), None)
    folder.plan_file.write_text(made.model_dump_json())
    folder.machine_file.write_text("{}")
    write_operation_tables(made, folder, 0.02, folder.tables)
    analyse(folder, file.relative_to(tmp_path))
    return folder


def text_of(folder):
    body = re.sub(r"<(style|script|svg).*?</\1>", " ", folder.page_file.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_its_page_shows_the_step_and_claims_no_loss(traced):
    text = text_of(traced)
    share = round(100 * USUAL_MS / (USUAL_MS + 1.0))
    assert f"forward {share} %, idle {100 - share} %" in text
    assert "no losses measured" in text
    for words in ("Nothing was measured", "Can you trust this", "Controls and noise", "no numbers"):
        assert words not in text
    results = read_results(traced.path)
    assert results.only_traced
    assert results.platforms == ["measured"]
    assert ("castmates sweep s.yaml measures them" in text) == bool(results.plan.mixes[0].antagonists)


def test_show_and_advice_answer_without_a_sweep(traced):
    shown = CliRunner().invoke(app, ["show", "s.yaml"])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"80 % +4\.000 ms +model/dense: MatMul", shown.stdout)
    advised = CliRunner().invoke(app, ["advice", "s.yaml", "--all"])
    assert advised.exit_code == 0, advised.output
    lines = advised.stdout.splitlines()
    assert any(line.startswith("unattributed (lead): not shown: ") and "20.0 %" in line for line in lines)
    assert "machine-not-quiet: not known: the table effects is empty, as no losses were measured" in lines


def test_advice_on_a_study_that_is_not_analysed_yet_says_so_and_leaves_nothing(traced):
    shutil.rmtree(traced.tables)
    traced.kept_answer_file.unlink()
    Path("other.yaml").write_text(TEXT.format("").replace("name: s", "name: other"))
    for named, words in (("s.yaml", "run `castmates sweep s.yaml`"), ("other.yaml", "no results in results/other yet")):
        assert words in str(CliRunner().invoke(app, ["advice", named]).exception)
    assert not traced.tables.exists()


def test_memory_is_drawn_from_the_beginning_of_the_step_to_its_end(traced):
    row, mb = read_results(traced.path).iterations.iloc[0], 1_000_000
    folder = traced.profile(row["key_launch"])
    steps = pd.read_parquet(folder / "profiled_steps.parquet")
    step = steps[(steps["part"] == "traced") & (steps["step"] == row["key_step"])].iloc[0]
    # 3 MB are there as the step begins; two more in its third quarter.
    about = {"round": row["key_round"], "step": row["key_step"], "allocator": "cpu"} | row[OF_SCENE].to_dict()
    changes = [(0.5, 2 * mb, 5 * mb), (0.75, -2 * mb, 3 * mb)]
    moments = [
        about | {"at_ns": int(step["begin_ns"] + part * step["duration_ns"]), "change": change, "in_use": in_use}
        for part, change, in_use in changes
    ]
    pd.DataFrame(moments).to_parquet(folder / "memory.parquet")
    drawn = _drawn(_in_use(read_results(traced.path), row, "cpu"))
    assert re.fullmatch("▁{15,16}█{8,9}▁{7,9} 3.00 … 5.00 MB", drawn), drawn


def test_no_interval_of_a_share_is_beyond_the_whole_step():
    shares = by_type(launches(3, {}, np.random.default_rng(1), between=0.6))
    assert shares["share_low"].min() >= 0
    assert shares["share_high"].max() <= 1


@pytest.mark.parametrize("slower", [[1.0], [1.0, 3.0]])
def test_slow_steps_are_those_that_stand_out_and_the_operation_that_takes_longer_in_them(slower):
    """A launch that is slower as a whole, as the second one here, changes nothing of this."""
    lookup = "model/embed_1/Gather:ResourceGather"
    about = COMMON | {"round": 1, "scene": "alone", "kind": "alone", "mix": ""}
    calls, steps = [], []
    for launch, step in product(range(len(slower)), range(10)):
        about["launch"] = launch
        stands_out = launch == 0 and step in {3, 6}
        longer = {lookup: 4.0, "model/dense/MatMul:MatMul": 1.0} if stands_out else {}
        taken = {name: slower[launch] * ms + longer.get(name, 0.01 * (step % 3)) for name, ms in ALONE.items()}
        calls += [about | call_of(name, ms, step) for name, ms in taken.items()]
        own = {"part": "traced", "step": step, "unattributed_ns": 1e6 * (1.0 - 0.5 * stands_out)} | THREADS
        steps.append(about | own | {"duration_ns": 1e6 * sum(taken.values()) + own["unattributed_ns"]})
    (row,) = of_steps([(pd.DataFrame(calls), pd.DataFrame(steps))]).to_dict("records")
    noise = 0.01125  # a usual step has this much of each operation besides, on average
    assert (row["outliers"], row["slow_steps"], row["slow_in"]) == (2, 2, lookup)
    assert row["slow_in_ms"] == pytest.approx(4.0 - noise, abs=0.01)
    assert row["slow_ms"] == pytest.approx(4.0 + 1.0 - 0.5 - 5 * noise, abs=0.02)


@given(st.lists(st.tuples(st.sampled_from(["A/mm", "A/mm_1", "A/mm/MatMul", "B", ""]),
                          st.sampled_from(["MatMul", "_MklMatMul", UNATTRIBUTED])), unique=True))  # fmt: skip
def test_operations_are_called_by_names_that_can_be_told_apart(named):
    groups = [f"{name}:{type_}" for name, type_ in named]
    names = told_apart(groups)
    assert list(names) == groups
    assert len(set(names.values())) == len(groups)


def test_only_operations_that_would_be_called_alike_have_their_whole_names():
    assert told_apart(["A/mmA0:MatMul", "A/mmA1:MatMul", "B/conv:Conv2D"]) == {
        "A/mmA0:MatMul": "A/mmA0 (MatMul)", "A/mmA1:MatMul": "A/mmA1 (MatMul)", "B/conv:Conv2D": "B: Conv2D",
    }  # fmt: skip
