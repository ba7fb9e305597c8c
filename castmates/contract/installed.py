"""What a workload lacks on this machine, and how to get it."""

import os
from dataclasses import dataclass
from pathlib import Path

from castmates.study.model import Workload
from castmates.workloads import environments, programs


@dataclass(frozen=True)
class Lack:
    """Something without which a workload cannot be started here."""

    said: str
    remedy: str
    package: str | None = None  # that has it
    environment: str | None = None  # that can be built


def lack_of(workload: Workload, envs_dir: Path, cache: Path) -> Lack | None:
    """The first thing that is not there; None where all is, or comes by itself as the compiled kernels do."""
    path = os.environ.get("PATH", os.defpath)
    if not workload.words:
        return Lack("it has a model and no command", "give it a 'command'")
    if workload.environment not in (None, environments.NATIVE):
        place = environments.location(workload.environment, envs_dir, cache)
        if not environments.ready_file(place).is_file():
            name = workload.environment
            return Lack(f"the environment '{name}' is not built", f"castmates build-environment {name}", None, name)
        path = os.pathsep.join([str(place / "bin"), path])
    if workload.environment == environments.NATIVE and programs.is_kernel(workload.words[0]):
        return None
    if program := programs.missing(workload.words, workload.package, path):
        remedy = f"apt-get install {workload.package}" if workload.package else f"install {program}"
        return Lack(f"there is no program '{program}'", remedy, workload.package)
    return None
