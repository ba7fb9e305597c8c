"""Tries one mutant: a fork of this process imports the changed module and runs the tests that can notice it."""

import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from tests.mutation import PACKAGE, ROOT
from tests.mutation.mutants import Site, module_name
from tests.mutation.selection import OPTIONS, Selection

TESTS_S = 15.0  # of tests a mutant gets
FILE_S = 0.1  # what it takes to collect a file's
SLOWEST = 3.0  # times what its tests take is what a mutant may use, and START_S for the imports
START_S = 15.0
OWN = {"coverage", "mutmut", "conftest"}
MEMORY = 6 << 30
ASSERTIONS = (
    "assert",
    "AssertionError",
    "Failed:",
    "hypothesis.errors.Flaky",
)  # how a test says that a result is wrong
CHUNKS = (2, 8)  # files of tests: the quickest by themselves, so that a quick death is cheap
ENVIRONMENT = {"CI": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant (`comparison.OUTCOMES`), by which test, and what it cost."""

    outcome: str
    tests: int
    left_out: int
    killed_by: str = ""
    why: str = ""
    cpu_s: float = 0.0


def prepare(selection: Selection) -> None:
    """Import, once, what the package and its tests import from elsewhere: the forks share it."""
    of_tree = {path.stem for path in ROOT.iterdir()} | OWN
    for name in ["pytest", *selection.modules]:
        if name.split(".")[0] in of_tree:
            continue
        with suppress(Exception):
            importlib.import_module(name)
    ours = [name for name in sys.modules if name.split(".")[0] == PACKAGE]
    if ours:
        raise RuntimeError(f"the forks would not import these anew: {', '.join(ours)}")


def tests_for(site: Site, selection: Selection, noticed_by: str) -> tuple[list[int], int]:
    """The tests that run the mutant's lines, the quickest first, and how many more there are than time for them.

    Before all others come those of the name of the test that noticed it in an earlier run.

    No test runs what runs at import: there, all tests that run a function of the module are asked, and those of the
    modules that import it.
    """
    if site.at_import or selection.only_at_import(site.mutant.module, site.lines):
        numbers = {
            test for file in [site.mutant.module, *importers(site.mutant.module)] for test in selection.of_file(file)
        }
    else:
        numbers = selection.of_lines(site.mutant.module, site.lines)
    chosen = [number for number in sorted(numbers) if selection.name(number) == noticed_by]
    seconds = 0.0
    numbers = numbers - set(chosen)
    for together in sorted(_units(numbers, selection), key=lambda unit: (unit[0], unit[1])):
        seconds += together[0]
        if seconds > TESTS_S and chosen:
            break
        chosen += together[1]
        numbers = numbers - set(together[1])
    return chosen, len(numbers)


def _units(numbers: Iterable[int], selection: Selection) -> list[tuple[float, list[int]]]:
    """Tests that share something, together, for the first pays for all; the others by themselves; with their costs."""
    by_file: dict[str, list[int]] = {}
    for number in sorted(numbers):
        by_file.setdefault(selection.file(number), []).append(number)
    units = []
    for file, own in by_file.items():
        if file in selection.shared:
            # Whoever was the first when this was recorded paid for what they share.
            costs = sum(selection.seconds[number] for number in own) + selection.shared[file]
            units.append((costs, own))
        else:
            units += [(selection.seconds[number] + FILE_S / len(own), [number]) for number in own]
    return units


def importers(module: str) -> list[str]:
    """The package's files that name this module in an import."""
    name = module_name(module)
    parent, _, own = name.rpartition(".")
    words = (f"from {name} import", f"import {name}\n", f"from {parent} import {own}")
    return [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / PACKAGE).rglob("*.py"))
        if any(word in file.read_text() for word in words)
    ]


def tried(site: Site, selection: Selection, scratch: Path, noticed_by: str = "", change: bool = True) -> Outcome:
    """Try a mutant; without `change`, its tests alone, which have to pass."""
    chosen, left_out = tests_for(site, selection, noticed_by)
    if not chosen:
        return Outcome("survived", 0, left_out, why="no test runs it")
    limit_s = START_S + SLOWEST * sum(seconds for seconds, _ in _units(chosen, selection))
    source = site.source() if change else (ROOT / site.mutant.module).read_text()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    said, status, cpu_s = _in_a_fork(lambda: _run(site.mutant.module, source, chosen, selection, scratch), limit_s)
    done = {"tests": len(chosen), "left_out": left_out, "cpu_s": round(cpu_s, 2)}
    if said is None:
        ended = "crashed" if os.WIFSIGNALED(status) and os.WTERMSIG(status) not in _LATE else "timeout"
        return Outcome(ended, **done, why=f"the tests' process ended with status {status}")
    if said["killed_by"]:
        how = "asserted" if said["why"].startswith(ASSERTIONS) else "crashed"
        return Outcome(how, **done, killed_by=said["killed_by"], why=said["why"])
    return Outcome("survived", **done, why=said["why"])


_LATE = {signal.SIGXCPU, signal.SIGKILL}


def _in_a_fork(work: Callable[[], dict[str, str]], limit_s: float) -> tuple[dict[str, str] | None, int, float]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            answer = work()
            os.write(writer, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writer)
    # Processor time is the limit; this one ends what waits for something that never comes.
    deadline = time.monotonic() + 60 + 10 * limit_s
    text = b""
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], min(left, 5.0))[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                break
            text += part
    os.close(reader)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return (json.loads(text) if text else None), status, usage.ru_utime + usage.ru_stime


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str):  # noqa: ARG002
        return self.source_to_code(self.text.encode(), self.path)


class _Finder(importlib.abc.MetaPathFinder):
    """Gives the changed source in place of one module's."""

    def __init__(self, module: str, text: str) -> None:
        self.name, self.path, self.text = module_name(module), str(ROOT / module), text

    def find_spec(self, fullname, path, target=None):  # noqa: ARG002
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=_Loader(fullname, self.path, self.text)
        )


class _Chosen:
    """A plugin of pytest: keeps to the chosen tests, and remembers the first that fails."""

    def __init__(self, chosen: set[str]) -> None:
        self.chosen, self.killed_by, self.why = chosen, "", ""

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid in self.chosen]

    def pytest_collectreport(self, report):
        self._keep(report)

    def pytest_runtest_logreport(self, report):
        self._keep(report)

    def _keep(self, report) -> None:
        if report.failed and not self.killed_by:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.killed_by = report.nodeid or "collection"
            self.why = (crash.message if crash else str(report.longrepr)[-200:]).strip().split("\n")[0][:160]


def _run(module: str, source: str, chosen: list[int], selection: Selection, scratch: Path) -> dict[str, str]:
    with (scratch / "output").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.meta_path.insert(0, _Finder(module, source))
    by_file: dict[str, list[int]] = {}
    for number in chosen:
        by_file.setdefault(selection.file(number), []).append(number)
    first_file = selection.file(chosen[0])
    costs = {file: sum(selection.seconds[number] for number in own) for file, own in by_file.items()}
    files = sorted(by_file, key=lambda file: (file != first_file, costs[file]))
    names = {selection.tests[number] for number in chosen}
    options = [*OPTIONS, "-x", "--tb=short", f"--basetemp={scratch / 'tmp'}"]
    first, why = 0, ""
    for last in (*CHUNKS, len(files)):
        part = files[first:last]
        first = max(first, last)
        if not part:
            continue
        plugin = _Chosen(names)
        code = pytest.main([*options, *part], plugins=[plugin])
        if plugin.killed_by:
            return {"killed_by": plugin.killed_by, "why": plugin.why}
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:
            why = "the change renamed tests"
        elif code != pytest.ExitCode.OK:
            return {"killed_by": "pytest", "why": f"pytest ended with {code}"}
    return {"killed_by": "", "why": why}
