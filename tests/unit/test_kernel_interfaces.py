"""What the room `linux` alone knows: /proc, control groups, prctl and system calls."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "castmates"
# They run inside workloads, where other interpreters have the standard library alone.
APART = {"linux", "inside", "workloads"}
# What a capture holds of a machine is a list of paths.
LISTS_OF_PATHS = {"machine/capture/contents.py"}
KERNEL_PATH = re.compile(r"/?(proc|sys/fs/cgroup)(/\S*)?|cgroup\.[a-z_]+|.*/cgroup\.[a-z_]+")
SYSTEM_CALLS = {"ctypes", "_ctypes", "cffi"}


def files() -> Iterator[Path]:
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] not in APART:
            yield file


def strings(file: Path) -> Iterator[str]:
    """Every string that is no docstring; of an f-string the parts that do not change."""
    tree = ast.parse(file.read_text())
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@pytest.mark.parametrize("text", ["/proc", "/proc/self/comm", "proc/stat", "/sys/fs/cgroup/x", "cgroup.procs"])
def test_a_path_of_the_kernel_is_known(text):
    assert KERNEL_PATH.fullmatch(text)


def test_only_linux_knows_paths_in_proc_and_in_control_groups():
    for file in files():
        if str(file.relative_to(PACKAGE)) not in LISTS_OF_PATHS:
            paths = [text for text in strings(file) if KERNEL_PATH.fullmatch(text)]
            assert not paths, f"{file.relative_to(PACKAGE)} knows {paths}: let castmates/linux read them"


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_what_workloads_use_of_linux_needs_the_standard_library_alone():
    """Their interpreters have nothing else; of `linux` they use the modules that open counters."""
    shared = [f"castmates.linux.{module}" for module in ("event_names", "perf_event", "probe_points")]
    apart = [file for room in ("inside", "workloads") for file in (PACKAGE / room).rglob("*.py")]
    used = {name for file in apart for name in imports(file) if name.startswith("castmates.linux")}
    assert sorted(used) == shared
    for name in shared:
        for needed in imports(PACKAGE.parent / f"{name.replace('.', '/')}.py"):
            assert needed in shared or needed.split(".")[0] in sys.stdlib_module_names, f"{name} imports {needed}"


def test_only_linux_makes_system_calls_of_its_own():
    for file in files():
        assert not {name.split(".")[0] for name in imports(file)} & SYSTEM_CALLS, file.relative_to(PACKAGE)
