"""A sweep through profiles/kubernetes; Snakemake, plugin and profile are real, the cluster behind kubectl is not."""

import json
import os
import subprocess
import sys

import pytest

from tests.workflow.sweeps import ROOT, TABLES, Sweeps

ON_NODES = {"measure-launch", "describe-machine"}


@pytest.mark.nightly
@pytest.mark.needs("cluster-generic", "compiler")
def test_a_sweep_submits_valid_pods_and_one_that_was_lost_again(tmp_path, cache):
    validator = pytest.importorskip("kubernetes_validate")
    project = Sweeps.make(tmp_path / "project", cache)
    (cluster := tmp_path / "cluster").mkdir()
    (cluster / "fail_once").write_text("castmates-measure-launch")
    for pod in ("measured", "analysis"):  # the volume of this cluster
        file = project.folder / f"profiles/kubernetes/{pod}.yaml"
        file.write_text(file.read_text().replace("mountPath: /work}", f"mountPath: {tmp_path}}}"))
    (programs := tmp_path / "programs").mkdir()
    (kubectl := programs / "kubectl").write_text(
        f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/workflow/kubectl_stand_in.py "$@"\n'
    )
    kubectl.chmod(0o755)
    here = project.environment()
    here |= {"PATH": f"{programs}{os.pathsep}{here['PATH']}", "CLUSTER": str(cluster)}
    here |= {"CASTMATES_IMAGE": "site/castmates:1", "CASTMATES_PODS": "profiles/kubernetes"}
    words = ["snakemake", "--workflow-profile", "profiles/kubernetes", "--latency-wait", "5", TABLES]
    done = subprocess.run(words, cwd=project.folder, env=here, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project.folder / TABLES).exists()

    submitted: dict[str, list[dict]] = {}
    for file in cluster.glob("*.json"):
        job = json.loads(file.read_text())
        validator.validate(job, "1.37", strict=True)
        rule = job["metadata"]["name"].removeprefix("castmates-").rpartition("-")[0]
        submitted.setdefault(rule, []).append(job["spec"]["template"]["spec"]["containers"][0]["securityContext"])
    assert submitted.keys() >= ON_NODES | {"estimate-effects"}
    assert len(submitted["measure-launch"]) == len(project.launches()) + 1
    for rule, contexts in submitted.items():
        assert all(one.get("privileged", False) is (rule in ON_NODES) for one in contexts), rule
    (lost,) = (project.folder / "logs/kubernetes").iterdir()
    assert lost.name.startswith("castmates-measure-launch")
