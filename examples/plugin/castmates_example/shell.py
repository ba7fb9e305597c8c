"""A suite: every command that a catalogue file lists becomes a workload that is run again and again.

suites:
  shell:
    commands: {gzip: "gzip -9 --stdout /bin/bash"}
"""

from collections.abc import Mapping
from typing import Any


def workloads(keys: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Workloads by short name, each with the keys of a catalogue file; a ValueError reports a mistake in `keys`."""
    commands = keys.get("commands")
    if set(keys) != {"commands"} or not isinstance(commands, dict):
        raise ValueError("expected one key, 'commands', with a command for each name")
    return {name: {"command": command, "progress": "runs"} for name, command in commands.items()}
