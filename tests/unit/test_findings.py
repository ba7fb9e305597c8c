"""Findings: what rules find in tables, how sure they are, whose rules hold, and rules that cannot be."""

import json
import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from castmates import shipped
from castmates.analysis.findings.conditions import NOT_KNOWN, NOT_SHOWN, PROVEN, SEEN, SUSPECTED
from castmates.analysis.findings.findings import findings
from castmates.analysis.operations.effects import INPUT, NAMED, OTHERS, SMALL, STEP
from castmates.analysis.operations.per_trace import WAITING
from castmates.cli.main import app
from castmates.errors import CastmatesError
from castmates.report.answer.answer import answer
from castmates.report.answer.parts import answer_lines
from castmates.report.figures.index import FIGURES
from castmates.report.findings import findings_of
from castmates.report.page.page import page
from castmates.report.results import read_results
from castmates.results.columns.study import frame
from castmates.results.finding_rules import contract, problem, rules_of, unknown_table
from castmates.results.tables import write_table
from castmates.study.finding_rules import Compared, FindingRules
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.unit.results_maker import fill, make
from tests.unit.snapshots import assert_as_before, refusal

NAN = math.nan
RULES = rules_of(None, None, ())
COLUMNS = contract()
ALONE = {"kind": "alone", "mix": "", "partition": "unmanaged", "member": "job@0", "platform": "measured"}
BESIDE = ALONE | {"kind": "corun", "mix": "job+stream"}
EFFECT = BESIDE | {"lead": "job", "role": "lead", "baseline": "alone", "metric": "rate", "verdict": "loss"}
ADVICE = {"mix": "job+stream", "lead": "job", "antagonists": "stream", "platform": "measured", "verdict": "met",
          "partition": "split-4", "faster": 1.3, "faster_low": 1.2, "faster_high": 1.4}  # fmt: skip
LOSING = {"partition": "unmanaged", "member": "job@0", "mix": "job+stream", "verdict": "loss", "platform": "measured"}


def loses(group, share):
    return LOSING | {"group": group, "share_of_loss": share, "share_of_loss_low": 0.9 * share,
                     "share_of_loss_high": 1.1 * share}  # fmt: skip


def waits(scene, share):
    return scene | {"waiting_share": share, "waiting_low": share - 0.02, "waiting_high": share + 0.02}


def epoch(name, more):
    return ALONE | {"epoch": name, "more": more, "more_low": more - 0.02, "more_high": more + 0.02}


def taken(kind, share):
    return ALONE | {"type": kind, "share": share, "share_low": 0.95 * share, "share_high": 1.05 * share}


def pool(threads, busy, member="job@0"):
    return ALONE | {"member": member, "pool": "tf_Compute", "threads": threads, "busy_share": busy}


def bound(change, faster):
    about = {"threads": 2, "step_ms": 8.0, "at_least_ms": 4.0, "at_most_ms": 5.0, "faster_at_most": 2.0}
    return ALONE | about | {"change": change, "faster_at_least": faster}


def extension(name, unused, **others):
    row = {"type": "all operations", "processor": "has it", "eligible_share": 0.7, "used_share": 0.0, "launches": 3}
    return ALONE | row | {"extension": name, "unused_share": unused} | others


def product(share, **others):
    return ALONE | {"primitive": "matmul", "data_types": "src:f32 wei:f32 dst:f32", "share": share} | others


# Of each rule that is shipped: the tables in which it holds, with how sure it is, and those in which it does not.
SHIPPED = {
    "machine-not-quiet": (
        SEEN, {"effects": [EFFECT | {"rejection_rate": 0.3}]}, {"effects": [EFFECT | {"rejection_rate": 0.1}]}
    ),
    "loss-still-grows": (
        PROVEN,
        {"effects": [EFFECT | {"still_growing": True, "growth_pct": 4.0, "growth_low": 2.0, "growth_high": 6.0}]},
        {"effects": [EFFECT | {"still_growing": False, "growth_pct": 4.0, "growth_low": 2.0, "growth_high": 6.0}]},
    ),
    "tracing-perturbs": (SEEN, {"iterations": [ALONE | {"slower": 1.4}]}, {"iterations": [ALONE | {"slower": 1.1}]}),
    "unattributed": (PROVEN, {"operation_types": [taken("unattributed", 0.4)]},
                     {"operation_types": [taken("unattributed", 0.1), taken("MatMul", 0.9)]}),
    "input-bound": (PROVEN, {"input_pipeline": [waits(ALONE, 0.3)]},
                    {"input_pipeline": [waits(ALONE, 0.01), waits(BESIDE, 0.3)]}),
    "first-epoch-waits": (PROVEN, {"first_epoch": [epoch("first", 0.3), epoch("cached", NAN)]},
                          {"first_epoch": [epoch("first", 0.01), epoch("first", 0.3) | {"kind": "corun"}]}),
    "wide-vectors-unused": (
        SEEN,
        {"isa_use": [extension("AVX-512", 0.8)]},
        # Nothing is known of AVX-512, AMX is used, a type by itself shows nothing of the model, nor does a co-run.
        {"isa_use": [extension("AVX-512", 0.0), extension("AMX", 0.1), extension("AMX", 0.9, eligible_share=0.1),
                     extension("AMX", 0.9, type="MatMul"), extension("AMX", 0.9, kind="corun", mix="job+stream"),
                     extension("AMX", 0.9, processor="lacks it"), extension("AVX2", 0.9)]},
    ),
    "full-precision-products": (
        SEEN,
        {"primitive_summary": [product(0.15), product(0.15)], "isa_use": [extension("AMX", NAN, eligible_share=0.0)]},
        {"primitive_summary": [product(0.15), product(0.9, data_types="src:bf16 wei:bf16 dst:f32"),
                               product(0.9, primitive="reorder")],
         "isa_use": [extension("AMX", NAN, eligible_share=0.0)]},
    ),
    "small-operations": (PROVEN, {"operation_types": [taken("runtime", 0.3)]},
                         {"operation_types": [taken("runtime", 0.05)]}),
    "threads-oversubscribed": (SEEN, {"thread_pools": [pool(4, 0.5)]},
                               {"thread_pools": [pool(4, 0.5, "job@0-3"), pool(1, 0.5)]}),
    "threads-idle": (SEEN, {"thread_pools": [pool(4, 0.1, "job@0-3")]},
                     {"thread_pools": [pool(4, 0.1), pool(4, 0.9, "other@0-3")]}),
    "operations-could-run-beside-each-other": (
        SEEN, {"thread_bounds": [bound("twice", 1.6)]}, {"thread_bounds": [bound("twice", 1.0), bound("half", 1.6)]}
    ),
    "half-the-threads-suffice": (
        SEEN, {"thread_bounds": [bound("half", 0.98)]}, {"thread_bounds": [bound("half", 0.6), bound("twice", 1.0)]}
    ),
    "allocator-churn": (
        SEEN,
        {"memory_use": [ALONE | {"operation": "all operations", "allocator": "mklcpu", "allocated_mb": 300.0}]},
        {"memory_use": [ALONE | {"operation": "all operations", "allocator": "mklcpu", "allocated_mb": 3.0},
                        ALONE | {"operation": "MatMul", "allocator": "mklcpu", "allocated_mb": 300.0},
                        ALONE | {"operation": "all operations", "allocator": "GPU_0_bfc", "allocated_mb": 300.0},
                        ALONE | {"operation": "all operations", "allocator": "cuda:0", "allocated_mb": 300.0}]},
    ),
    "remote-memory": (
        PROVEN,
        {"resources": [EFFECT | {"metric": "node-load-misses per 1000 instructions", "baseline_value": 2.0,
                                 "baseline_low": 1.5, "baseline_high": 2.5}]},
        {"resources": [EFFECT | {"metric": "node-load-misses per 1000 instructions", "baseline_value": 0.1,
                                 "baseline_low": 0.05, "baseline_high": 0.2}]},
    ),
    "one-operation": (PROVEN, {"operation_effects": [loses("a/MatMul:MatMul", 0.6), loses("step", 1.0)]},
                      {"operation_effects": [loses("a/MatMul:MatMul", 0.3), loses("step", 1.0),
                                             loses("all others", 0.7), loses("small: matmul forward", 0.6),
                                             loses("between operations", 0.9), loses("waiting for the batch", 0.9)]}),
    "memory-bound-operations": (
        SEEN,
        {"operation_effects": [loses("embed*/Gather:ResourceGather", 0.3), loses("small: optimizer optimizer", 0.3)]},
        {"operation_effects": [loses("embed*/Gather:ResourceGather", 0.3), loses("a/MatMul:MatMul", 0.6),
                               loses("b/Gather:ResourceGather", 0.5) | {"verdict": "unclear"}]},
    ),
    "input-bound-beside": (PROVEN, {"input_pipeline": [waits(ALONE, 0.01), waits(BESIDE, 0.3)]},
                           {"input_pipeline": [waits(ALONE, 0.3), waits(BESIDE, 0.3)]}),
    "memory-saturated": (SEEN, {"effects": [EFFECT | {"antagonists_peak_pct": 80.0}]},
                         {"effects": [EFFECT | {"antagonists_peak_pct": 80.0, "verdict": "unclear"}]}),
    "busy-antagonist": (
        PROVEN,
        {"attribution": [EFFECT | {"part": "busy antagonist", "points": 5.0, "points_low": 4.0, "points_high": 6.0}]},
        {"attribution": [EFFECT | {"part": "busy antagonist", "points": 5.0, "points_low": 4.0, "points_high": 6.0,
                                   "verdict": "unclear"},
                         EFFECT | {"part": "sharing", "points": 5.0, "points_low": 4.0, "points_high": 6.0}]},
    ),
    "smt-sibling": (
        PROVEN,
        {"distances": [EFFECT | {"distance": "core", "nearer": "smt", "gain_pct": 9.0, "gain_low": 7.0,
                                 "gain_high": 11.0}]},
        {"distances": [EFFECT | {"distance": "core", "nearer": "smt", "gain_pct": 1.0, "gain_low": 0.5,
                                 "gain_high": 1.5}]},
    ),
    "partition-gives-back": (
        PROVEN,
        {"recommendations": [ADVICE]},
        {"recommendations": [ADVICE | {"verdict": "not needed", "partition": ""},
                             ADVICE | {"confirmation": "exceeded"}]},
    ),
    "mitigation-pays": (
        PROVEN,
        {"mitigations": [EFFECT | {"mitigation": "quota", "partition": "quota-50", "verdict": "gain",
                                   "cost_pct": 40.0, "gain_pct": 9.0, "gain_low": 6.0, "gain_high": 12.0}]},
        {"mitigations": [EFFECT | {"mitigation": "unmanaged", "verdict": "gain", "gain_pct": 9.0, "gain_low": 6.0,
                                   "gain_high": 12.0}]},
    ),
}  # fmt: skip


TRACED = ALONE | {"role": "lead", "trace": "job+stream", "mix": "job+stream", "scene": "alone"}
BESIDE_TRACED = TRACED | {"kind": "corun", "scene": "corun:job+stream"}


def traced(row, holds, does_not):
    """A rule on a number of a trace's summary: it looks at the lead alone, or at the lead beside others."""
    other = TRACED if row is BESIDE_TRACED else BESIDE_TRACED
    elsewhere = [other | holds, row | holds | {"role": "antagonist", "member": "stream@1"}]
    return SEEN, {"trace_summary": [row | holds]}, {"trace_summary": [row | does_not, *elsewhere]}


def in_pool(threads, **others):
    return TRACED | {"pool": "tf_Compute", "threads": threads, "all_busy_idle_share": 0.0, "used_share": 1.0} | others


SHIPPED |= {
    "recording-perturbs": traced(TRACED, {"slower": 1.4}, {"slower": 1.1}),
    "threads-wait-for-each-other": traced(TRACED, {"queued_own": 0.5}, {"queued_own": 0.02, "queued_share": 0.9}),
    "page-fault-storm": traced(TRACED, {"faults_per_cpu_s": 1e5}, {"faults_per_cpu_s": 500.0}),
    "allocator-calls": traced(TRACED, {"memory_calls_share": 0.2}, {"memory_calls_share": 0.001}),
    "threads-migrate": traced(TRACED, {"migrations_per_cpu_s": 900.0}, {"migrations_per_cpu_s": 3.0}),
    "pool-too-small": (
        SEEN,
        {"trace_pools": [in_pool(1, member="job@0-3", all_busy_idle_share=0.8)]},
        # One CPU has nothing to idle, main threads are no pool, and as many threads as CPUs cannot be too few.
        {"trace_pools": [in_pool(1, member="job@0-3"), in_pool(1, pool="python", all_busy_idle_share=0.8),
                         in_pool(4, member="other@0-3", all_busy_idle_share=0.8)]},
    ),
    "pool-too-large": (
        SEEN,
        {"trace_pools": [in_pool(8, used_share=0.25)]},
        {"trace_pools": [in_pool(8, used_share=0.9), in_pool(2, used_share=0.5)]},
    ),
    "input-starves": traced(TRACED, {"input_only_share": 0.3}, {"input_only_share": 0.01}),
    "interrupts-on-cpus": traced(TRACED, {"interrupts_share": 0.1}, {"interrupts_share": 0.001}),
    "cpu-taken-by-others": traced(TRACED, {"queued_others": 0.2}, {"queued_others": 0.001, "queued_own": 0.9}),
    "remote-pages": traced(TRACED, {"remote_share": 0.6}, {"remote_share": NAN}),
    "cpu-shared-with-antagonists": traced(BESIDE_TRACED, {"queued_members": 0.4}, {"queued_members": 0.0}),
    "long-waits-for-a-cpu": traced(BESIDE_TRACED, {"queue_p99_us": 4000.0}, {"queue_p99_us": 40.0}),
    "more-faults-beside": traced(
        BESIDE_TRACED,
        {"faults_ratio": 3.0, "faults_per_cpu_s": 9000.0},
        {"faults_ratio": 3.0, "faults_per_cpu_s": 90.0},
    ),
}  # fmt: skip


def made(tables):
    full = {name: frame([{column: row.get(column, _empty(kind)) for column, kind in COLUMNS[name].items()}
                         for row in rows], COLUMNS[name]) for name, rows in tables.items()}  # fmt: skip
    return full.get


def _empty(kind):
    return {"float64": NAN, "int64": 0, "bool": False, "Int64": None}.get(kind, "")


def states(name, tables):
    return [each.state for each in findings({name: RULES[name]}, made(tables))]


def test_every_shipped_rule_has_an_example():
    assert list(RULES) == list(SHIPPED)
    assert {name: problem(rule, contract()) for name, rule in RULES.items()} == dict.fromkeys(SHIPPED)
    assert {name: unknown_table(rule, contract()) for name, rule in RULES.items()} == dict.fromkeys(SHIPPED)


def test_a_processor_without_bfloat16_has_no_such_advice():
    lacking = {"primitive_summary": [product(0.9)], "isa_use": [extension("AMX", NAN, processor="lacks it")]}
    assert states("full-precision-products", lacking) == [NOT_SHOWN]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_rule_finds_what_it_is_for_and_is_silent_on_the_opposite(name):
    sure, holds, does_not = SHIPPED[name]
    assert states(name, holds) == [sure]
    assert set(states(name, does_not)) <= {NOT_SHOWN, NOT_KNOWN}
    assert states(name, {}) == [NOT_KNOWN]  # a table that is not there shows nothing


@pytest.mark.parametrize("name", SHIPPED)
def test_a_number_that_was_not_measured_is_no_reason_to_be_silent(name):
    """A condition whose number, or a number that chooses its rows, is unknown: neither is the rule refuted.

    Nor do rows beside it refute the rule, which have a number that is not beyond the limit.
    """
    _, holds, does_not = SHIPPED[name]
    for condition in RULES[name].when:
        compared = [column for column, cell in condition.where.items() if isinstance(cell, Compared)]
        types = contract()[condition.table]
        numbers = compared if condition.take == "count" else [condition.number, *compared]
        for column in (each for each in numbers if types.get(each) == "float64"):  # a whole number is always known
            rows = [row | {column: NAN} if column in row else row for row in holds[condition.table]]
            assert states(name, holds | {condition.table: rows}) == [NOT_KNOWN], (condition.table, column)
            if condition.number == column and "verdict" in condition.where:
                none = [row | {"verdict": "no data"} for row in rows]
                assert states(name, holds | {condition.table: none}) == [NOT_KNOWN], condition.table
            alone = {name: RULES[name].model_copy(update={"when": [condition]})}
            others = does_not.get(condition.table, [])
            if {each.state for each in findings(alone, made({condition.table: others}))} <= {NOT_SHOWN, NOT_KNOWN}:
                mixed = findings(alone, made({condition.table: [*others, *rows]}))
                assert NOT_KNOWN in {each.state for each in mixed}, (condition.table, column)


@pytest.mark.parametrize(
    ("share", "low", "high", "state"),
    [(0.2, 0.15, 0.25, PROVEN), (0.2, 0.05, 0.35, SUSPECTED), (0.2, NAN, NAN, SUSPECTED), (0.2, 0.1, 0.3, SUSPECTED),
     (0.09, 0.05, 0.13, NOT_SHOWN), (0.02, 0.0, 0.04, NOT_SHOWN), (NAN, NAN, NAN, NOT_KNOWN)],
)  # fmt: skip
def test_the_interval_decides_and_never_the_point(share, low, high, state):
    row = ALONE | {"waiting_share": share, "waiting_low": low, "waiting_high": high}
    assert states("input-bound", {"input_pipeline": [row]}) == [state]


def test_the_strongest_of_several_rows_proves_nothing():
    """Ten intervals of 95 % are beyond a threshold by chance more often than one: what looks best is seen."""
    rule = {"one-operation": RULES["one-operation"]}
    small = loses("b/Add:AddV2", 0.1) | {"verdict": "unclear"}
    (found,) = findings(rule, made({"operation_effects": [loses("a/MatMul:MatMul", 0.6), small]}))
    assert (found.state, found.evidence[0].low) == (SEEN, pytest.approx(0.54))
    assert "strongest of 2 rows" in found.evidence[0].why
    same = [loses("a/MatMul:MatMul", 0.6), loses("a/MatMul:MatMul", 0.6)]  # a lead alone has the same row in each mix
    assert states("one-operation", {"operation_effects": same}) == [PROVEN]


def test_what_is_no_operation_is_left_out_of_the_rule_on_one_operation():
    (condition,) = RULES["one-operation"].when
    apart = {STEP, OTHERS, f"{SMALL}*", *NAMED.values(), WAITING, INPUT}
    assert {*condition.without["group"]} == apart


@pytest.mark.parametrize(
    ("group", "moves_memory"),
    [("embed/x:ResourceGather", True), ("model.embed:embedding_dense_backward", True), ("step/embed:gather", True),
     ("Adam/update:ResourceApplyAdam", True), ("optimizer:addcdiv_", True), ("layer_norm/MatMul:MatMul", False),
     ("Gather/dense:MatMul", False), ("model.linear:addmm", False), ("step/dense:dot_general", False)],
)  # fmt: skip
def test_operations_that_move_memory_are_known_by_their_type(group, moves_memory):
    state = SEEN if moves_memory else NOT_SHOWN
    assert states("memory-bound-operations", {"operation_effects": [loses(group, 0.9)]}) == [state]


def test_a_mistake_in_a_rule_of_ours_costs_that_rule_alone(tmp_path, monkeypatch, caplog):
    (tmp_path / "rules.yaml").write_text(
        OWN.replace("median_ms", "medain_ms") + OWN.partition("findings:")[2].replace("slow-", "other-")
    )
    monkeypatch.setattr(shipped, "findings", lambda: tmp_path)
    assert {*rules_of(None, None, ())} == {"other-steps"}
    assert "names the column 'medain_ms'" in caplog.text


def test_each_lead_and_each_platform_is_judged_by_its_own_rows():
    rows = [waits(ALONE, 0.3), waits(ALONE | {"member": "fast@0"}, 0.01), waits(ALONE | {"platform": "emulated"}, 0.02)]
    rules = {"input-bound": RULES["input-bound"]}
    found = {
        (each.subject.lead, each.subject.platform): each.state
        for each in findings(rules, made({"input_pipeline": rows}))
    }
    assert found == {("job", "measured"): PROVEN, ("fast", "measured"): NOT_SHOWN, ("job", "emulated"): NOT_SHOWN}


OWN = """
findings:
  slow-steps:
    title: Steps are slow
    when:
      - {table: iterations, rows: {kind: alone}, number: median_ms, no_interval: it is a median, above: 5, shown: ms}
    sentence: A step of {lead} takes {number}.
    because: Because.
    advice: Hurry.
"""


def test_users_rules_replace_add_and_switch_off(tmp_path):
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings/a.yaml").write_text(OWN + "  input-bound: null\n")
    (tmp_path / "named.yaml").write_text(OWN.replace("slow-steps", "small-operations"))
    study = Study(name="s", findings=[str(tmp_path / "named.yaml")])
    rules = rules_of(study, tmp_path / "study.yaml", ())
    assert {*rules} == {*SHIPPED} - {"input-bound"} | {"slow-steps"}
    assert rules["small-operations"].title == "Steps are slow"


BAD = {
    "number: median_ms": "number: medain_ms",
    "number: median_ms,": "number: scene,",
    "{kind: alone}": "{kin: alone}",
    "table: iterations": "table: iteration",
    "above: 5": "above: five",
    ", above: 5": "",
    "no_interval: it is a median, ": "",
    "{number}": "{numbr}",
    "    advice: Hurry.\n": "",
    "advice: Hurry.": "advice: Hurry.\n    try: {mitigate: [quota], shows: x}",
    "    when:": "    about: study\n    try: {lead: [{cores: 2}], shows: x}\n    when:",
    "because: Because.": "why: x",
    "  slow-steps:": "  unheard-of: null\n  slow-steps:",
}


def test_a_bad_rule_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = {}
    for good, bad in BAD.items():
        assert good in OWN
        (tmp_path / "own.yaml").write_text(OWN.replace(good, bad))
        with pytest.raises(CastmatesError) as problem:
            rules_of(Study(name="s", findings=["own.yaml"]), None, ())
        said[f"{good!r} is {bad!r}"] = str(problem.value)
    said["no such file"] = refusal(rules_of, Study(name="s", findings=["absent.yaml"]), None, ())
    assert_as_before("findings-mistakes", said)


def test_a_rule_is_data_and_runs_nothing():
    text = OWN.replace("rows: {kind: alone}", "rows: {kind: \"__import__('os').system('false')\"}")
    rules = read_keys(FindingRules, text, "own.yaml").findings
    (found,) = findings(rules, made({"iterations": [ALONE | {"median_ms": 9.0}]}))
    assert found.state == NOT_KNOWN


@pytest.fixture
def waiting(tmp_path):
    """A study whose lead waits for its input; its tables on the disk."""
    folder = make(tmp_path / "results" / "made", leads=["job"], launches=3, rounds=1)
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {"profiles": plan["launches"][:1]}))
    fill(folder)
    for name, rows in {"input_pipeline": [waits(ALONE, 0.3)], "thread_pools": [pool(4, 0.5)]}.items():
        write_table(
            frame([{"study": "made", "launches": 3} | row for row in rows], contract()[name]), folder / "tables" / name
        )
    return folder


def test_the_page_and_the_answer_show_what_is_proven_first(waiting):
    results = read_results(waiting)
    text = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    assert '<section id="to-try"' in text
    assert '<a href="#to-try">What to try</a>' in text
    assert text.index("Steps wait for their input") < text.index("More threads than CPUs")
    assert "waiting_share is 30.0" in text
    said = {"answer": [line for line in answer_lines(answer(results), 1000) if line.startswith("Steps wait")]}
    for words in ((), ("--all",)):
        done = CliRunner(env={"COLUMNS": "1000"}).invoke(app, ["advice", str(waiting), *words])
        assert done.exit_code == 0, done.output
        said["advice " + " ".join(words)] = [line.rstrip() for line in done.output.splitlines()]
    assert_as_before("findings", said)


def test_what_is_seen_without_an_interval_is_not_in_the_answer(waiting):
    results = replace(
        read_results(waiting), input_pipeline=made({"input_pipeline": [waits(ALONE, 0.11)]})("input_pipeline")
    )
    assert answer(results).to_try == ""
    assert "More threads than CPUs" in page(results, dict.fromkeys(FIGURES, "<svg></svg>"))


def test_findings_are_found_once_for_a_page(waiting):
    results = read_results(waiting)
    assert findings_of(results) is findings_of(results)
    assert findings_of(replace(results, name="other")) is not findings_of(results)


def test_a_study_without_findings_has_no_such_part(tmp_path):
    results = read_results(make(tmp_path / "plain", launches=3, rounds=1))
    assert 'id="to-try"' not in page(results, dict.fromkeys(FIGURES, "<svg></svg>"))


def test_scripts_get_the_evidence(waiting):
    data = json.loads(CliRunner().invoke(app, ["advice", str(waiting), "--format", "json"]).output)["findings"]
    first = data[0]
    assert (first["id"], first["state"]) == ("input-bound/job", PROVEN)
    assert first["evidence"][0]["value"] == pytest.approx(0.3)
    assert first["evidence"][0]["threshold"] == 0.1
    assert "wide-vectors-unused" not in {each["rule"] for each in data}, "the study does not ask for primitives"
