"""The commands for traces find them by their study and by words, before any sweep, and write nowhere else."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castmates.cli.main import app
from castmates.cli.trace import _opened
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.linux import tracing_rights
from castmates.linux.tracing_rights import Rights
from castmates.pipeline import trace_launch
from castmates.report.text.traces import trace_report
from castmates.results.columns.trace import TRACE_RECORD
from castmates.results.find import find, find_traces
from castmates.results.folder import StudyFolder
from castmates.results.traces import trace_of, traces_there
from castmates.runner.staging import OtherNode
from castmates.study.spec import NodeClass
from castmates.timeline import tables
from castmates.timeline.tables import read_about
from tests.unit.makers import plan, study, workloads
from tests.unit.snapshots import assert_as_before
from tests.unit.test_node_check import FACTS
from tests.unit.timeline_maker import made

STUDY = """name: first
leads: [chase]
antagonists: [stream]
controls: null
catalogue: catalogue
workloads:
  chase: {command: "true", progress: runs, unit: run}
  stream: {command: "true", progress: runs, unit: run}
"""
THERE = ["dlrm+gups", "dlrm+stream", "dlrm+stream@split-4", "dlrm+stream@split-8", "lstm+gups@split-4"]


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """A study file, and what a first `castmates trace record` of it left: a trace, and no plan."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "study.yaml").write_text(STUDY)
    folder = StudyFolder.of("first")
    tables.write(made(200), folder.trace("lead+stream"))
    return folder


def run(*words: str):
    return CliRunner().invoke(app, ["trace", *words])


@pytest.mark.parametrize("named", ["study.yaml", "results/first"])
def test_a_trace_that_no_sweep_made_is_found_by_every_command_for_traces(traced, tmp_path, named):
    asked = run("query", named, "stream", "SELECT DISTINCT trace FROM intervals")
    assert asked.stdout.splitlines() == ['"trace"', '"lead+stream"']
    assert run("query", named, "lead beside stream", "SELECT DISTINCT trace FROM intervals").stdout == asked.stdout
    assert run("convert", named, "lead beside stream", "--format", "chrome").exit_code == 0
    assert (tmp_path / "lead+stream.json").is_file()
    assert (_opened(find_traces(tmp_path / named)[0], "stream") / "trace.pftrace").is_file()
    assert run("flame", named, "lead stream", "--scene", "corun").exit_code == 0
    assert list(traced.trace("lead+stream").glob("flame-*.svg"))
    with pytest.raises(CastmatesError, match=r"traces alone .*castmates sweep"):
        find(tmp_path / named)


@pytest.mark.parametrize("words", [("query",), ("flame", "stream"), ("convert", "stream")])
def test_a_study_without_a_trace_needs_a_trace_and_no_sweep(traced, words):
    Path("other.yaml").write_text(STUDY.replace("first", "second"))
    said = str(run(words[0], "other.yaml", *words[1:]).exception)
    assert (
        "this study has no trace in results/second yet; make one with `castmates trace record other.yaml MIX`." in said
    )


def test_an_unknown_mix_is_the_same_sentence_everywhere(traced):
    for words in (("query", "study.yaml", "gups", "SELECT 1 AS x"), ("convert", "study.yaml", "gups"),
                  ("flame", "study.yaml", "gups"), ("open", "study.yaml", "gups")):  # fmt: skip
        said = str(run(*words).exception)
        assert (
            "there is no trace of gups (there are traces of lead+stream); make one with `castmates trace record`."
            in said
        )


def test_a_trace_is_found_by_words_that_only_one_has():
    asked = ["dlrm+stream", "dlrm+stream@split-4", "dlrm beside gups", "stream", "stream@split-8", "lstm", "dlrm",
             "gups@split-8", "chase"]  # fmt: skip

    def found(words):
        try:
            return trace_of(THERE, words, Path("s"))
        except CastmatesError as problem:
            return f"refused: {problem}"

    assert_as_before("traces-by-words", {words: found(words) for words in asked})


@pytest.mark.parametrize("to", ["tables", "ctf", "perfetto", "chrome"])
def test_a_converted_trace_of_a_study_does_not_become_another_trace_of_it(traced, tmp_path, to):
    before = sorted(traced.traces.iterdir())
    assert run("convert", "study.yaml", "stream", "--format", to).exit_code == 0
    assert run("convert", str(traced.trace("lead+stream")), "--format", to).exit_code == 0, "and it may be replaced"
    among = run("convert", "study.yaml", "stream", "--format", to, "--output", str(traced.traces / "other"))
    assert "where only `castmates trace record` writes; give another --output" in str(among.exception)
    assert sorted(traced.traces.iterdir()) == before
    assert len(list(tmp_path.iterdir())) == 4, "study.yaml, its catalogue, results, and what was written here"


def test_a_folder_that_bears_another_name_than_its_trace_is_none_of_the_study(traced):
    tables.write(made(100), traced.trace("lead+stream.trace"))
    assert traces_there(traced) == ["lead+stream"]


def test_a_node_of_another_class_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    whole = plan(study(["plain"], ["stream"], trace={"mixes": ["plain+stream"]}), programs=workloads("plain", "stream"))
    launch = whole.traces[0]
    cohort = launch.cohort.model_copy(update={"machine": "milan"})
    machines = (NodeClass(name="milan", capture="milan.json.gz", facts=FACTS),)
    built = []
    monkeypatch.setattr(trace_launch.environments, "build", lambda *words: built.append(words))
    project = type("Project", (), {"results": StudyFolder(tmp_path / "s")})
    with pytest.raises(OtherNode, match="nodes of the class 'milan'"):
        trace_launch.trace_now(
            project, whole.model_copy(update={"machines": machines}), launch.model_copy(update={"cohort": cohort})
        )
    assert built == []
    assert not (tmp_path / "s").exists(), "nor is anything written"


def test_a_wrong_option_is_named_as_it_was_given(traced):
    of = [("--events", "foo"), ("--members", "gups"), ("--partition", "split-99")]
    of += [("--count", "cycles"), ("--count", "cycles=0"), ("--count", "page-faults=9")]
    told = {" ".join(words): str(run("record", "study.yaml", "stream", "--dry-run", *words).exception) for words in of}
    assert_as_before("trace-options", told)


def test_the_plan_goes_to_standard_output_with_the_time_that_an_earlier_trace_took(traced):
    first = run("record", "study.yaml", "stream", "--dry-run")
    assert first.stdout.startswith("trace chase+stream: alone and corun:chase+stream, 5 s of each")
    assert "about 41 s" in first.stdout
    timeline = made(100)
    timeline.about.update(mix="chase+stream", lead="chase@0", seconds={"launch": 44.0, "warm_up": 10.0})
    tables.write(timeline, traced.trace("chase+stream"))
    assert "about 80 s" in run("record", "study.yaml", "stream", "--dry-run").stdout


def test_the_report_of_a_trace(tmp_path):
    check = {"with_heartbeat": 8, "in_order": 6, "lag_ns": {"least": -900_000, "most": 20_000}}
    source = {"name": "profile", "events": {"step": 8}, "reason": "", "lost": 0, "alignment checked": check}
    scene = {"scene": "alone", "round": 1, "t0_ns": 0, "t1_ns": 10**9, "sources": [source]}
    records = {
        "steps beside their heartbeats": {"scenes": [scene]},
        "a lead without a graph": {"scenes": [], "missing": {"No GHz.": ["numbers"]}, "paths": {"reason": "no graph"}},
    }
    usual = {"status": "measured", "mix": "a+b"}
    told = {name: list(trace_report(usual | record, tmp_path, tmp_path)) for name, record in records.items()}
    assert_as_before(
        "trace-report", {name: [line.replace(str(tmp_path), "HERE") for line in own] for name, own in told.items()}
    )


def test_what_is_not_recorded_here_is_named_and_takes_no_disk(traced, monkeypatch):
    monkeypatch.setattr(tracing_rights, "rights", lambda: Rights(False, False, False, "", ("there is no perf",)))
    shown = run("record", "study.yaml", "chase+stream", "--dry-run").output
    assert "not recorded here: scheduler, syscalls, faults, interrupts, stacks (there is no perf)" in shown
    assert "perf:" not in shown
    assert "GB" not in shown


def test_an_answer_without_rows_lists_what_the_trace_has_not_of_what_the_query_needs(traced):
    about = {
        "Not recorded: who woke a thread.": ["scheduler"],
        "Switches are for root: sudo castmates doctor --grant.": ["scheduler", "faults", "stacks"],
        "stacks: perf ended.": ["stacks"],
        "Steps and operations of lead: it has no profiler.": ["profile"],
        "Cache occupancy and memory bandwidth: no resctrl.": ["numbers"],
        "whatever nobody expects": [],
    }
    missing = list(about)
    record = traced.trace("lead+stream") / TRACE_RECORD
    lacks = {"missing": about, "paths": {"reason": "no graph"}}
    replace_text(record, json.dumps(read_about(record.parent) | lacks))

    def listed(*words):
        said = run("query", "study.yaml", *words).stderr
        return [line.removeprefix("  - ") for line in said.splitlines() if line.startswith("  - ")]

    nobody = ("--named", "time-on-cpu", "--set", "member=nobody")
    assert listed(*nobody) == [missing[0], missing[1], missing[5]]
    assert "No rows. What the trace of lead+stream has not:" in run("query", "study.yaml", *nobody).stderr
    assert listed("--named", "path") == [missing[3], missing[5], "Critical paths: no graph."]
    assert listed("select * from samples where false") == missing[4:]
    assert listed("SELECT * FROM intervals WHERE false") == [*missing, "Critical paths: no graph."]
    assert "No rows" not in run("query", "study.yaml", "--named", "time-on-cpu").stderr


def test_what_people_have_in_hand_is_refused_with_the_way_on(traced, tmp_path):
    record, perf = traced.trace("lead+stream") / TRACE_RECORD, tmp_path / "perf.data"
    perf.write_bytes(b"PERFILE2" + bytes(100))
    said = {name: str(run(*words).exception) for name, words in {
        "study": ("convert", "study.yaml"),
        "results": ("convert", str(traced.path)),
        "perf": ("convert", str(perf)),
    }.items()}  # fmt: skip
    assert said["study"] == "study.yaml: this is a study; give the mix of the trace after it (it has lead+stream)."
    assert "give the mix of the trace after it" in said["results"]
    assert "`perf script --ns`" in said["perf"]
    record.unlink()
    assert "this is not a record of a trace" in str(run("query", str(record.parent), "--named", "lost").exception)
