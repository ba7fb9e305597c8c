"""Rule describe_machine: what this machine is -> machine.json."""

import argparse
import json
from pathlib import Path

import castmates.script
from castmates.files import replace_text
from castmates.machine.facts import machine_facts


def main() -> None:
    """Write the facts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    replace_text(arguments.output, json.dumps(machine_facts(), indent=1, sort_keys=True) + "\n")


castmates.script.run(main)
