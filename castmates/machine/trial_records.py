"""Records of trials: do masks and throttles hold, are counters right, what does memory give; each for one machine."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castmates.files import mapping_if_there, replace_text
from castmates.linux import host
from castmates.machine import facts
from castmates.machine.topology import read_topology

TELLING_OPTIONS = ("cdp", "cdpl2", "mba_MBps")  # of a mount: what masks and throttles mean depends on them

Record = dict[str, Any]
Identity = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class TrialRecords:
    """The records of one kind of trial: one for each machine."""

    folder: str  # below the cache
    depends_on_mount: bool  # another kind of mount may behave differently
    depends_on_place: bool = False  # other CPUs, or other memory, may give more or less

    def identity(self, root: Path = Path("/")) -> Identity:
        """Return what a trial holds for: another processor, microcode or kernel may behave differently."""
        machine: dict[str, Any] = {
            "cpu_model": facts.cpu_model(root),
            "microcode": host.cpuinfo(root).get("microcode"),
            "kernel": host.release(root),
        }
        machine |= {"resctrl": facts.resctrl(root)} if self.depends_on_mount else {}
        machine |= {"topology": facts.topology_summary(read_topology(root))} if self.depends_on_place else {}
        return self.identity_of(machine)

    def identity_of(self, machine: Mapping[str, Any]) -> Identity:
        """Return the identity of a machine whose facts were recorded."""
        identity: Identity = {key: machine.get(key) for key in ("cpu_model", "microcode", "kernel")}
        if self.depends_on_place:
            identity |= _place(machine.get("topology") or {})
        if not self.depends_on_mount:
            return identity
        options = ((machine.get("resctrl") or {}).get("options") or "").split(",")
        return identity | {"resctrl": ",".join(option for option in TELLING_OPTIONS if option in options)}

    def file_of(self, cache: Path, identity: Identity) -> Path:
        """Return where the record of a machine like this lies."""
        return cache / self.folder / f"{_digest(identity)}.json"

    def read(self, cache: Path, root: Path = Path("/")) -> Record | None:
        """Return the record that applies to this machine; None where there is none, or none that can be read."""
        identity = self.identity(root)
        record = mapping_if_there(self.file_of(cache, identity))
        return record if record.get("identity") == identity else None

    def write(self, cache: Path, record: Record) -> Path:
        """Keep a record in place of an earlier one of the same machine."""
        file = self.file_of(cache, record["identity"])
        replace_text(file, json.dumps(record, indent=1, sort_keys=True) + "\n")
        return file


RDT = TrialRecords("rdt", depends_on_mount=True)
COUNTERS = TrialRecords("counters", depends_on_mount=False)
MEMORY_PEAK = TrialRecords("memory-peak", depends_on_mount=False, depends_on_place=True)


def counters_verified(cache: Path, root: Path = Path("/")) -> dict[str, str]:
    """Return the verdict on the counts of each event that was tried here; launches record it."""
    record = COUNTERS.read(cache, root)
    return {event: str(verdict) for event, verdict in record["events"].items()} if record else {}


# What machine.json has of each trial whose record results are shown with.
SHOWN = {"rdt_trial": RDT, "memory_peak": MEMORY_PEAK}


def known(cache: Path, machine_file: Path, root: Path = Path("/"), fact: str = "rdt_trial") -> str:
    """Return a short name of the record that results are shown with; "" without one.

    When it changes, the facts are noted anew. For results of another machine the record that came with them counts.
    """
    trial = SHOWN[fact]
    noted, record = mapping_if_there(machine_file), trial.read(cache, root)
    if noted and (record is None or trial.identity_of(noted) != trial.identity(root)):
        record = noted.get(fact)
    return _digest(record) if record else ""


def _place(topology: Mapping[str, Any]) -> Identity:
    """Which CPUs may be used, and which memory nodes; sizes of nodes change a little with each kernel."""
    nodes = [f"{node['id']} of {node['cpus'] or 'no CPUs'}" for node in topology.get("nodes") or ()]
    return {"cpus": topology.get("allowed"), "nodes": ", ".join(nodes), "memory": topology.get("memory")}


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
