"""The container's recipe: linted wherever the tests run, built and used where a builder can be had."""

import os
import re
import shutil
import subprocess

import pytest

from tests.needs import insist
from tests.workflow.sweeps import ROOT

RECIPE = ROOT / "Containerfile"
BUILDERS = ("podman", "docker")


@pytest.mark.needs("hadolint")
def test_the_recipe_is_clean():
    done = subprocess.run(["hadolint", str(RECIPE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_copies_files_that_there_are_and_ignores_what_git_ignores():
    for words in re.findall(r"^COPY (?!--from)(.*)$", RECIPE.read_text(), flags=re.MULTILINE):
        for name in words.split()[:-1]:
            assert (ROOT / name).exists(), name
    ignored = set((ROOT / ".containerignore").read_text().splitlines())
    own = {line.strip("/*") for line in (ROOT / ".gitignore").read_text().splitlines() if not line.startswith("!")}
    assert own - {"*.egg-info".strip("/*"), "unsteady.jsonl", "__pycache__"} <= ignored


@pytest.mark.nightly
def test_the_image_sweeps_the_demo(tmp_path):
    insist("container-builder")
    builder = next(name for name in BUILDERS if shutil.which(name))
    build = [builder, "build", "--file", str(RECIPE), "--tag", "castmates-test", "--build-arg", "PACKAGES=", str(ROOT)]
    subprocess.run(build, check=True, timeout=1800)
    try:
        user = ["--user", f"{os.getuid()}:{os.getgid()}"] if builder == "docker" else []
        run = [builder, "run", "--rm", *user, "--volume", f"{tmp_path}:/work", "castmates-test"]
        subprocess.run(run, check=True, timeout=900)
        assert "not a measurement" in (tmp_path / "results/demo/report/index.html").read_text()
    finally:
        subprocess.run([builder, "rmi", "castmates-test"], check=False)
