"""Rule describe_machine: what this machine is, or the modelled one of the study -> machine.json."""

import argparse
import json
from pathlib import Path

import castmates.pipeline.script
from castmates import project
from castmates.files import cache_folder, replace_text
from castmates.machine import trial_records
from castmates.machine.facts import machine_facts
from castmates.modelled.facts import modelled_facts


def main() -> None:
    """Write the facts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="the study's YAML file: its machine may be a modelled one")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    study = project.load(arguments.study) if arguments.study else None
    if study and study.modelled:
        facts = modelled_facts(study.study.model)
    else:
        cache = cache_folder()
        facts = machine_facts() | {
            **{name: trial.read(cache) for name, trial in trial_records.SHOWN.items()},
            "counts": trial_records.COUNTERS.read(cache),
        }
    replace_text(arguments.output, json.dumps(facts, indent=1, sort_keys=True) + "\n")


castmates.pipeline.script.run(main)
