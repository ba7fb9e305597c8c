"""Python runs this at its start where this folder is on PYTHONPATH: it begins to follow the program's steps."""

import importlib
import os
import sys


def _run_the_usual_one() -> None:
    """Run the `sitecustomize` that this one hides, if the machine has one."""
    here, ours = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop("sitecustomize", None)
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


def _follow() -> None:
    if sys.version_info < (3, 10):
        print("castmates: steps can be followed from Python 3.10 on, and this is older.", file=sys.stderr)
        return
    try:
        from castmates.workloads.attached import follow

        follow.begin()
    except Exception as error:  # the program goes on, whatever it is
        print(f"castmates: steps are not followed: {type(error).__name__}: {error}", file=sys.stderr)


_follow()
_run_the_usual_one()
