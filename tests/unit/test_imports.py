"""Which packages each way in does without: it starts fast, and runs where an extra is not installed."""

import subprocess
import sys

import pytest

from castmates.extras import BASE, MODULES, SWEEP, TRACE
from tests.unit.results_maker import make
from tests.workflow.sweeps import ROOT

COMMAND = "from castmates.cli.main import app\napp([{}], standalone_mode=False)"
LAUNCH = "castmates.pipeline.measure_launch, castmates.runner.launch, castmates.results.plans"
WAYS_IN = {  # a program, and the packages that it may import
    "import": ("import castmates", ()),
    "help": (COMMAND.format("'--help'"), ("rich", "typer")),
    # In a folder without results, which are read by numpy.
    "plan": (COMMAND.format(f"'plan', '{ROOT}/config/config.yaml'"), ("pydantic", "rich", "typer", "yaml")),
    "load": (
        "import castmates\nresults = castmates.load(folder)\nresults.effects, results.windows, results.plan",
        ("numpy", "pandas", "pyarrow", "pydantic", "yaml"),
    ),
    "show": (COMMAND.format("'show', folder"), MODULES[BASE]),
    "launch": (f"import {LAUNCH}", ("pydantic", "psutil")),
    "a launch's tables": (
        "from castmates.results.columns.parquet import write_rows\nfrom pathlib import Path\n"
        "write_rows([{'a': 1.5}], {'a': 'float64'}, Path(folder).with_suffix('.parquet'))",
        ("numpy", "pyarrow"),
    ),
    "the list of figures": ("import castmates.report.figures.index", ("pydantic",)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make(tmp_path_factory.mktemp("results") / "study")


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_way_in_does_without(way, folder):
    program, allowed = WAYS_IN[way]
    without = {name for extra in (BASE, SWEEP, TRACE) for name in MODULES[extra]} - {*allowed}
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({sorted(without)}))\nfolder = {str(folder)!r}\n"
    words = [sys.executable, "-c", blocked + program]
    done = subprocess.run(words, cwd=folder.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
