"""What a workload lacks on this machine, and how to get it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from castmates.workloads import environments, inputs, programs


class Workload(Protocol):
    """What has to be known of a workload of the catalogue."""

    @property
    def words(self) -> Sequence[str]:
        """Its command."""

    @property
    def environment(self) -> str | None:
        """What it runs in."""

    @property
    def inputs(self) -> str | None:
        """Its data set."""

    @property
    def package(self) -> str | None:
        """Debian's, which has its program."""


@dataclass(frozen=True)
class Lack:
    """Something without which a workload cannot be started here."""

    what: str
    remedy: str
    environment: str | None = None  # that can be built


def lack_of(workload: Workload, envs_dir: Path, cache: Path) -> Lack | None:
    """Return the first thing that is not there; None where all is, or comes by itself as the compiled kernels do."""
    path = os.environ.get("PATH", os.defpath)
    if not workload.words:
        return Lack("it has a model and no command", "give it a 'command'")
    if workload.environment not in (None, environments.NATIVE):
        place = environments.location(workload.environment, envs_dir, cache)
        if not environments.ready_file(place).is_file():
            return _unbuilt(workload.environment)
        path = os.pathsep.join([str(place / "bin"), path])
    if (maker := _maker_of_inputs(workload, envs_dir, cache)) is not None:
        return _unbuilt(maker)
    if workload.environment == environments.NATIVE and programs.is_kernel(workload.words[0]):
        return None
    if lack := programs.lack(workload.words, workload.package, path):
        remedy = f"apt-get install {workload.package}" if workload.package else f"install {workload.words[0]}"
        return Lack(lack, remedy)
    return None


def _maker_of_inputs(workload: Workload, envs_dir: Path, cache: Path) -> str | None:
    """Return the environment that must be built before the workload's data set; None where none is needed."""
    if workload.inputs is None or workload.inputs not in inputs.RECIPES:
        return None
    name = inputs.RECIPES[workload.inputs].environment
    if name is None or inputs.ready_file(inputs.location(workload.inputs, envs_dir, cache)).is_file():
        return None
    return None if environments.ready_file(environments.location(name, envs_dir, cache)).is_file() else name


def _unbuilt(name: str) -> Lack:
    return Lack(f"the environment '{name}' is not built", f"castmates internals build-environment {name}", name)
