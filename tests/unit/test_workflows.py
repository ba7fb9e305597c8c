"""GitHub's workflows cannot run here: what can be read in them, and the shell of their steps."""

import re
import subprocess

import pytest
import yaml

from tests.house import ROOT

FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def jobs(request):
    workflow = yaml.safe_load(request.param.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    return workflow["jobs"]


@pytest.fixture
def steps(jobs):
    return [step for job in jobs.values() for step in job["steps"]]


def test_no_job_may_write_or_run_on_without_end(jobs):
    for job in jobs.values():
        assert job["timeout-minutes"] <= 360
        assert {right: what for right, what in job.get("permissions", {}).items() if what == "write"} in (
            {},
            {"id-token": "write"},  # a session of a cloud's role, which is no right here
        )


def test_actions_are_pinned_by_a_hash(steps):
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)


def test_the_shell_of_each_step_can_be_read(steps):
    for step in steps:
        subprocess.run(["bash", "-n"], input=step.get("run", ""), text=True, check=True)


def test_no_text_of_a_caller_becomes_shell(steps):
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]


def test_what_is_rented_is_given_back_by_the_job_by_another_and_by_itself():
    jobs = yaml.safe_load((ROOT / ".github/workflows/hardware-day.yml").read_text("utf-8"))["jobs"]
    measure, last = jobs["measure"]["steps"], jobs["give-back"]
    rent = next(step["run"] for step in measure if "run-instances" in step.get("run", ""))
    assert "terminate-instances" in measure[-1]["run"]
    assert measure[-1]["if"].startswith("always()")
    assert (last["needs"], last["if"]) == ("measure", "always()")
    tag = re.search(r"castmates-run,Value=(\S+?)}", rent)[1]
    assert f"tag:castmates-run,Values={tag}" in last["steps"][-1]["run"]
    assert "--instance-initiated-shutdown-behavior terminate" in rent
    first_boot = yaml.safe_load(re.search(r"#cloud-config\n(?:.*\n)*?(?=EOF)", rent)[0])
    assert first_boot["runcmd"] == [["shutdown", "-P", "+150"]]
    assert sum(step.get("timeout-minutes", 0) for step in measure) <= 150
