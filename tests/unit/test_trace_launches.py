"""Launches in which everything is recorded: planned apart from launches, found by name, refused in a sentence."""

from pathlib import Path

import pytest

from castmates.errors import CastmatesError
from castmates.results.folder import StudyFolder
from castmates.results.traces import missing_traces
from castmates.study.model import Study, Workload
from castmates.study.plan_text import plan_of, plan_text, trace_task_of
from castmates.study.reading import read_keys
from castmates.study.trace_launches import (
    chosen_mix,
    identity_of,
    most_bytes,
    profiled_steps,
    recorded_members,
    refuse_unknown_mixes,
    scenes_of_trace,
    trace_name,
)
from tests.unit.makers import plan, study, workloads
from tests.unit.snapshots import assert_as_before, refusal

JOB = Workload(command="python -m castmates.workloads.tfmodels --model dlrm", progress="heartbeat", unit="step")
PROGRAMS = workloads("plain", "stream", "stress", job=JOB)
MIX = {"mixes": ["job+stream"]}


def planned(**keys):
    return plan(study(["job", "plain"], ["stream", "stress"], **keys), programs=PROGRAMS)


def test_a_study_that_comes_to_record_keeps_all_its_launches_and_its_plan():
    before, after = planned(), planned(trace=MIX)
    assert before.traces == ()
    assert after.launches == before.launches
    assert plan_text(before) == plan_text(after.model_copy(update={"traces": ()}))


def test_a_launch_has_the_mix_alone_and_what_the_key_wants():
    task = planned(
        trace=MIX
        | {"seconds": 2.5, "steps": 3, "events": ["faults", "scheduler"], "buffer": "1 MiB"}
        | {"counts": {"PAPI_L3_TCM": 10_000, "minor-faults:u": 7}}
    ).traces[0]
    assert trace_name(task) == "job+stream"
    assert [scene.name for scene in scenes_of_trace(task.cohort)] == ["alone", "corun:job+stream"]
    assert [scene.name for scene in task.cohort.scenes] == ["alone", "corun:job+stream"], "nobody else is started"
    tracing = task.design.tracing
    assert (tracing.seconds, tracing.events, tracing.buffer) == (2.5, ("scheduler", "faults"), 2**20)
    assert tracing.counts == (("longest_lat_cache.miss", 10_000), ("minor-faults:u", 7))
    assert profiled_steps(task) == 3
    assert most_bytes(task) == 2 * 2 * 10**9, "two scenes, and no stacks"
    assert task.design.rounds == 0
    plain = planned(trace={"mixes": ["plain+stress"], "members": ["stress"], "rounds": 3, "most": "1 GB"}).traces[0]
    assert "latencies" not in plain.design.tracing.events, "only if it is asked for"
    assert most_bytes(plain) == 3 * 2 * (10**9 + 500 * 2**20)
    assert profiled_steps(plain) == 0, "nothing profiles it"
    assert recorded_members(plain) == ["stress@1"]


def test_a_trace_is_made_again_where_what_it_records_has_changed_and_not_for_more_launches(tmp_path):
    one, other = planned(trace=MIX), planned(trace=MIX | {"seconds": 3})
    more = planned(trace=MIX, budget={"launches": 9, "rounds": 7})
    assert identity_of(one.traces[0]) == identity_of(more.traces[0])
    assert identity_of(one.traces[0]) != identity_of(other.traces[0])
    folder = StudyFolder(tmp_path)
    place = folder.trace("job+stream")
    place.mkdir(parents=True)

    def left(status: str) -> int:
        (place / "trace.json").write_text(f'{{"identity": "{identity_of(one.traces[0])}", "status": "{status}"}}')
        return len(missing_traces(one, folder))

    assert (left("measured"), left("failed")) == (0, 1)
    assert len(missing_traces(other, folder)) == 1


def test_a_plan_with_traces_is_written_and_read():
    whole = planned(trace={"mixes": ["job+stream", "plain+stream"]})
    assert plan_of(plan_text(whole)) == whole
    task = trace_task_of(plan_text(whole), "plain+stream")
    assert task is not None
    assert task.launch == whole.traces[1]
    assert trace_task_of(plan_text(whole), "plain+stress") is None


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("job+stream", "job+stream"),
        ("corun:job+stream", "job+stream"),
        ("job beside stress", "job+stress"),
        ("plain str+", None),
        ("stream", None),
        ("job,stress", "job+stress"),
        ("jo stre", None),
        ("j stress", "job+stress"),
        ("gone", None),
    ],
)
def test_a_mix_is_found_by_words_that_only_it_has(given, found):
    mixes = planned().mixes
    if found is not None:
        assert chosen_mix(given, mixes, "study.yaml") == found
        return
    with pytest.raises(CastmatesError, match=r"job\+stream|plain\+stream"):
        chosen_mix(given, mixes, "study.yaml")


def test_what_the_study_has_not_is_refused_in_a_sentence():
    def said(keys):
        one = study(["job", "plain"], ["stream", "stress"], trace=keys)
        return refusal(refuse_unknown_mixes, one, planned().mixes, "study.yaml")

    wrong = [{"mixes": ["job+gone"]}, MIX | {"partitions": ["split-4"]}, MIX | {"members": ["stress"]}]
    assert_as_before("trace-mixes", {str(keys): said(keys) for keys in wrong})


KEYS = [
    "platform: modelled\ntrace: {}",
    "trace: {events: [keys]}",
    "trace: {seconds: 61}",
    "trace: {buffer: 1 KB}",
    "trace: {most: much}",
    "trace: {counts: {cycles: 0}}",
    "trace: {counts: {page-faults: 7}}",
    "trace: {counts: {'sched:sched_switch': 7}}",
    "trace: {counts: {cpu-clock: 999}}",
    "trace: {counts: {a|b: 7}}",
    "trace: {counts: {a: 1, b: 1, c: 1, d: 1, e: 1}}",
]


def test_keys_that_cannot_be_are_refused_in_a_sentence():
    text = "name: s\nleads: [job]\nantagonists: [stream]\n"
    assert_as_before("trace-keys", {keys: refusal(read_keys, Study, f"{text}{keys}\n", "study.yaml") for keys in KEYS})


def test_a_name_that_leads_out_of_the_folder_is_refused():
    with pytest.raises(CastmatesError, match="no name of a file"):
        StudyFolder(Path("results/s")).trace("../x")
