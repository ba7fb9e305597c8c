"""Launches in which leads are traced: a study that comes to trace measures nothing again."""

from castmates.study.model import Study, Workload
from castmates.study.plan_text import plan_of, plan_text, task_of
from castmates.study.profile_launches import (
    cannot_be_profiled,
    cannot_begin_anew,
    identity_of,
    is_logged,
    is_of_first_epoch,
    traced_by,
    traces_of,
)
from castmates.study.reading import read_keys
from castmates.study.spec import Launch
from tests.unit.makers import plan, study, workloads
from tests.unit.snapshots import assert_as_before, refusal

JOB = Workload(command="python -m castmates.workloads.tfmodels --model dlrm", progress="heartbeat", unit="step")
PROGRAMS = workloads("plain", "stream", "compute", job=JOB)


def planned(**keys):
    return plan(study(["job", "plain"], ["stream", "compute"], **keys), programs=PROGRAMS)


def test_a_study_that_comes_to_trace_keeps_all_its_launches():
    before, after = planned(), planned(profile={"launches": 2})
    assert before.profiles == ()
    assert after.launches == before.launches
    assert plan_text(before) == plan_text(after.model_copy(update={"profiles": ()}))


def test_each_lead_that_can_be_traced_has_so_many_launches_with_all_its_scenes():
    found = planned(profile={"steps": 5, "times": 2, "launches": 3, "keep": "1 MB"}).profiles
    assert [(each.cohort.lead.workload, each.number) for each in found] == [("job", 1), ("job", 2), ("job", 3)]
    assert len({each.seed for each in found}) == 3
    cohort = next(launch.cohort for launch in planned().launches if launch.cohort.lead.workload == "job")
    assert all(each.cohort == cohort for each in found)
    profiling = found[0].design.profiling
    assert (profiling.steps, profiling.times, profiling.keep) == (5, 2, 1_000_000)
    assert (found[0].design.rounds, found[0].design.counters.events) == (0, ())


def test_more_launches_leave_those_that_were_made():
    few, many = (planned(profile={"launches": count}).profiles for count in (2, 4))
    assert many[:2] == few
    longer = plan(
        study(["job", "plain"], ["stream", "compute"], profile={"launches": 2}, budget={"launches": 9}),
        programs=PROGRAMS,
    )
    assert [identity_of(each) for each in longer.profiles] == [identity_of(each) for each in few]
    other = planned(profile={"launches": 2, "steps": 3}).profiles
    assert identity_of(other[0]) != identity_of(few[0])


def test_launches_under_the_log_come_apart_from_all_others_and_change_none():
    usual, logged = (planned(profile={"launches": 2, "primitives": wanted}).profiles for wanted in (False, True))
    assert logged[:2] == usual
    assert [(each.number, is_logged(each)) for each in logged] == [(1, False), (2, False), (101, True), (102, True)]
    assert len({each.seed for each in logged}) == 4
    more = planned(profile={"launches": 3, "primitives": True}).profiles
    assert {identity_of(each) for each in logged} < {identity_of(each) for each in more}
    alike = logged[2].model_copy(update={"number": 1, "seed": usual[0].seed})
    assert identity_of(alike) != identity_of(usual[0]), "times under the log are no times without it"


def test_launches_of_the_first_epoch_are_of_leads_that_read_records_and_change_no_others():
    command = f"{JOB.command} --data 'x/*.tsv'"
    commands = {"job": command, "cycles": f"{command} --source memory", "draws": JOB.command}
    jobs = {name: JOB.model_copy(update={"command": words}) for name, words in commands.items()}
    programs = workloads("stream", **jobs)
    wanted = [study(list(jobs), ["stream"], profile={"launches": 2, "first_epoch": asked}) for asked in (False, True)]
    usual, both = (plan(each, programs=programs) for each in wanted)
    first = [each for each in both.profiles if is_of_first_epoch(each)]
    assert [each for each in both.profiles if each not in first] == list(usual.profiles)
    assert [(each.cohort.lead.workload, each.number) for each in first] == [("job", 201), ("job", 202)]
    assert cannot_begin_anew(wanted[1], both) == ["cycles", "draws"]
    assert traces_of(first[0]) == 2 * traces_of(usual.profiles[0])
    alike = first[0].model_copy(update={"number": 1, "seed": usual.profiles[0].seed})
    assert identity_of(alike) not in map(identity_of, usual.profiles), "these times are no usual ones"


def test_what_is_left_of_a_study_is_still_traced():
    keys = {"profile": {"launches": 2}}
    before = plan(study(["job"], ["stream", "compute"], **keys), programs=PROGRAMS)
    after = plan(study(["job"], ["stream"], **keys), measured=before.launches, programs=PROGRAMS)
    traced = {mix.name for task in after.profiles for mix in task.cohort.mixes}
    assert traced == {"job@0+stream@1"} or traced == {mix.name for mix in after.mixes}
    assert len(after.profiles) == 2


def test_a_plan_with_profile_launches_is_written_and_read():
    whole = planned(profile={"launches": 2})
    assert plan_of(plan_text(whole)) == whole
    task = task_of(plan_text(whole), whole.profiles[1].path, "profiles")
    assert task is not None
    assert task.launch == whole.profiles[1]
    assert isinstance(task.launch, Launch)
    assert task_of(plan_text(planned()), whole.profiles[1].path, "profiles") is None


KEYS = [
    "platform: modelled\nprofile: {}",
    "counters: {profile: 4}\nprofile: {}",
    "profile: {steps: 0}",
    "profile: {keep: much}",
    "profile: {scenes: [placebo]}",
]


def test_what_cannot_be_traced_is_refused_in_a_sentence():
    text = "name: s\nleads: [job]\nantagonists: [stream]\n"
    assert_as_before(
        "profile-keys", {keys: refusal(read_keys, Study, f"{text}{keys}\n", "study.yaml") for keys in KEYS}
    )


def test_jobs_of_three_frameworks_are_traced_and_others_are_not():
    programs = workloads("plain", "stream", "compute", job=JOB) | {
        name: JOB.model_copy(update={"command": f"python -m castmates.workloads.{name} --model dlrm"})
        for name in ("torchjobs", "jaxjobs")
    }
    wanted = study(["job", "plain", "torchjobs", "jaxjobs"], ["stream"], profile={"launches": 1})
    found = plan(wanted, programs=programs)
    assert {each.cohort.lead.workload for each in found.profiles} == {"job", "torchjobs", "jaxjobs"}
    assert cannot_be_profiled(wanted, found) == ["plain"]
    how = {each.cohort.lead.workload: traced_by(each.cohort) for each in found.profiles}
    assert how["job"].leaves_out
    assert not how["torchjobs"].leaves_out
    assert how["job"].steps_before > how["jaxjobs"].steps_before
