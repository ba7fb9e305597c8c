"""The tree of another commit."""

import subprocess
from pathlib import Path

from benchmarks.machine import ROOT
from castmates.errors import CastmatesError


def export(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a folder."""
    folder.mkdir(parents=True)
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
    if packed.returncode != 0:
        said = packed.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise CastmatesError(
            f"the tree of commit {commit} is not available ({said[-1]}): a checkout with git is needed."
        )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder
