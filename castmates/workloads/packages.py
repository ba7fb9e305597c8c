"""The Debian packages that workloads of the catalogue want and this machine lacks.

For the doctor, which must be instant: the files are read for two keys, and not checked as a study's reading does.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castmates.workloads import identity, written


def missing(catalogue: Path) -> dict[str, list[str]] | None:
    """Each package that is not here, with the workloads that want it; None where there is no catalogue to read."""
    try:
        workloads = {name: one for entries in written.files(catalogue).values() for name, one in entries.items()}
        wanted = {name: _finished(name, workloads) for name in workloads}
    except written.UNREADABLE:
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
