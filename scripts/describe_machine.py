"""Rule describe_machine: what this machine is, or the modelled one of the study -> machine.json."""

import argparse
from pathlib import Path
from typing import Any

import castmates.pipeline.script
from castmates import project, shipped
from castmates.files import cache_folder, replace_text
from castmates.machine.shown_facts import facts_here
from castmates.pipeline.describe import text_of
from castmates.rdt.choose import rehearsed_facts
from castmates.runner.modelled.launch import facts_of_classes, modelled_facts
from castmates.study.model import Study


def main() -> None:
    """Write the facts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="the study's YAML file: its machine may be a modelled one")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    study = project.load(arguments.study) if arguments.study else None
    facts = _of_model(study.study) if study and study.modelled else facts_here(cache_folder())
    if study and study.rehearsed:
        facts |= rehearsed_facts(shipped.machine(study.rehearsed))
    replace_text(arguments.output, text_of(facts))


def _of_model(study: Study) -> dict[str, Any]:
    models = {name: each.model for name, each in study.machines.items() if each.model is not None}
    return facts_of_classes(models) if models else modelled_facts(study.model)


castmates.pipeline.script.run(main)
