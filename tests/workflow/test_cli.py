"""The command line, as a user types it."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from castmates.errors import CastmatesError
from castmates.pipeline.failures import discard
from castmates.results.folder import StudyFolder
from tests.workflow.sweeps import ROOT

pytestmark = pytest.mark.core


def castmates(*arguments: str, cwd=ROOT) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "castmates", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert "Traceback" not in done.stderr
    return done


def test_doctor_says_what_there_is_and_what_a_no_costs():
    done, checks = castmates("doctor", "--all"), json.loads(castmates("doctor", "--format", "json").stdout)
    assert done.returncode == 0
    assert all(check["name"] in done.stdout for check in checks)
    assert all({"name", "state", "finding", "cost", "remedy"} <= check.keys() for check in checks)
    assert all(check["cost"] and check["remedy"] for check in checks if check["state"] == "no")
    states = Counter(check["state"] for check in checks)
    counts = ", ".join(f"{states[state]} {state}" for state in ("yes", "partly", "no", "unknown") if states[state])
    short = castmates("doctor").stdout
    assert "Measure losses" in short
    assert counts in short


def test_plan_says_what_comes():
    done = castmates("plan", "config/studies/quick.yaml", "--all")
    assert done.returncode == 0
    for word in ("corun:chase+stream", "alone-again", "placebo:", "antagonist-alone:stream@", "launches", "windows"):
        assert word in done.stdout, word
    known = json.loads(castmates("plan", "config/studies/quick.yaml", "--format", "json").stdout)
    assert [(row["program"], row["beside"]) for row in known["rows"]] == [("chase", ["stream", "compute"])]
    assert {control[0] for control in known["controls"]} == {"positive", "negative"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["open", "config/studies/quick.yaml", "--nonsense"], "No such option"),
        (["workloads", "check", "strem"], "did you mean 'stream'?"),
        (["measure", "--beside", "strem", "--", "true"], "did you mean 'stream'?"),
        (["measure", "--count", "step", "--", "true"], "--count is 'step', expected PROGRAM:FUNCTION"),
        (["measure", "--count", "true:none", "--", "true"], "'calls: true:none': it has no"),
        (["plan", "no-such.yaml"], "no-such.yaml: there is neither a study file nor a results folder"),
        (["plan", "README.md"], "README.md"),
        (["internals", "run", "nobody/1", "config/studies/quick.yaml"], "has no launch 'nobody/1'"),
        (
            ["internals", "build-environment", "tourch"],
            "there is no environment 'tourch'; there are: native, jax, llama, tfmodels",
        ),
    ],
)
def test_mistakes_are_one_sentence(arguments, said):
    done = castmates(*arguments)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_folder_that_is_no_project(tmp_path):
    done = castmates("plan", cwd=tmp_path)
    assert done.returncode != 0
    assert "there is no study in this folder" in done.stderr


def test_retry_forgets_only_failed_launches(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/workloads").symlink_to(ROOT / "config/workloads")
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    (tmp_path / "study.yaml").write_text("name: s\nleads: [chase]\nantagonists: [stream]\n")
    for number, status in enumerate(("measured", "failed"), start=1):
        folder = tmp_path / f"results/s/launches/c/{number}"
        folder.mkdir(parents=True)
        (folder / "launch.json").write_text(json.dumps({"status": status, "rounds": 2}))
    # Snakemake refuses the option, so nothing is measured.
    said = castmates("sweep", "study.yaml", "--retry", "--", "--no-such-option", cwd=tmp_path).stdout
    assert "discarded (failed): results/s/launches/c/2" in said
    assert "1 launch discarded" in said
    assert [one.name for one in (tmp_path / "results/s/launches/c").iterdir()] == ["1"]


def test_retry_of_what_cannot_be_removed_is_a_sentence(tmp_path, monkeypatch):
    folder = tmp_path / "results/launches/c/1"
    folder.mkdir(parents=True)
    (folder / "launch.json").write_text(json.dumps({"status": "failed", "rounds": 2}))

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("castmates.project.load", lambda _: SimpleNamespace(results=StudyFolder(tmp_path / "results")))
    monkeypatch.setattr("shutil.rmtree", refuse)  # root may remove anything
    with pytest.raises(CastmatesError, match=r"c/1 cannot be removed \(Permission denied\)"):
        list(discard(Path("study.yaml"), changed=False))
