"""Findings from timelines: what rules find in traces with known faults, and in one without; nothing is proven."""

import json
import shlex
import shutil

import pytest
from typer.testing import CliRunner

from castmates.analysis.findings.conditions import PROVEN, SEEN
from castmates.analysis.findings.findings import findings
from castmates.analysis.timeline.seen import Trace
from castmates.analysis.timeline.summary import rows_of
from castmates.cli.main import app
from castmates.pipeline.estimates import write_trace_tables
from castmates.report.figures.index import FIGURES
from castmates.report.findings import findings_of
from castmates.report.page.page import page
from castmates.report.results import read_results
from castmates.report.traces import traces
from castmates.results.columns.registry import written_by
from castmates.results.columns.study import frame
from castmates.results.finding_rules import rules_of
from castmates.results.traces import forget_failed
from castmates.timeline.tables import write
from tests.unit.results_maker import make
from tests.unit.timeline_maker import SCENES, Thread, scripted

TRACE_TABLES = written_by("estimate_traces")

LEAD, WIDE, OTHER = "job@0", "job@0-3", "stream@2"
RULES = rules_of(None, None, ())
OF_TRACES = {name: rule for name, rule in RULES.items() if rule.when[0].table in TRACE_TABLES}
CALM = [("running", 8, ""), ("blocked", 2, "futex")]


def turns(member, name, *states, **others):
    """Four threads, each a quarter of a turn behind the one before it."""
    return [Thread(member, f"{name}/{number}", states, begins=float(number), **others) for number in range(4)]


# What was made on purpose -> threads, and the rules that find it.
FAULTS = {
    "nothing": ([Thread(LEAD, "main", CALM, faults=2, calls={"mmap": 0.01, "futex": 2.0})], set()),
    "four threads on a CPU": (
        turns(LEAD, "worker", ("running", 1, ""), ("preempted", 3, LEAD)), {"threads-wait-for-each-other"}
    ),
    "another program": (
        [Thread(LEAD, "main", [("running", 8, ""), ("preempted", 2, "backup")])], {"cpu-taken-by-others"}
    ),
    "an antagonist on the same CPU": (
        [Thread(LEAD, "main", [("running", 8, "")], scenes=SCENES[:1]),
         Thread(LEAD, "main", [("running", 5, ""), ("runnable", 5, OTHER)], scenes=SCENES[1:]),
         Thread(OTHER, "stream", [("running", 5, ""), ("runnable", 5, LEAD)])],
        {"cpu-shared-with-antagonists", "long-waits-for-a-cpu"},
    ),
    "faults in every step": ([Thread(LEAD, "main", CALM, faults=400)], {"page-fault-storm"}),
    "more faults beside": (
        [Thread(LEAD, "main", CALM, faults=40, scenes=SCENES[:1]),
         Thread(LEAD, "main", CALM, faults=120, scenes=SCENES[1:])],
        {"more-faults-beside"},
    ),
    "memory given back in every step": ([Thread(LEAD, "main", CALM, calls={"munmap": 1.0})], {"allocator-calls"}),
    "threads that move": ([Thread(WIDE, "main", CALM, migrations=9)], {"threads-migrate"}),
    "one thread between operations": (
        [Thread(WIDE, "tf_Compute", CALM, cpu=0), Thread(WIDE, "python", [("blocked", 1, "futex")], cpu=1)],
        {"pool-too-small"},
    ),
    "threads that nobody needs": (
        turns(WIDE, "tf_Compute", ("running", 0.9, ""), ("blocked", 3.1, "futex")), {"pool-too-large"}
    ),
    "a slow input": (
        [Thread(LEAD, "python", [("running", 6, ""), ("blocked", 4, "futex")]),
         Thread(LEAD, "tf_data_map", [("blocked", 6, "futex"), ("running", 3, ""), ("blocked", 1, "io")])],
        {"input-starves"},
    ),
}  # fmt: skip


@pytest.fixture
def study(tmp_path):
    """A study whose lead has a trace; the trace is written by the test."""
    return make(tmp_path / "results" / "made", leads=["job"], launches=3, rounds=1)


def traced(study, timeline, name="job+stream"):
    mix, _, partition = name.partition("@")
    timeline.about.update({"mix": mix, "partition": partition or "unmanaged"})
    write(timeline, study / "traces" / name)
    results = read_results(study)
    write_trace_tables(results.folder, study / "tables")
    return read_results(study)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_trace_with_a_known_fault_has_that_finding_and_no_other(fault):
    threads, expected = FAULTS[fault]
    timeline = scripted(threads, {"members": {WIDE: {"cpus": [0, 1, 2, 3]}}} if threads[0].member == WIDE else {})
    tables = timeline.tracks, timeline.intervals, timeline.instants, timeline.samples
    rows = rows_of(Trace(*tables, timeline.about, "job+stream"))
    made = {name: frame(rows[name], columns) for name, columns in TRACE_TABLES.items()}
    found = {each.name: each.state for each in findings(OF_TRACES, made.get) if each.found}
    assert found == dict.fromkeys(expected, SEEN), "one launch proves nothing"


def test_each_finding_shows_the_number_where_to_look_and_what_tries_it(study):
    results = traced(study, scripted(*FAULTS["four threads on a CPU"][:1], {"study": "made", "mix": "job+stream"}))
    shown = CliRunner().invoke(app, ["advice", str(study)]).output
    assert "In 75.0 % of the time in which threads of job could run, another of its own threads had the CPU" in shown
    assert "no interval, because one launch was traced" in shown
    assert "To see it: castmates trace query" in shown
    assert "job+stream --named ran-instead" in shown
    assert "the longest step of the scene begins 0.1000 s after the first event and takes 10.00 ms" in shown
    text = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    assert "The lead’s threads wait for each other’s CPU" in text.replace("&#39;", "’").replace("'", "’")
    assert "queued_own is 75.0" in text
    assert "Waits for a CPU, switches, faults and memory calls" in text
    data = json.loads(CliRunner().invoke(app, ["advice", str(study), "--format", "json"]).output)["findings"]
    (one,) = [each for each in data if each["rule"] == "threads-wait-for-each-other" and each["state"] == SEEN]
    assert one["trace"] == "job+stream"
    assert not [each for each in data if each["rule"] in OF_TRACES and each["state"] == PROVEN]


def test_a_study_whose_traces_are_gone_has_no_findings_of_them(study):
    traced(study, scripted(FAULTS["faults in every step"][0]))
    shutil.rmtree(study / "traces")
    assert not [each for each in findings_of(read_results(study)) if each.name in OF_TRACES and each.found]


@pytest.mark.landing  # long, because it makes tables and pages of a study
def test_traces_that_failed_or_are_damaged_are_named_and_stop_nobody(study, capsys):
    threads = FAULTS["faults in every step"][0]
    results = traced(study, scripted(threads, {"mix": "job+stream", "status": "failed", "reason": "stream ended"}))
    assert results.trace_summary.empty
    (study / "traces" / "job+stream" / "intervals.parquet").write_bytes(b"PAR1")  # of one that failed, nothing is read
    traced(study, scripted(threads, {"mix": "a"}), "a")
    broken = scripted(threads, {"mix": "b"})
    write(broken, study / "traces" / "b")
    (study / "traces" / "b" / "intervals.parquet").write_bytes(b"PAR1")
    capsys.readouterr()
    write_trace_tables(results.folder, study / "tables")
    words = capsys.readouterr().err.splitlines()
    assert words[0].startswith("The trace of b cannot be read: ")
    assert "intervals.parquet: this is no table of a trace" in words[0]
    assert words[1:] == ["The trace of job+stream failed: stream ended."]
    results = read_results(study)
    assert set(results.trace_summary["trace"]) == {"a"}
    text = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    assert "The trace of job+stream failed: stream ended." in text
    assert "The trace of b cannot be read" in text


@pytest.mark.parametrize("rule", [name for name, rule in OF_TRACES.items() if rule.look])
def test_the_command_that_shows_what_is_behind_a_finding_runs(study, rule):
    if not (study / "traces").exists():
        write(scripted(FAULTS["nothing"][0], {"mix": "job+stream"}), study / "traces" / "job+stream")
    filled = OF_TRACES[rule].look.replace("{study}", str(study)).replace("{trace}", "job+stream")
    assert "{" not in filled
    program, *words = shlex.split(filled)
    assert program == "castmates"
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output


@pytest.mark.landing  # long, because it makes tables and pages of a study
def test_each_trace_has_its_rows_in_csv_and_parquet(study):
    traced(study, scripted(FAULTS["an antagonist on the same CPU"][0], {"study": "made", "mix": "job+stream"}))
    results = traced(
        study, scripted(FAULTS["nothing"][0], {"study": "made", "mix": "job+stream", "partition": "split-4"}),
        "job+stream@split-4",
    )  # fmt: skip
    assert list(results.trace_summary.groupby("trace").size().items()) == [("job+stream", 3), ("job+stream@split-4", 2)]
    assert set(results.trace_summary["platform"]) == {"measured"}
    for name in TRACE_TABLES:
        assert (study / "tables" / f"{name}.csv").read_text().count("\n") == len(getattr(results, name)) + 1


@pytest.mark.landing  # long, because it makes tables and pages of a study
def test_an_imported_trace_is_read_everywhere_and_kept_by_retry(study):
    results = traced(study, scripted(FAULTS["nothing"][0], {"mix": "job+stream", "status": "imported"}))
    assert set(results.trace_summary["trace"]) == {"job+stream"}
    assert [trace.name for trace in traces(results)] == ["job+stream"]
    assert not list(forget_failed(results.folder))
    traced(study, scripted(FAULTS["nothing"][0], {"mix": "job+stream", "status": "failed", "reason": "stream ended"}))
    assert [why for why, _ in forget_failed(results.folder)] == ["stream ended"]
