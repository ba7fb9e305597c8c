"""The record of whether counters are right on this machine: where it lies, and whom it speaks for."""

import hashlib
import json
from pathlib import Path
from typing import Any

from castmates.files import replace_text
from castmates.linux.kernel_files import read_pairs, read_text
from castmates.machine import facts

Record = dict[str, Any]


def identity(root: Path = Path("/")) -> dict[str, str | None]:
    """What a trial speaks for: another processor, microcode or kernel may count otherwise."""
    return {
        "cpu_model": facts.cpu_model(root),
        "microcode": read_pairs(root / "proc/cpuinfo").get("microcode"),
        "kernel": read_text(root / "proc/sys/kernel/osrelease"),
    }


def file_of(cache: Path, whose: dict[str, str | None]) -> Path:
    """Say where the record of such a machine lies."""
    digest = hashlib.sha256(json.dumps(whose, sort_keys=True).encode()).hexdigest()[:12]
    return cache / "counts-check" / f"{digest}.json"


def read(cache: Path, root: Path = Path("/")) -> Record | None:
    """Return the record that speaks for this machine; None where there is none, or none that can be read."""
    whose = identity(root)
    try:
        record = json.loads(file_of(cache, whose).read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("identity") == whose else None


def write(cache: Path, record: Record) -> Path:
    """Keep a record in place of an earlier one of the same machine."""
    file = file_of(cache, record["identity"])
    replace_text(file, json.dumps(record, indent=1, sort_keys=True) + "\n")
    return file


def verdicts(cache: Path, root: Path = Path("/")) -> dict[str, str]:
    """Say of each event that was tried on this machine whether its counts are right, for the provenance of blocks."""
    record = read(cache, root)
    return {event: str(verdict) for event, verdict in record["events"].items()} if record else {}
