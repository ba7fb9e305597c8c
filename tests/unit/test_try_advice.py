"""`castmates advice --try`: the study of a trial for every rule that has one, what it refuses, what it shows."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from castmates import project
from castmates.analysis.effects.contrasts import mix_contrasts
from castmates.analysis.findings.conditions import PROVEN
from castmates.analysis.findings.findings import Finding, Subject
from castmates.errors import CastmatesError
from castmates.pipeline.confirm import Asked, write_trial_study
from castmates.pipeline.followed_study import usual_options
from castmates.results.finding_rules import rules_of
from castmates.results.trials import launch_files, trials_of
from castmates.study.finding_rules import Change
from castmates.study.model import Workload
from castmates.study.trying import changed_lead, mixes_of
from tests.unit.snapshots import assert_as_before, refusal

ROOT = Path(__file__).parents[2]
STUDY = """
name: trained
workloads:
  wide: {like: dlrm-train, options: {threads: 4, batch: 512}}
  plain: {command: "true", progress: runs}
  served: {like: memcached-5k}
leads: [wide, bert-train, plain]
variants:
  bert-train:
    - {name: eight, title: BERT in batches of 8, options: {batch: 8}, work: 1}
    - {name: bf16, options: {precision: mixed_bfloat16}}
antagonists: [stream, chase]
budget: {launches: 4}
profile: {}
seed: 7
"""
RULES = rules_of(None, None, ())
LEADS = [name for name, rule in RULES.items() if rule.trial and rule.trial.lead]
MITIGATED = [name for name, rule in RULES.items() if rule.trial and rule.trial.mitigate]
CHANGES = {  # of the lead `wide`: what its command has afterwards, and how many times the work a step of it does
    "unattributed": ("--batch", "2048", 4.0),
    "small-operations": ("--batch", "2048", 4.0),
    "input-bound": ("--source", "memory", 1.0),
    "input-bound-beside": ("--source", "memory", 1.0),
    "threads-oversubscribed": ("--threads", "1", 1.0),
    "threads-idle": ("--threads", "1", 1.0),
    "wide-vectors-unused": ("ONEDNN_MAX_CPU_ISA", "DEFAULT", 1.0),
    "full-precision-products": None,  # DLRM cannot
    "operations-could-run-beside-each-other": None,  # takes more CPUs than there are here; see below
    "half-the-threads-suffice": ("--inter-threads", "2", 1.0),
    "allocator-churn": ("MALLOC_TRIM_THRESHOLD_", "4294967296", 1.0),
    "threads-wait-for-each-other": ("--threads", "1", 1.0),
    "page-fault-storm": ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1.0),
    "allocator-calls": ("MALLOC_MMAP_MAX_", "0", 1.0),
    "threads-migrate": None,  # PyTorch alone
    "pool-too-small": ("--inter-threads", "1", 1.0),
    "pool-too-large": ("--inter-threads", "1", 1.0),
    "input-starves": ("--source", "memory", 1.0),
    "more-faults-beside": ("MALLOC_TRIM_THRESHOLD_", "17179869184", 1.0),
}


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A project and its plan, in a folder of its own: planned once, because trials do not change it."""
    tmp_path = tmp_path_factory.mktemp("project")
    for folder in ("config/workloads", "config/findings", "envs"):
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "trained.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        loaded = project.load("trained.yaml")
        yield loaded, loaded.plan()


def finding(name, lead="wide", mix=""):
    if RULES[name].about == "mix":
        mix = mix or f"{lead}+stream"
    return Finding(name, RULES[name], Subject(lead, mix, "measured"), PROVEN, ())


def written(parent, asked):
    trial = write_trial_study(*parent, asked)
    file = parent[0].results.trial_study_file(trial.name)
    return trial, project.load(file)


def test_where_nobody_runs_beside_a_lead_its_change_is_tried_alone(parent):
    keys = {"leads": ["wide"], "antagonists": [], "variants": {}}
    lonely = replace(parent[0], study=parent[0].study.model_copy(update=keys))
    plan = lonely.plan()
    _, fresh = written((lonely, plan), Asked(finding("threads-oversubscribed"), {}, None))
    assert (fresh.study.leads, fresh.study.listed_mixes) == (["wide", "wide-changed"], [])
    mixes = fresh.plan().mixes
    assert [(mix.name, mix.antagonists) for mix in mixes] == [("wide", ()), ("wide-changed", ())]
    scenes = {scene.name for launch in fresh.plan().launches for scene in launch.cohort.scenes}
    assert scenes == {"alone", "alone-again"}
    assert mix_contrasts(fresh.plan()).empty  # who is alone loses to nobody
    with pytest.raises(CastmatesError, match="has no mix wide\\+chase to try it beside"):
        mixes_of(plan, "wide", "wide+chase")


def test_every_rule_whose_advice_changes_a_lead_is_tried_here():
    assert {*CHANGES} == {*LEADS}


@pytest.mark.parametrize("name", [name for name in LEADS if CHANGES[name]])
def test_a_lead_is_measured_as_it_is_and_changed_beside_the_same_antagonists(name, parent):
    what, value, work = CHANGES[name]
    trial, fresh = written(parent, Asked(finding(name), {}, None))
    plan = fresh.plan()
    assert {mix.name.partition("+")[0] for mix in plan.mixes} == {"wide", "wide-changed"}
    beside = {"stream"} if RULES[name].about == "mix" else {"stream", "chase"}
    assert {mix.name.partition("+")[2] for mix in plan.mixes} == beside
    leads = {cohort.lead.workload: cohort.lead for cohort in plan.cohorts}
    words = [
        *leads["wide-changed"].command,
        *(item for pair in leads["wide-changed"].variables.items() for item in pair),
    ]
    assert words[words.index(what) + 1] == value
    assert trial.work == work
    before = next(cohort.lead for cohort in parent[1].cohorts if cohort.lead.workload == "wide")
    assert leads["wide"] == before  # as it is
    assert {cohort.lead.cpus for cohort in plan.cohorts} == {before.cpus}
    assert not {launch.seed for launch in plan.launches} & {launch.seed for launch in parent[1].launches}
    assert not {*fresh.study.antagonists, *fresh.study.leads}
    assert (fresh.study.profile, fresh.study.controls) == (None, None)
    assert fresh.study.variants == {}
    assert len(plan.launches) == 2 * 4  # launches of both
    assert trial in trials_of(parent[0].results)
    assert launch_files(parent[0].results) == []


@pytest.mark.parametrize("name", MITIGATED)
def test_mitigations_are_tried_on_the_mix(name, parent):
    trial, fresh = written(parent, Asked(finding(name, mix="wide+chase"), {}, 3))
    plan = fresh.plan()
    assert {mix.name for mix in plan.mixes} == {"wide+chase"}
    assert {each.kind for each in plan.mitigations} == {*RULES[name].trial.mitigate}
    assert trial.mix == "wide+chase"
    assert fresh.study.budget.launches == 3


def test_a_value_can_be_chosen_and_is_another_trial(parent):
    name = write_trial_study(*parent, Asked(finding("small-operations"), {}, None)).name
    trial, fresh = written(parent, Asked(finding("small-operations"), {"batch": 1024, "threads": 2}, None))
    assert trial.name != name
    assert trial.work == 2.0  # a step has twice as many examples
    assert trial.differences == (("--batch", "512", "1024"), ("--threads", "4", "2"))
    assert fresh.workloads["wide-changed"].options["batch"] == 1024


def test_variables_and_cpus_can_be_chosen_too(parent):
    asked = Asked(finding("small-operations"), {}, None, {"MALLOC_ARENA_MAX": "1"}, 2)
    trial, fresh = written(parent, asked)
    assert trial.differences == (("MALLOC_ARENA_MAX", "not set", "1"), ("CPUs", "1", "2"))
    assert trial.work == 1.0
    assert fresh.workloads["wide-changed"].cores == 2


def test_threads_between_operations_follow_from_those_of_the_job(parent):
    trial, _ = written(parent, Asked(finding("pool-too-small"), {}, None))
    assert trial.differences == (("--inter-threads", "4", "1"),)


def test_what_is_not_changed_stays_where_the_number_of_cpus_changes():
    """Threads that nobody set are as many as CPUs: with more CPUs they have to be written."""
    ours, other = RULES["operations-could-run-beside-each-other"].trial.lead
    job = Workload(command="python -m castmates.workloads.tfmodels --model dlrm", progress="heartbeat", cores=2)
    new = changed_lead("job", job, ours, usual_options(job.words, 2))
    assert new.workload.options == {"threads": 2, "inter-threads": 4}
    assert new.differences == (("--inter-threads", "2", "4"), ("CPUs", "2", "4"))
    program = Workload(command="python train.py", progress="heartbeat", cores=3, variables={"A": "b"})
    new = changed_lead("program", program, other, usual_options(program.words, 3))
    assert new.workload.variables == {"A": "b", "TF_NUM_INTRAOP_THREADS": "3", "TF_NUM_INTEROP_THREADS": "6"}
    assert new.workload.cores == 6
    assert new.work == 1.0
    few = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2"}
    program = program.model_copy(update={"variables": few})
    (*_, half) = RULES["half-the-threads-suffice"].trial.lead
    for change, threads in ((other, "4"), (half, "1")):
        new = changed_lead("program", program, change, usual_options(program.words, 3))
        assert new.workload.variables == few | {"TF_NUM_INTEROP_THREADS": threads}
    changes = [Change(cores={"times": 2}), Change(cores={"of_cpus": 2}), Change(cores=6)]
    assert [changed_lead("program", program, each, {}).workload.cores for each in changes] == [6, 6, 6]
    told = refusal(changed_lead, "program", program, Change(variables={"OMP_NUM_THREADS": {"times": 2}}), {})
    assert "multiplies OMP_NUM_THREADS, but program has none" in told
    for cores in (0, 1.5, True, {"times": 0}, {"times": 1, "of_cpus": 1}):
        with pytest.raises(ValidationError):
            Change(cores=cores)


def test_what_a_job_takes_unless_told_otherwise_is_known(parent):
    trial, _ = written(parent, Asked(finding("small-operations", lead="bert-train"), {}, None))
    assert trial.differences == (("--batch", "8", "32"),)
    variant = next(name for name in parent[0].workloads if name.startswith("bert-train") and "eight" in name)
    trial, fresh = written(parent, Asked(finding("small-operations", lead=variant), {}, None))
    assert {mix.name.partition("+")[0] for mix in fresh.plan().mixes} == {variant, f"{variant}-changed"}
    trial, fresh = written(parent, Asked(finding("full-precision-products", lead="bert-train"), {}, None))
    assert trial.differences == (("--precision", "float32", "mixed_bfloat16"),)
    assert fresh.workloads["bert-train-changed"].environment == "tfmodels"


def test_what_cannot_be_tried_is_a_sentence(parent):
    wrong = [
        ("full-precision-products", "wide", {}, None), ("threads-oversubscribed", "bert-train", {}, None),
        ("small-operations", "plain", {}, None), ("small-operations", "wide", {"batch": "large"}, None),
        ("tracing-perturbs", "wide", {}, None), ("input-bound", "wide", {}, 2),
    ]  # fmt: skip
    before = list(trials_of(parent[0].results))
    told = {
        f"{name} {lead} {options} {launches}": refusal(
            write_trial_study, *parent, Asked(finding(name, lead), options, launches)
        )
        for name, lead, options, launches in wrong
    }
    assert_as_before("trials-refused", told)
    assert list(trials_of(parent[0].results)) == before
