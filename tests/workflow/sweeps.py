"""A small project for a test, and sweeps over it."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from castmates.pipeline.failures import discard

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["Snakefile", "workflow", "profiles", "config", "scripts", "envs"]
TABLES = "results/small/tables/effects.csv"  # a sweep that ends here draws no figures and writes no page: half the time
STUDY = {
    "name": "small",
    "leads": ["chase"],
    "antagonists": ["stream"],
    "budget": {
        "launches": 2,
        "rounds": 2,
        "spare_rounds": 0,
        "window": 0.1,
        "settle": 0.02,
        "longest_window": 1.0,
        "longest_settle": 0,
    },
    "counters": {"topdown": 0, "cost_pairs": 0},  # the runner's tests have these
    # The machine that runs the tests is shared: nothing may be rejected for what others do there.
    "controls": None,
    "limits": {"steal": "100%", "foreign": "100%", "neighbours": "100%", "restart_gap": "100%", "silence": "100%"},
}


# Snakemake's first line, which nothing can keep it from printing.
PROFILE = "Using workflow specific profile profiles/default for setting default command line arguments."


class Sweeps:
    """A project folder."""

    shown = ""  # by the first sweep, on standard error

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache

    @classmethod
    def make(cls, folder: Path, cache: Path) -> "Sweeps":
        folder.mkdir()
        for part in PARTS:
            (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, folder / part)
        (folder / "castmates").symlink_to(ROOT / "castmates")
        kernels = folder / "config/workloads/kernels.yaml"  # small sets, however large the cache of this machine
        kernels.write_text(re.sub(r"(?<![-\w])\d+(\.\d+)?(llc|ways)\b", "16M", kernels.read_text()))
        one = cls(folder, cache)
        one.write_study({})
        return one

    def copy(self, folder: Path) -> "Sweeps":
        shutil.copytree(self.folder, folder, symlinks=True)
        return Sweeps(folder, self.cache)

    def write_study(self, changes: dict[str, object]) -> None:
        (self.folder / "config/config.yaml").write_text(yaml.safe_dump(STUDY | changes))

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return os.environ | {"PATH": path, "CASTMATES_CACHE": str(self.cache)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._call("snakemake", "--cores", "all", *arguments)

    def sweep(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run, and insist that it went well."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def assert_finished(self, *target: str) -> None:
        """Nothing is left to do, for the whole study or for one target."""
        said = self.run("--dry-run", *target).stdout
        assert "Nothing to be done" in said, said

    def castmates(self, *arguments: str) -> str:
        done = self._call(sys.executable, "-m", "castmates", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def discard(self, changed: bool = False) -> str:
        """Discard what `castmates sweep --retry` would, and measure nothing."""
        with contextlib.chdir(self.folder):
            return "\n".join(discard(Path("config/config.yaml"), changed))

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["snakemake", "--cores", "all", *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @property
    def results(self) -> Path:
        return self.folder / "results/small"

    def launches(self) -> dict[str, int]:
        """The measured launches and when they were written."""
        found = sorted(self.results.glob("launches/*/*/launch.json"))
        return {str(one.parent.relative_to(self.results / "launches")): one.stat().st_mtime_ns for one in found}

    def logs(self) -> list[tuple[Path, int]]:
        """The logs of the launches that were begun, and when somebody wrote there last."""
        return [(one, one.stat().st_mtime_ns) for one in sorted((self.folder / "logs/measure_launch").rglob("*.log"))]

    def record(self, launch: str) -> dict:
        return json.loads((self.results / "launches" / launch / "launch.json").read_text())

    def effects(self):
        import pandas as pd

        return pd.read_csv(self.results / "tables/effects.csv")
