"""What stands in the files of a catalogue, as it is written: for who must be instant, or only wants names.

The doctor reads them for the packages that workloads want and this machine lacks.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from castmates.files import MOST_WRITTEN, ODD, bytes_of
from castmates.workloads import identity

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Entries = Mapping[str, Mapping[str, Any]]
UNREADABLE = (*ODD, yaml.YAMLError)


def files(catalogue: Path) -> dict[str, Entries]:
    """The workloads of each file, by the file's name without .yaml; one of UNREADABLE where they cannot be read."""
    found: dict[str, Entries] = {}
    for file in sorted(catalogue.glob("*.yaml")):
        content = yaml.load(bytes_of(file, MOST_WRITTEN), Loader=LOADER)
        found[file.stem] = dict((content.get("workloads") if content else None) or {})
    return found


def names(catalogue: Path) -> list[str]:
    """The names of all workloads; none where they cannot be read."""
    try:
        return [name for entries in files(catalogue).values() for name in entries]
    except UNREADABLE:
        return []


def missing_packages(catalogue: Path) -> dict[str, list[str]] | None:
    """Each package that is not here, with the workloads that want it; None where there is no catalogue to read."""
    try:
        workloads = {name: one for entries in files(catalogue).values() for name, one in entries.items()}
        wanted = {name: _finished(name, workloads) for name in workloads}
    except UNREADABLE:
        return None  # what is wrong with it is reported when a study is loaded
    found: dict[str, list[str]] = {}
    path = os.environ.get("PATH", os.defpath)
    for name, (package, command) in wanted.items():
        if package and command and identity.lack(command, package, path):
            found.setdefault(package, []).append(name)
    return found if workloads else None


def _finished(name: str, workloads: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, list[str]]:
    """The package of a workload and the words of its command, its own or those of whom it is like."""
    one = workloads[name]
    package, command = one.get("package"), one.get("command")
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command or ()]
    if one.get("like") not in workloads:
        return package, words
    package_before, words_before = _finished(one["like"], workloads)
    return package or package_before, words or words_before
