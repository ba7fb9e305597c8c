"""Stands in for kubectl and its cluster: keeps the manifests that it gets, and runs each job as a process here.

The first job whose rule is named in `fail_once` is lost with its node: it ends without having been started.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

JOBS = Path(os.environ["CLUSTER"])
SCRIPT = '"$@"; echo $? > "$0.part"; mv "$0.part" "$0"'


def create(job: dict) -> None:
    name = job["metadata"]["name"]
    (JOBS / f"{name}.json").write_text(json.dumps(job))
    lost = JOBS / "fail_once"
    if lost.exists() and name.startswith(lost.read_text()):
        lost.unlink()
        (JOBS / f"{name}.rc").write_text("137")
    else:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        # A pod has what its manifest gives it, and nothing of the environment of the machine that submits.
        has = {"PATH": os.defpath, "HOME": str(JOBS)} | {one["name"]: one["value"] for one in container["env"]}
        words = ["/bin/sh", "-c", SCRIPT, str(JOBS / f"{name}.rc"), *container["command"]]
        with (JOBS / f"{name}.log").open("w") as log:
            subprocess.Popen(
                words, cwd=container["workingDir"], env=has, stdout=log, stderr=log, start_new_session=True
            )
    print(f"job.batch/{name}")


def get(name: str) -> None:
    if not (JOBS / f"{name}.json").exists():
        sys.exit(f'Error from server (NotFound): jobs.batch "{name}" not found')
    ended = JOBS / f"{name}.rc"
    kind = "Complete" if ended.exists() and ended.read_text().strip() == "0" else "Failed"
    print(json.dumps({"status": {"conditions": [{"type": kind, "status": "True"}] if ended.exists() else []}}))


match sys.argv[1:]:
    case ["create", *_]:
        create(json.load(sys.stdin))
    case ["get", "job", name, *_]:
        get(name)
    case ["logs", job, *_]:
        log = JOBS / f"{job.removeprefix('job/')}.log"
        print(log.read_text() if log.exists() else "")
    case words:
        sys.exit(f"the stand-in of kubectl knows no {words}")
