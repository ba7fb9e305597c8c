"""The workflow in a folder that is no clone: by its Snakefile's path, and as a module of another workflow."""

import shutil
import subprocess

import pytest
import yaml

from tests.workflow.sweeps import ROOT, STUDY, TABLES, Sweeps

SMALL = STUDY | {"platform": "modelled"}
IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")
KEEP = ("--rerun-triggers", "mtime", "params")
MODULE = """
configfile: "config/config.yaml"


module castmates:
    snakefile:
        {snakefile}
    config:
        config


use rule * from castmates
"""


@pytest.fixture
def empty(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    return Sweeps(folder, tmp_path / "cache")


def deployed(sweeps: Sweeps, snakefile: str) -> None:
    """What `snakedeploy deploy-workflow` leaves, and a study."""
    for name, text in {"config/config.yaml": yaml.safe_dump(SMALL), "workflow/Snakefile": module(snakefile)}.items():
        file = sweeps.folder / name
        file.parent.mkdir()
        file.write_text(text)


def module(snakefile: str) -> str:
    return MODULE.format(snakefile=snakefile)


def test_a_snakefile_elsewhere_sweeps_here(empty):
    """With the catalogue and the profile of the Snakefile's clone, and a workload that lies beside the study."""
    (empty.folder / "study.yaml").write_text(yaml.safe_dump(SMALL | {"leads": ["mine"]}))
    (empty.folder / "workloads").mkdir()
    mine = {"workloads": {"mine": {"like": "chase", "title": "my own"}, "stream": {"like": "chase"}}}
    (empty.folder / "workloads/mine.yaml").write_text(yaml.safe_dump(mine))
    chosen = ("--snakefile", str(ROOT / "workflow/Snakefile"), "--config", "study=study.yaml")
    empty.sweep(TABLES, *chosen)
    assert set(empty.effects()["mix"]) == {"mine+stream"}
    empty.assert_finished(TABLES, *chosen)
    assert not (empty.folder / "scripts").exists()


def test_another_workflow_uses_ours_as_a_module(empty):
    deployed(empty, repr(str(ROOT / "workflow/Snakefile")))
    target = "results/small/mixes/chase+stream.json"  # the quickest that needs a plan
    empty.sweep(target, *KEEP)
    empty.assert_finished(target, *KEEP)
    assert "model_launch" in empty.run("--dry-run", TABLES, *KEEP).stdout


def test_a_module_comes_from_a_repository_by_its_commit(empty, tmp_path):
    """As from a host of repositories: the rules are read from the repository, the rest is the installed package's."""
    repository = tmp_path / "repository"
    for folder in ("workflow", "envs"):
        shutil.copytree(ROOT / folder, repository / folder)
    for words in (["init", "--quiet"], ["add", "."], [*IDENTITY, "commit", "--quiet", "--message", "workflow"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    deployed(empty, f'gitfile({str(repository)!r}, path="workflow/Snakefile", commit={done.stdout.strip()!r})')
    empty.sweep(TABLES, *KEEP)
    empty.assert_finished(TABLES, *KEEP)
    assert set(empty.effects()["mix"]) == {"chase+stream"}


def test_a_sweep_that_could_measure_again_for_nothing_is_refused(empty):
    deployed(empty, repr(str(ROOT / "workflow/Snakefile")))
    done = empty.run(TABLES)
    assert done.returncode != 0
    assert "or --rerun-triggers mtime params." in done.stdout + done.stderr
    assert not empty.launches()


def test_a_module_whose_configuration_was_changed_is_refused(empty):
    deployed(empty, repr(str(ROOT / "workflow/Snakefile")))
    file = empty.folder / "workflow/Snakefile"
    file.write_text(file.read_text().replace("\n\nmodule", '\nconfig["margin"] = 0.5\n\nmodule', 1))
    done = empty.run("--dry-run", *KEEP)
    assert "the workflow changed 'margin' of the configuration that it read from config/config.yaml" in (
        done.stdout + done.stderr
    )
