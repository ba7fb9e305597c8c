"""The facts of this machine as results are shown with them: what trials found, and what the doctor makes of it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from castmates.linux.owner import boot_id
from castmates.machine import trial_records
from castmates.machine.doctor.examine import examine
from castmates.machine.facts import machine_facts
from castmates.machine.topology import read_topology

OF_A_PROJECT = ("packages", "plug-ins")  # and not of a machine


def facts_here(cache: Path) -> dict[str, Any]:
    """The facts of this machine, with the trials that results are shown with and the rows of `castmates doctor`."""
    topology = read_topology()
    facts = (
        machine_facts(topology=topology)
        | {name: trial.read(cache) for name, trial in trial_records.SHOWN.items()}
        | {"counts": trial_records.COUNTERS.read(cache), "boot_id": boot_id()}
    )
    return facts | {"doctor": [asdict(check) for check in examine(facts, topology) if check.name not in OF_A_PROJECT]}
