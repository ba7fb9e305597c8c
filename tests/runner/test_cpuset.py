"""A launch whose programs get their CPUs alone: when, for whom, and its record. tests/lab has a real kernel."""

from contextlib import contextmanager

import pytest

from castmates.errors import CastmatesError
from castmates.runner.processes import isolation
from castmates.study.model import Prepare
from tests.runner.stage import counter, measured, plan_of, with_cohort

pytestmark = pytest.mark.needs("two-cpus", "compiler")


def asking(plan):
    (one,) = plan.launches
    design = one.design.model_copy(update={"prepare": Prepare(cpuset="isolated")})
    return plan.model_copy(update={"launches": (one.model_copy(update={"design": design}),)})


def test_it_holds_from_when_everybody_is_ready_until_all_is_measured(cache, tmp_path, monkeypatch):
    plan, seen = asking(plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache)), []

    @contextmanager
    def partition(group, cpus, journal, purpose, say):
        seen.append((group is None or group.is_dir(), set(cpus)))
        yield {"set": {"cpuset.cpus.partition": "isolated"}}
        seen.append((tmp_path / "launch.json").exists())

    monkeypatch.setattr(isolation, "isolated", partition)
    record = measured(plan, tmp_path, cache)
    (cohort,) = plan.cohorts
    assert seen == [(True, {cpu for member in cohort.members for cpu in member.cpus}), False]
    assert record["status"] == "measured"
    assert record["prepared"]["cpuset"]["set"] == {"cpuset.cpus.partition": "isolated"}


def test_members_of_several_cpus_are_refused_before_anything_is_launched(cache, tmp_path, monkeypatch):
    plan = asking(plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache))
    (cohort,) = plan.cohorts
    lead, *others = cohort.members
    wide = lead.model_copy(update={"cpus": (*lead.cpus, *others[0].cpus)})
    plan = with_cohort(plan, cohort.model_copy(update={"members": (wide, *others)}))
    monkeypatch.setattr("castmates.runner.staging.launch", None)
    with pytest.raises(CastmatesError, match="cpuset cannot be 'isolated' here: lead has 2 CPUs"):
        measured(plan, tmp_path, cache)
