"""Pods for Kubernetes hold to its schemas; only measured ones have privileges, a node to themselves and no limits."""

import argparse
from pathlib import Path

import pytest
import yaml

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.pipeline import kubernetes

PODS = shipped.profile().parent / "kubernetes"
VERSIONS = ("1.27", "1.37")
WORK = Path("/work/here")


def asked(pod: str) -> argparse.Namespace:
    return argparse.Namespace(template=PODS / f"{pod}.yaml", cpus=2, memory_mb=3000, minutes=60)


def made(pod: str, folder: Path = WORK) -> dict:
    template = kubernetes.template_of(PODS / f"{pod}.yaml")
    variables = {"CASTMATES_IMAGE": "site/castmates:1", "CASTMATES_CACHE": "/work/.cache", "SECRET": "no"}
    return kubernetes.rendered(template, "measure_launch", folder / "job.sh", folder, asked(pod), variables)


def hold(manifest: dict) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for version in VERSIONS:
        validator.validate(manifest, version, strict=True)


@pytest.mark.parametrize("pod", ["measured", "analysis"])
def test_what_is_submitted_holds_to_the_schemas_of_kubernetes(pod):
    job = made(pod)
    hold(job)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "site/castmates:1"
    assert container["command"] == ["/bin/sh", "/work/here/job.sh"]
    assert container["env"] == [{"name": "CASTMATES_CACHE", "value": "/work/.cache"}]
    assert len(job["metadata"]["name"]) <= 63  # of a label that Kubernetes makes of it
    assert made(pod)["metadata"]["name"] != job["metadata"]["name"]


@pytest.mark.parametrize("file", sorted((PODS / "cluster").glob("*.yaml")), ids=lambda file: file.stem)
def test_what_an_administrator_applies_holds_to_the_schemas(file):
    manifests = list(yaml.safe_load_all(file.read_text()))
    assert manifests
    for manifest in manifests:
        hold(manifest)


def test_measured_pods_have_a_node_to_themselves_and_no_quota():
    pod = made("measured")["spec"]["template"]
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert container["securityContext"]["privileged"]
    assert "limits" not in container["resources"]
    assert spec["hostNetwork"]  # the host's name is that of the node
    assert spec["nodeSelector"]
    assert {one["key"] for one in spec["tolerations"]} == set(spec["nodeSelector"])
    (apart,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {"/work", "/run/lock", "/sys/fs/resctrl"} <= {one["mountPath"] for one in container["volumeMounts"]}


def test_other_pods_have_no_privilege_and_ask_for_what_their_rule_asks():
    spec = made("analysis")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert not {"hostNetwork", "hostPID", "tolerations"} & spec.keys()
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "3000M"}, "limits": {"memory": "3000M"}}
    assert not any("hostPath" in volume for volume in spec["volumes"])


def test_a_folder_that_pods_do_not_see_is_refused_before_anything_is_submitted():
    with pytest.raises(CastmatesError, match=r"sweep's folder /home/here is in none of the volumes .*\(/work, "):
        made("measured", Path("/home/here"))


@pytest.mark.parametrize(
    "text", ["kind: Pod", "kind: Job\nspec: []", "[", "kind: Job\nspec: {template: {spec: {containers: []}}}"]
)
def test_a_template_that_is_none_is_one_sentence(tmp_path, text):
    (file := tmp_path / "pod.yaml").write_text(text)
    with pytest.raises(CastmatesError, match=r"pod\.yaml") as refused:
        kubernetes.template_of(file)
    assert "\n" not in str(refused.value)
