"""Rule take_look: the blocks measured so far -> which companies need more for the wanted precision."""

import argparse
from pathlib import Path

import castmates.script
from castmates import looks
from castmates.files import replace_text
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
    decisions = [looks.went_on(looks.look_file(results, number)) for number in range(1, given.look)]
    reached = looks.take_look(read_plan(given.plan), results, given.precision, decisions)
    replace_text(given.output, looks.text_of(given.look, given.precision, reached))


castmates.script.run(main)
