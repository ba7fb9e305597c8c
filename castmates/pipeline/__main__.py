"""`python -P -m castmates.pipeline RULE ARGUMENTS…`: what the rules call, so that a sweep may run in any folder.

-P, because the folder of the sweep belongs to a user, and a file in it may have the name of a module of ours.
"""

import runpy
import sys

import castmates.pipeline.script  # first of all: from here on Ctrl-C shows no traceback
from castmates import shipped
from castmates.errors import CastmatesError


def main() -> None:
    """Run the script of the rule as if it had been called by its path."""
    rule, *arguments = sys.argv[1:] or [""]
    script = shipped.script(rule)
    if not script.is_file():
        raise CastmatesError(f"there is no script '{rule}' in {script.parent}; install castmates again.")
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


castmates.pipeline.script.run(main)
