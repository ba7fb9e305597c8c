"""Two checkouts of Castmates, each of which measures with its own code."""

import compileall
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.launches import environment_of, measure_by
from benchmarks.machine import ROOT
from benchmarks.precision import Floats, Paired
from castmates.errors import CastmatesError

DRIVER = ROOT / "benchmarks" / "of_tree.py"


@dataclass
class Tree:
    """A checkout, and the launches that it has measured."""

    name: str
    path: Path
    folder: Path  # of its launches
    about: Mapping[str, Any] = field(default_factory=dict)  # its cohort, and its budget
    launches: int = 0
    waited: int = 0  # launches that waited for another measurement

    def plan(self, asked: Mapping[str, object]) -> None:
        """Let the tree plan its launches."""
        compileall.compile_dir(self.path / "castmates", quiet=2)  # neither pays for being new
        self.folder.mkdir(parents=True)
        request = self.folder / "asked.json"
        request.write_text(json.dumps(asked))
        self._drive("plan", request)
        self.about = json.loads((self.folder / "about.json").read_text())
        if Path(self.about["castmates"]) != self.path.resolve():
            raise CastmatesError(f"{self.name}: the code of {self.about['castmates']} was used, not that of the tree.")

    def measure(self) -> None:
        """Measure one launch more by the tree's own command."""
        self.launches += 1
        place = self.folder / str(self.launches)
        _, seconds, waited = measure_by(self.path, f"{self.about['path']}/{self.launches}", place)
        (place / "seconds").write_text(repr(seconds))
        self.waited += waited

    def shown(self) -> "Shown":
        """What the launches showed, by the tree's own estimator."""
        answer = self.folder / "shown.json"
        self._drive("show", answer)
        found = json.loads(answer.read_text())
        losses = np.array(found["losses"], dtype=float).reshape(-1, len(self.about["mixes"]))
        way = Paired(losses, np.array(found["seconds"], dtype=float))
        return Shown(self.name, way, found)

    def _drive(self, order: str, file: Path) -> None:
        words = [sys.executable, "-P", str(DRIVER), order, str(self.folder), str(file)]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.path,
            env=environment_of(self.path), check=False,
        )  # fmt: skip
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise CastmatesError(f"{self.name} could not {order}: {said[-1]}")


@dataclass(frozen=True)
class Shown:
    """What a tree's launches showed."""

    name: str
    way: Paired
    about: Mapping[str, Any]

    @property
    def losses(self) -> Floats:
        """By launch and mix."""
        return self.way.differences

    def variance_of_round(self) -> Floats:
        """Of one round within a launch, by mix."""
        rounds = [np.array(one, dtype=float) for one in self.about["by_round"] if len(one) > 1]
        freedom = sum(len(one) - 1 for one in rounds)
        squares = sum(((one - one.mean(axis=0)) ** 2).sum(axis=0) for one in rounds)
        return np.asarray(squares / freedom if freedom else np.full(self.losses.shape[1], np.nan))

    def variance_due_to_rounds(self) -> Floats:
        """Of a launch's mean, what the scatter of its rounds accounts for, by mix."""
        return self.variance_of_round() * float(np.mean([1 / len(one) for one in self.about["by_round"] if one]))


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


def refuse_other_cohorts(trees: Sequence[Tree]) -> None:
    """Only the way of measuring may differ."""
    for key in ("members", "mixes", "scenes"):
        if len({json.dumps(sorted(tree.about[key])) for tree in trees}) > 1:
            both = "; ".join(f"{tree.name}: {', '.join(tree.about[key])}" for tree in trees)
            raise CastmatesError(f"the trees would measure different {key} ({both}), so that there is no comparison.")
