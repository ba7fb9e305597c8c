"""Rule take_look: the blocks measured so far -> which companies need more for the wanted precision."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.files import replace_text
from castmates.pipeline.take_look import take_look, text_of
from castmates.results.folder import StudyFolder
from castmates.results.looks import went_on
from castmates.results.plans import read_plan


def main() -> None:
    """Judge, and write what was decided."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("look", type=int)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; blocks and looks lie beside it")
    parser.add_argument("--precision", type=float, required=True, help="the wanted half-width")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    folder = StudyFolder(arguments.plan.parent)
    decisions = [went_on(folder.look_file(number)) for number in range(1, arguments.look)]
    reached = take_look(read_plan(arguments.plan), folder, arguments.precision, decisions)
    replace_text(arguments.output, text_of(arguments.look, arguments.precision, reached))


castmates.pipeline.script.run(main)
