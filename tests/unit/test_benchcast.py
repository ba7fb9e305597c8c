"""Files of BenchCast become a study and a catalogue; what cannot be taken over is a sentence."""

import platform

import pytest
import yaml
from typer.testing import CliRunner

from castmates import project
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.pipeline.benchcast import write_study
from tests.builds import ROOT
from tests.unit.snapshots import assert_as_before
from tests.unit.suites import trees

SCRIPT = """#!/bin/sh
cd /opt/BenchCast && make PAPI=1 bench_cast
# ./bench_cast --SPEC lbm.1 --SPEC nab.1
sudo rdtset -t 'l3=0x1;cpu=0' -c 0-3 ./bench_cast -c mine -p4 -l 3 -s 5 -e events.cfg -m 2 \\
    --SPEC mcf.1 --SPEC=xalanbmk.1 --NPB ft.A
./bench_cast -p 2 --NPB cg.A --NPB ft.A
./bench_cast -p 2 --NPB cg.A --NPB ft.A --NPB is.A; ./bench_cast -v a.csv --PARSEC dedup.1 --SPEC gcc.5
./bench_cast --NPB cg.A; ./bench_cast -t 4 -a llama --llama model.8 --NPB cg.A
for app in lbm nab; do ./bench_cast --SPEC $app.1 --NPB cg.A; done
"""
POOL = """import os
ONE = {"1"}
SPEC = {"lbm": ONE, "xz": {"1", "2"}}
exp_list = {"SPEC": SPEC, "NPB": {"cg": {"A"}, "bt": {"B"}}, "HPC": {"hpl": ONE}}
raise SystemExit("it is read, and not run")
"""
TABLE = ',Benchmark,PAPI_TOT_INS\n0,-NPB.cg.A-NPB.ft.A-SPEC.mcf.1,"[1, 2]"\n1,-mcf.1-lbm.1,\n'
EVENTS = "PAPI_TOT_INS\nPAPI_L1_TCM\nMEM_LOAD_RETIRED.L3_MISS\nPAPI_L3_LDM\n"
CONFIGURATION = 'PATHS = {"SPEC": "../spec", "NPB": "/opt/npb", "OTHER": "."}\n'
TOPDOWN = (
    "./experiments/topdown.py --max_apps=3 --num_procs 8 --numtests=40 --seconds=9 --eventfile=no.cfg --alpha 0.5\n"
)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "experiments").mkdir()
    files = {"run.sh": SCRIPT, "experiments/experiment_list.py": POOL, "old.csv": TABLE, "events.cfg": EVENTS,
             "BENCH_CONF.py": CONFIGURATION, "draw.sh": TOPDOWN}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def imported(tree, *names):
    written, left = write_study(tree / "mine", [tree / name for name in names])
    study, catalogue = (yaml.safe_load(file.read_text()) for file in written)
    return study, catalogue, left


def test_commands_become_mixes_as_bench_cast_fills_processors(tree):
    study, catalogue, left = imported(tree, "run.sh")
    assert study["mixes"] == [
        {"lead": "spec2017.mcf_r", "antagonists": ["spec2017.xalancbmk_r", "npb.ft", "spec2017.mcf_r"]},
        {"lead": "npb.cg", "antagonists": ["npb.ft"]},
        {"lead": "parsec.dedup", "antagonists": ["spec2017.gcc_r"]},
    ]
    assert study["placement"] == {"reserve": 2}
    assert study["counters"]["sets"] == {"benchcast": ["instructions", "mem_load_retired.l3_miss"]}
    assert catalogue["npb"] == {"root": "/opt/npb/NPB3.3-SER", "size": "A", "benchmarks": ["ft", "cg"],
                                "progress": "barriers"}  # fmt: skip
    label = f"mine-{'m64' if platform.machine() == 'x86_64' else '64'}"
    spec = {"root": str(tree.parent / "spec"), "size": "refrate", "label": label, "progress": "barriers"}
    assert catalogue["spec2017"] == {**spec, "benchmarks": ["mcf_r", "xalancbmk_r", "gcc_r"]}
    assert_as_before("benchcast", {"run.sh": left})


def test_a_list_and_how_it_is_drawn_become_random_mixes(tree):
    study, catalogue, left = imported(tree, "experiments/experiment_list.py", "draw.sh")
    assert study["mixes"]["random"] == {
        "count": 40, "antagonists": 2, "copies": 3, "from": ["spec2017.lbm_r", "spec2017.xz_r", "npb.cg", "npb.bt"],
    }  # fmt: skip
    assert set(catalogue) == {"spec2017", "npb"}
    wanted = [
        "HPC hpl: hpl is of no suite", "class B of bt", "no.cfg: this list", "--alpha 0.5: this option has no",
        "8 processors with 3 programs: a lead and 3 of each of 2 others are 7 members here", "xz.2: a run here",
        "topdown.py: it draws a suite first",
    ]  # fmt: skip
    for part in wanted:
        assert any(part in sentence for sentence in left), (part, left)


def test_without_a_number_of_processors_it_is_said_that_they_are_all_filled_there(tree):
    (tree / "draw.sh").write_text("./topdown.py --max_apps 3\n./bench_cast --NPB cg.A --NPB ft.A\n")
    study, _, left = imported(tree, "experiments/experiment_list.py", "draw.sh")
    assert "copies" not in study["mixes"]["random"]
    assert "    # copies: 1 " in (tree / "mine" / "study.yaml").read_text()
    assert "--num_procs is not given: topdown.py fills all processors of the machine there; set `copies`." in left
    assert any(" --NPB ft.A: without -p it repeats them on all processors" in sentence for sentence in left)
    assert [one.partition(":")[0] for one in left if "_events.cfg: " in one] == [
        "TOPDOWN_events.cfg",
        "BenchCast_PAPI_events.cfg",
    ]
    (tree / "draw.sh").write_text("./experiment_BenchCast.py --num_procs 2\n")
    (tree / "mine" / "study.yaml").unlink()
    (tree / "mine" / "workloads" / "benchcast.yaml").unlink()
    study, _, left = imported(tree, "experiments/experiment_list.py", "draw.sh")
    assert study["mixes"]["random"]["antagonists"] == 3
    assert any(sentence.startswith("--num_procs 2: experiment_BenchCast.py reads it and takes") for sentence in left)


def test_fewer_processors_than_programs_are_drawn_and_one_program_draws_nothing(tree):
    (tree / "draw.sh").write_text("./topdown.py --num_procs 3\n")
    study, _, left = imported(tree, "experiments/experiment_list.py", "draw.sh")
    assert study["mixes"]["random"]["antagonists"] == 2
    assert not any("3 processors" in sentence for sentence in left)
    (tree / "one.py").write_text('exp_list = {"NPB": {"cg": {"A"}}}\n')
    with pytest.raises(CastmatesError, match="there is no mix in it"):
        write_study(tree / "other", [tree / "one.py"])


COMPUTED = """HOME = os.environ["HOME"]
A = {"lbm": {"1"}}
PATHS = {"SPEC": HOME + "/spec", "NPB": "npb", "PARSEC": HOME}
exp_list = {"SPEC": {**A, "mcf": set("1"), "xz": {"1"}}, "NPB": {"cg": {"A", chosen()}}, "PARSEC": parsec()}
exp_list["PARSEC"] = {"dedup": ["1"]}
"""


def test_what_only_running_a_file_would_show_is_a_sentence_with_its_line(tree):
    lines = COMPUTED.splitlines(keepends=True)
    (tree / "BENCH_CONF.py").write_text("".join(lines[:3]))
    (tree / "list.py").write_text("".join(["\n"] * 2 + lines[1:2] + lines[3:]))
    study, catalogue, left = imported(tree, "list.py")
    assert study["mixes"]["random"]["from"] == ["spec2017.xz_r", "npb.cg"]
    assert catalogue["npb"]["root"] == str(tree / "npb" / "NPB3.3-SER")
    assert catalogue["spec2017"]["root"] == "../SPEC17"
    computed = [sentence.partition(":")[0] for sentence in left if "it is computed, and nothing is run" in sentence]
    assert computed == ["BENCH_CONF.py, line 3", "BENCH_CONF.py, line 1", "list.py, line 4", "list.py, line 5"]
    (tree / "none.py").write_text("exp_list = made()\n")
    with pytest.raises(CastmatesError, match=r"no mix in it.* none.py, line 1: it is computed, and nothing is run"):
        write_study(tree / "other", [tree / "none.py"])


def test_each_event_that_cannot_be_read_is_a_sentence_and_the_others_are_taken(tree):
    text = "# what we count\nLLC-loads\nPAPI_TOT_INS # all\ncycles:p\nPAPI_L1_TCM\nL2 lines\n"
    (tree / "events.cfg").write_text(text)
    study, _, left = imported(tree, "run.sh")
    assert study["counters"]["sets"] == {"benchcast": ["LLC-loads", "instructions"]}
    for part in ("cycles:p: counters.sets takes no other", "PAPI_L1_TCM: PAPI", "L2 lines: counters.sets takes"):
        assert any(sentence.startswith(part) for sentence in left), (part, left)
    (tree / "events.cfg").write_text("# what we count\nLLC-loads\nPAPI_TOT_INS # all\n")
    (tree / "run.sh").write_text("./bench_cast -p 2 --NPB cg.A --NPB ft.A\n")
    written, _ = write_study(tree / "other", [tree / "run.sh", tree / "events.cfg"])
    assert yaml.safe_load(written[0].read_text())["counters"]["sets"]["benchcast"] == ["LLC-loads", "instructions"]


def test_a_table_is_repeated_on_the_processors_of_the_command_that_replays_it(tree):
    (tree / "draw.sh").write_text("./topdown.py --reffile old.csv --num_procs 4\n")
    study, _, left = imported(tree, "old.csv", "draw.sh")
    assert study["mixes"] == [{"lead": "npb.cg", "antagonists": ["npb.ft", "spec2017.mcf_r", "npb.cg"]}]
    assert not any("old.csv: " in sentence or "experiment_list.py" in sentence for sentence in left)
    with pytest.raises(CastmatesError, match="no mix in it"):
        write_study(tree / "other", [tree / "draw.sh"])


def test_a_table_of_results_gives_its_mixes_again(tree):
    study, _, left = imported(tree, "old.csv", "events.cfg")
    assert study["mixes"] == [{"lead": "npb.cg", "antagonists": ["npb.ft", "spec2017.mcf_r"]}]
    assert "old.csv, line 3: its mix does not name the suite of each program." in left
    assert any(sentence.startswith("PAPI_L1_TCM: PAPI derives it") for sentence in left)


def test_the_study_is_planned_on_an_installation_like_benchcasts(tree, monkeypatch):
    for name in ("cg", "ft"):
        trees.npb_program(tree / "npb" / "NPB3.3-SER", file=f"{name}.A.x")
    (tree / "BENCH_CONF.py").write_text('PATHS = {"NPB": "npb"}\n')
    (tree / "run.sh").write_text("./bench_cast -p 2 --NPB cg.A --NPB ft.A\n")
    done = CliRunner().invoke(app, ["init", str(tree / "mine"), "--from", str(tree / "run.sh")])
    assert done.exit_code == 0, done.output
    monkeypatch.setattr("castmates.project.ENVIRONMENTS", ROOT / "envs")  # which the clone's folder had at the start
    monkeypatch.chdir(tree / "mine")
    plan = project.load("study.yaml").plan()
    assert [mix.name for mix in plan.mixes] == ["npb.cg+npb.ft"]
    members = [one for cohort in plan.cohorts for one in cohort.members if one.workload.startswith("npb.")]
    assert {(one.progress, one.unit) for one in members} == {("barriers", "iteration")}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.cfg", "PAPI_TOT_INS\n", "there is no mix in it"),
        ("a.md", "Hello, world!\n", "it is none of BenchCast's files"),
        ("a.sh", "./bench_cast -p many --NPB cg.A --NPB ft.A\n", "-p is 'many', expected a whole number"),
        ("a.bin", b"\xff\xfe", "it cannot be read (it is no text)"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_nothing_is_written(tmp_path, name, text, said):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CastmatesError) as refused:
        write_study(tmp_path / "mine", [tmp_path / name])
    assert said in str(refused.value)
    assert not (tmp_path / "mine").exists()


def test_nothing_is_overwritten(tree):
    imported(tree, "run.sh")
    with pytest.raises(CastmatesError, match="is there already, and stays as it is"):
        imported(tree, "run.sh")
