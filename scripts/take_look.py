"""Rule take_look: the launches measured so far -> which cohorts go on: for a precision, or in an adaptive study."""

import argparse
import sys
from pathlib import Path

import castmates.pipeline.script
from castmates.files import replace_text
from castmates.pipeline import looks
from castmates.results.folder import StudyFolder
from castmates.results.looks import went_on
from castmates.results.plans import read_plan
from castmates.study.curves import sentences


def main() -> None:
    """Judge, and write what was decided."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("look", type=int)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json; launches and looks lie beside it")
    parser.add_argument("--by", required=True, help="the wanted half-width; or 'adaptive': by the questions of mixes")
    parser.add_argument("--margin", type=float, help="with --by adaptive: a smaller change is none")
    parser.add_argument("--lead-loss", type=float, help="with --by adaptive: the limit in per cent, where there is one")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    folder = StudyFolder(arguments.plan.parent)
    if arguments.by == "adaptive":
        terms = looks.Terms(arguments.lead_loss, arguments.margin)
        plan = read_plan(arguments.plan)
        look = looks.take_adaptive_look(plan, folder, arguments.look, terms)
        replace_text(arguments.output, looks.text_of(look))
        print("\n".join(sentences(look)), file=sys.stderr)
        return
    decisions = [went_on(folder.look_file(number)) for number in range(1, arguments.look)]
    reached = looks.take_look(read_plan(arguments.plan), folder, float(arguments.by), decisions)
    replace_text(arguments.output, looks.look_text(arguments.look, float(arguments.by), reached))


castmates.pipeline.script.run(main)
