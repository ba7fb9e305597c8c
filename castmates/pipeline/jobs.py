"""What the jobs of a sweep need of the process that starts them."""

import os
import sys
from pathlib import Path

import castmates


def let_jobs_find_us() -> None:
    """Let jobs find the interpreter that runs the workflow, and this package, activated and installed or not."""
    root = str(Path(castmates.__file__).resolve().parents[1])
    for variable, place, usual in (("PATH", str(Path(sys.executable).parent), os.defpath), ("PYTHONPATH", root, "")):
        os.environ[variable] = os.pathsep.join(filter(None, [place, os.environ.get(variable, usual)]))


def use_cache(folder: str) -> None:
    """Let the scripts of a job use the cache of the process that planned, whatever the node's environment says."""
    os.environ["CASTMATES_CACHE"] = folder
