"""The facts of this machine as results are shown with them: what trials found here comes with them."""

from pathlib import Path
from typing import Any

from castmates.linux.owner import boot_id
from castmates.machine import trial_records
from castmates.machine.facts import machine_facts


def facts_here(cache: Path) -> dict[str, Any]:
    """The facts of this machine, with the trials that results are shown with."""
    return (
        machine_facts()
        | {name: trial.read(cache) for name, trial in trial_records.SHOWN.items()}
        | {"counts": trial_records.COUNTERS.read(cache), "boot_id": boot_id()}
    )
