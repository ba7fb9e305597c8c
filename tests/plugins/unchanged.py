"""A long test that passed does not run again while its sources are the same: simulations, the lab, jobs of frameworks.

The sources are every module that the test and its conftest.py can import, the YAML that ships, and the locked versions.
A job, or what compilers make of a kernel, also rests on all of castmates/workloads, which nobody imports, and on these
compilers.
What has passed is remembered in .cache/tests/passed. What draws at random, or runs the whole workflow, runs each time;
so do the lab's tests with CASTMATES_LAB=all.
"""

import ast
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house import ROOT

PASSED = ROOT / ".cache" / "tests" / "passed"
OURS = ("castmates", "tests", "benchmarks")
SHARED = [*sorted((ROOT / "config").rglob("*.yaml")), ROOT / "envs" / "dev.lock"]
RUN = ("tensorflow", "compilers")  # marks of tests that run what lies in castmates/workloads
INSIDE = "CASTMATES_INSIDE_LAB"  # as tests/lab/inside.py has it
EACH_TIME = ("test_sweep", "test_crashes")  # of the lab


@pytest.hookimpl(trylast=True)  # after those that deselect
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    again = [item for item in items if _is_remembered(item) and _note_of(item).exists()]
    if len(again) < len(items):  # who names one alone wants to see it run
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if item not in again]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" and report.passed and _is_remembered(item):
        PASSED.mkdir(parents=True, exist_ok=True)
        _note_of(item).touch()
    return report


def _is_remembered(item: pytest.Item) -> bool:
    if INSIDE in os.environ:  # in a guest, which was asked for these tests
        return False
    if item.get_closest_marker("lab"):
        return item.path.stem not in EACH_TIME and os.environ.get("CASTMATES_LAB") != "all"
    return any(item.get_closest_marker(mark) for mark in ("simulation", *RUN))


def _note_of(item: pytest.Item) -> Path:
    run = digest_of_workloads() if any(item.get_closest_marker(mark) for mark in RUN) else ""
    return PASSED / hashlib.sha256(f"{item.nodeid} {digest_of(item.path)} {run}".encode()).hexdigest()


@cache
def digest_of_workloads() -> str:
    """Return the digest of all that interpreters and compilers are given, and of their locked versions."""
    files = [file for file in (ROOT / "castmates" / "workloads").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    compilers = [
        f"{file} {Path(file).stat().st_mtime_ns}" for name in ("cc", "gcc", "clang") if (file := shutil.which(name))
    ]
    digest = hashlib.sha256(f"{platform.machine()} {os.environ.get('CC')} {compilers}".encode())
    for each in sorted([*files, *(ROOT / "envs").glob("*.lock")]):
        digest.update(f"{each.relative_to(ROOT)}\n".encode() + each.read_bytes())
    return digest.hexdigest()


@cache
def digest_of(file: Path) -> str:
    """Return the digest of all sources that a file of tests rests on."""
    digest = hashlib.sha256(platform.python_version().encode())
    for each in [*sorted(sources_of(file)), *SHARED]:
        digest.update(f"{each.relative_to(ROOT)}\n".encode() + _contents(each))
    return digest.hexdigest()


def sources_of(file: Path) -> set[Path]:
    """Return a file, the conftest.py above it, and all modules of ours that they import, directly or not."""
    above = [folder / "conftest.py" for folder in file.parents if folder.is_relative_to(ROOT)]
    found, left = set[Path](), [file, *(each for each in above if each.is_file())]
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += _imported_by(one)
    return found


@cache
def _imported_by(file: Path) -> list[Path]:
    text = _contents(file).decode()
    names = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = [file for name in names if name.partition(".")[0] in OURS and (file := _file_of(name))]
    if "import_module(" in text:  # by a name that is put together: any module of the packages that the text mentions
        for name in set(re.findall(r"\bcastmates\.[\w.]*\w", text)):
            files += ROOT.joinpath(*name.split(".")).rglob("*.py")
    return files


def _file_of(name: str) -> Path | None:
    path = ROOT.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@cache
def _contents(file: Path) -> bytes:
    return file.read_bytes()
