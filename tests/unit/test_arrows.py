"""The arrows of docs/architecture.md: who may import whom."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "castmates"
BASE = {"errors", "tables", "tables_of_blocks", "tables_of_partitions", "protocols", "sampler", "files", "__version__"}
ALLOWED = {
    "study": {"study"},
    "analysis": {"analysis", "study"},
    "report": {"report", "analysis", "study", "block_tables", "bundles", "csv_text", "side_by_side"},
    "machine": {"machine", "study"},
    "counters": {"counters", "study"},
    "rdt": {"rdt", "counters", "machine", "study"},
    "inside": {"inside"},
    "workloads": {"workloads", "inside"},
    "suites": {"suites", "workloads", "study"},
    "runner": {"runner", "workloads", "rdt", "counters", "machine", "analysis", "study"},
    "modelled": {"modelled", "runner", "rdt", "workloads", "study"},
    "calibration": {"calibration", "runner", "workloads", "rdt", "counters", "machine", "analysis", "study"},
    "counts_check": {"counts_check", "runner", "counters", "workloads", "machine", "study"},
    "contract": {"contract", "runner", "workloads", "counters", "machine", "study"},
    "grant": {"grant", "runner", "machine"},
}
PURE = {"study", "analysis"}
NOT_PURE = {"os", "pathlib", "subprocess", "shutil", "socket", "tempfile", "io", "glob", "psutil"}


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "castmates":
                found |= {f"castmates.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_follow_the_arrows(room):
    for file in (PACKAGE / room).rglob("*.py"):
        for name in imports(file):
            if name.startswith("castmates."):
                target = name.split(".")[1]
                assert target in ALLOWED[room] | BASE, f"{file.relative_to(PACKAGE)} imports {name}"


@pytest.mark.parametrize("room", sorted(PURE))
def test_pure_rooms_touch_neither_files_nor_hardware(room):
    for file in (PACKAGE / room).rglob("*.py"):
        assert not {name.split(".")[0] for name in imports(file)} & NOT_PURE, file


@pytest.mark.parametrize(
    "module",
    [
        "heartbeat.py",
        "phases.py",
        "phase_writer.py",
        "phase_file.py",
        "tfmodels/__main__.py",
        "tfmodels/marks.py",
        "stressng/__main__.py",
    ],
)
def test_what_other_interpreters_import_needs_nothing_of_ours(module):
    allowed = {"castmates.workloads.heartbeat", "castmates.workloads.tfmodels", "castmates.workloads"}
    for name in imports(PACKAGE / "workloads" / module):
        if name.startswith("castmates"):
            assert any(name.startswith(one) for one in allowed), name


def test_modules_stay_small():
    long = [file for file in PACKAGE.rglob("*.py") if len(file.read_text().splitlines()) >= 400]
    assert not long
