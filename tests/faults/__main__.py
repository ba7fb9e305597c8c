"""Plants faults and sees that tests notice them: `python -m tests.faults [NAME…]`.

A patch has what is wrong in its first line, and in the second one the tests that must notice it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PACKAGE = "castmates"
LONGEST_S = 1800  # of a run of tests


@dataclass(frozen=True)
class Fault:
    """A patch, what is wrong with it, and the tests that must notice."""

    file: Path
    what: str
    tests: tuple[str, ...]

    @classmethod
    def read(cls, file: Path) -> "Fault":
        """Read the two lines above the first difference."""
        what, tests, *_ = file.read_text().splitlines()
        return cls(file, what, tuple(tests.removeprefix("Tests: ").split()))


def faults(names: Sequence[str] = ()) -> list[Fault]:
    """Those of these names, or all."""
    files = [HERE / f"{name}.patch" for name in names] or sorted(HERE.glob("*.patch"))
    return [Fault.read(file) for file in files]


def copy_of_tree(folder: Path) -> Path:
    """Copy the package; everything else is the tree's own."""
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE)
    for each in ROOT.iterdir():
        if each.name not in (PACKAGE, ".git"):
            (folder / each.name).symlink_to(each)
    return folder


def run(tests: Sequence[str], tree: Path) -> tuple[int, str]:
    """Run tests in a tree until one fails; the status of pytest, and its last words."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *tests]
    variables = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        words, cwd=tree, env=variables, capture_output=True, text=True, check=False, timeout=LONGEST_S
    )
    return done.returncode, done.stdout + done.stderr


def verdict(fault: Fault, tree: Path) -> tuple[bool, str]:
    """Whether the fault is no trouble, and what came of it in words."""
    applied = subprocess.run(["git", "apply", str(fault.file)], cwd=tree, capture_output=True, text=True, check=False)
    if applied.returncode:
        return False, f"does not apply any more: {applied.stderr.strip().splitlines()[0]}"
    status, said = run(fault.tests, tree)
    if found := re.search(r"^FAILED (\S+)", said, re.MULTILINE):
        return True, f"noticed by {found[1].rpartition('::')[2]}"
    if status == 0 and " passed" not in said:
        return True, "not tried: its tests are skipped here"
    return False, "GOES UNNOTICED" if status == 0 else f"its tests do not run: {said.strip().splitlines()[-1]}"


def main(names: Sequence[str] = ()) -> int:
    """Try all, after a look that their tests pass without them; 1 where one is no good."""
    chosen, bad = faults(names), 0
    with tempfile.TemporaryDirectory() as place:
        tests = dict.fromkeys(test for fault in chosen for test in fault.tests)
        status, said = run([*tests], copy_of_tree(Path(place)))
        if status:
            print(f"without any fault these tests fail:\n{said}")
            return 1
    for fault in chosen:
        with tempfile.TemporaryDirectory() as place:
            good, words = verdict(fault, copy_of_tree(Path(place)))
        bad += not good
        print(f"{fault.file.stem:4} {fault.what}: {words}", flush=True)
    print(f"{len(chosen)} faults, {bad} of which are not noticed as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
