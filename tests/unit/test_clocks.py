"""Nothing that happens in a window looks at the wall clock, so that a clock that is set does not matter."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "castmates"
IN_A_WINDOW = [
    *(ROOT / "linux").rglob("*.py"),
    *(ROOT / "counters").rglob("*.py"),
    *(ROOT / "rdt").rglob("*.py"),
    *(ROOT / "runner" / "rounds").rglob("*.py"),
    *(ROOT / "runner" / "processes").rglob("*.py"),
    ROOT / "workloads/heartbeat.py",
]
WALL = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime", "time.CLOCK_REALTIME"}
C_WALL = ("CLOCK_REALTIME", "gettimeofday", "time(NULL)", "timespec_get")


def wall_clocks(source: str) -> set[str]:
    """Every use of the wall clock in a piece of Python."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {f"{alias.name}." for alias in node.names}
    return {name for name in found if name in WALL or name.startswith("datetime.")}


@pytest.mark.parametrize("file", IN_A_WINDOW, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_window_uses_monotonic_clocks_only(file):
    assert wall_clocks(file.read_text()) == set()


@pytest.mark.parametrize("file", sorted((ROOT / "workloads/native").glob("*.[ch]")), ids=lambda file: file.name)
def test_heartbeats_of_native_programs_use_monotonic_clocks_only(file):
    assert not [word for word in C_WALL if word in file.read_text()]


@pytest.mark.parametrize("use", ["import time\ntime.time()", "from time import time", "from datetime import datetime"])
def test_the_search_finds_a_wall_clock(use):
    assert wall_clocks(use)


def uses_for_figures(source: str) -> set[str]:
    """Return every use of the wall clock other than as a stamp: as a number, or in a difference of dates."""
    found = {name for name in wall_clocks(source) if name in WALL}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and "datetime" in ast.unparse(node):
            found.add(ast.unparse(node))
    return found


def test_the_wall_clock_is_for_stamps_alone():
    # TensorFlow's marks are of the wall clock: each step finds out how far it is from the steady one, and a step in
    # which it was set is given up. Its traces are aligned by the difference of both clocks at either end. Snakemake's
    # failures are distinguished from older ones by the dates of files. How old controls of the same boot are, when
    # they are reused, may be wrong by what the clock was set meanwhile.
    files = {file for file in ROOT.rglob("*.py") if uses_for_figures(file.read_text())}
    assert {file.name for file in files} == {"phases.py", "tracing.py", "failures.py", "reused_controls.py"}


@pytest.mark.parametrize("use", ["import time\ntime.time_ns()", "datetime.now() - began", "datetime.now(UTC) - x"])
def test_a_figure_from_the_wall_clock_is_found(use):
    assert uses_for_figures(use)
    assert not uses_for_figures("from datetime import datetime\nstamp = datetime.now().isoformat()")
