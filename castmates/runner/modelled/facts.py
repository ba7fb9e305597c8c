"""The modelled machine as the report describes machines."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import castmates
from castmates.study.cpus import format_cpu_list
from castmates.study.modelled import MachineModel


def facts_of_classes(models: Mapping[str, MachineModel]) -> dict[str, Any]:
    """The same of modelled classes of nodes: those of the first one, and of each by its name."""
    each = {name: modelled_facts(model) for name, model in models.items()}
    return {**next(iter(each.values())), "classes": each}


def modelled_facts(machine: MachineModel) -> dict[str, Any]:
    """Return what machine.json has of it: no host, because the numbers belong to none."""
    cores, behind = machine.all_cores, "socket" if machine.sockets else "cache"
    caches = [
        {
            "level": 3,
            "id": number,
            "bytes": machine.ways * machine.way_bytes,
            "ways": machine.ways,
            "cpus": format_cpu_list(machine.around(number)),
        }
        for number in range(machine.domains)
    ]
    return {
        "platform": "modelled",
        "read_at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu_model": (
            f"a model (castmates help modelled-machine), {machine.bandwidth}/s of memory bandwidth for each {behind}"
        ),
        "topology": {
            "allowed": format_cpu_list(range(cores * machine.threads)),
            "cores": cores,
            "packages": machine.memories,
            "llcs": caches,
        },
        "governors": {},
        "resctrl": {"kernel": True, "mounted": True, "writable": True},
        "perf": {"hardware": "the modelled machine has none"},
        "model": machine.model_dump(mode="json"),
        "castmates": castmates.__version__,
    }
