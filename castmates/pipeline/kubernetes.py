"""Hands Snakemake's jobs to a Kubernetes cluster by kubectl, as profiles/kubernetes asks for it.

A pod is made from a template of the site; what the template gives stays.

    python -P -m castmates.pipeline.kubernetes submit --template FILE --rule RULE --cpus 1 … JOBSCRIPT
    python -P -m castmates.pipeline.kubernetes status JOB
"""

import argparse
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import yaml

from castmates.errors import CastmatesError
from castmates.files import ODD, written_text

IMAGE = "CASTMATES_IMAGE"
PASSED = ("CASTMATES_CACHE", "PYTHONSAFEPATH")  # variables that a job finds as the submitting process has them
LOGS = Path("logs/kubernetes")


def template_of(file: Path) -> dict[str, Any]:
    """Read a site's template, which is a Job with one container."""
    try:
        job = yaml.safe_load(written_text(file, "the template of a pod"))
    except (*ODD, yaml.YAMLError) as error:
        raise CastmatesError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    try:
        containers = job["spec"]["template"]["spec"]["containers"]
        usable = job["kind"] == "Job" and len(containers) == 1 and isinstance(containers[0], dict)
    except (KeyError, TypeError):
        usable = False
    if not usable:
        raise CastmatesError(f"{file}: expected a Job with exactly one container in spec.template.spec.containers.")
    return dict(job)


def rendered(
    job: dict[str, Any], rule: str, script: Path, folder: Path, asked: argparse.Namespace, variables: dict[str, str]
) -> dict[str, Any]:
    """Fill a template in for one job, whose script lies in the sweep's folder."""
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    mounts = [Path(mount["mountPath"]) for mount in container.get("volumeMounts", [])]
    if not any(folder.is_relative_to(mount) for mount in mounts):
        raise CastmatesError(
            f"{asked.template}: the sweep's folder {folder} is in none of the volumes that pods mount "
            f"({', '.join(map(str, mounts)) or 'none'}); mount the shared volume there, under the same path as here."
        )
    name = f"castmates-{rule.replace('_', '-')[:40]}-{uuid.uuid4().hex[:10]}"
    job["metadata"] = job.get("metadata", {}) | {"name": name}
    pod.setdefault("activeDeadlineSeconds", asked.minutes * 60)  # from its start: waiting for a node counts nothing
    container.setdefault("image", variables[IMAGE])
    container |= {"workingDir": str(folder), "command": ["/bin/sh", str(script)]}
    if "resources" not in container:
        memory = {"memory": f"{asked.memory_mb}M"}
        container["resources"] = {"requests": {"cpu": str(asked.cpus)} | memory, "limits": memory}
    given = {one["name"] for one in container.get("env", [])}
    passed = [{"name": name, "value": variables[name]} for name in PASSED if name in variables and name not in given]
    container["env"] = [*container.get("env", []), *passed]
    return job


def submit(asked: argparse.Namespace) -> None:
    """Make the job, and print its name."""
    if IMAGE not in os.environ:
        raise CastmatesError(f"{IMAGE} is not set; set it to the image that the nodes are to run.")
    template = template_of(asked.template)
    job = rendered(template, asked.rule, asked.script.resolve(), Path.cwd(), asked, dict(os.environ))
    made = _kubectl("create", "--filename", "-", "--output", "name", given=json.dumps(job))
    if made.returncode:
        raise CastmatesError(f"kubectl did not create the job of rule {asked.rule}: {_one_line(made.stderr)}")
    print(job["metadata"]["name"])


def status(name: str) -> str:
    """Return what Snakemake wants to hear of a job; one that has vanished has failed, and is submitted again."""
    asked = _kubectl("get", "job", name, "--output", "json")
    if asked.returncode:
        if "NotFound" in asked.stderr:
            return "failed"
        print(f"castmates: kubectl cannot see job {name} at present: {_one_line(asked.stderr)}", file=sys.stderr)
        return "running"
    conditions = json.loads(asked.stdout).get("status", {}).get("conditions") or []
    true = {one["type"] for one in conditions if one["status"] == "True"}
    if "Failed" in true:
        _keep_log(name)
        return "failed"
    return "success" if "Complete" in true else "running"


def _keep_log(name: str) -> None:
    """Keep what the pod of a failed job printed, while the cluster has it."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = _kubectl("logs", f"job/{name}", "--tail", "1000")
    (LOGS / f"{name}.log").write_text(log.stdout + log.stderr)


def _kubectl(*words: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["kubectl", *words], input=given, capture_output=True, text=True, check=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main(words: list[str]) -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(prog="castmates.pipeline.kubernetes")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("submit")
    one.add_argument("--template", type=Path, required=True)
    one.add_argument("--rule", required=True)
    for name in ("--cpus", "--memory-mb", "--minutes"):
        one.add_argument(name, type=int, required=True)
    one.add_argument("script", type=Path)
    commands.add_parser("status").add_argument("job")
    asked = parser.parse_args(words)
    try:
        if asked.command == "submit":
            submit(asked)
        else:
            print(status(asked.job))
    except CastmatesError as error:
        sys.exit(f"castmates: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
