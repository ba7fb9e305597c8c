"""What stands in the files of a catalogue, as it is written: for who must be instant, or only wants names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from castmates.files import MOST_WRITTEN, ODD, bytes_of

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
