"""Rule take_look: the blocks measured so far -> which companies need more for the wanted precision."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.files import replace_text
from castmates.pipeline import take_look
from castmates.project import read_plan


def main() -> None:
    """Judge, and write what was decided."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("look", type=int)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; blocks and looks lie beside it")
    parser.add_argument("--precision", type=float, required=True, help="the wanted half-width")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    results = given.plan.parent
    decisions = [take_look.went_on(take_look.look_file(results, number)) for number in range(1, given.look)]
    reached = take_look.take_look(read_plan(given.plan), results, given.precision, decisions)
    replace_text(given.output, take_look.text_of(given.look, given.precision, reached))


castmates.pipeline.script.run(main)
