"""The record of whether way masks do something on this machine: where it lies, and whom it speaks for."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castmates.files import replace_text
from castmates.linux.kernel_files import read_pairs, read_text
from castmates.machine import facts, facts_rdt

TELLING_OPTIONS = ("cdp", "cdpl2", "mba_MBps")  # of a mount: what masks and throttles mean depends on them

Record = dict[str, Any]
Identity = dict[str, str | None]


def identity(root: Path = Path("/")) -> Identity:
    """What a trial speaks for: another processor, microcode, kernel or kind of mount may behave differently."""
    return identity_of(
        {
            "cpu_model": facts.cpu_model(root),
            "microcode": read_pairs(root / "proc/cpuinfo").get("microcode"),
            "kernel": read_text(root / "proc/sys/kernel/osrelease"),
            "resctrl": facts_rdt.resctrl(root),
        }
    )


def identity_of(machine: Mapping[str, Any]) -> Identity:
    """The same of a machine whose facts were recorded."""
    options = ((machine.get("resctrl") or {}).get("options") or "").split(",")
    told: Identity = {key: machine.get(key) for key in ("cpu_model", "microcode", "kernel")}
    return told | {"resctrl": ",".join(option for option in TELLING_OPTIONS if option in options)}


def file_of(cache: Path, whose: Identity) -> Path:
    """Say where the record of such a machine lies."""
    return cache / "calibration" / f"{_digest(whose)}.json"


def read(cache: Path, root: Path = Path("/")) -> Record | None:
    """Return the record that speaks for this machine; None where there is none, or none that can be read."""
    whose = identity(root)
    record = _json(file_of(cache, whose))
    return record if record.get("identity") == whose else None


def write(cache: Path, record: Record) -> Path:
    """Keep a record in place of an earlier one of the same machine."""
    file = file_of(cache, record["identity"])
    replace_text(file, json.dumps(record, indent=1, sort_keys=True) + "\n")
    return file


def known(cache: Path, machine_file: Path, root: Path = Path("/")) -> str:
    """A short name of the record to be shown with results, "" without one: facts are noted anew when it changes.

    Where results of another machine are looked at, the record that came with them counts.
    """
    noted, here = _json(machine_file), read(cache, root)
    if noted and (here is None or identity_of(noted) != identity(root)):
        here = noted.get("calibration")
    return _digest(here) if here else ""


def _json(file: Path) -> Record:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
