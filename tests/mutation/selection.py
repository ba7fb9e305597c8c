"""The pure tests of this tree: which pass, how long each takes, and which lines of the package each runs."""

import json
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.mutation import PACKAGE, ROOT

FOLDERS = ("tests/unit", "tests/golden")
MARKS = "pure and not simulation and not landing and not nightly and not tensorflow"
OPTIONS = ["-q", "-p", "no:cacheprovider", "-o", "addopts="]  # one process, whatever the tree's own options are
SHARED = re.compile(r"""scope=["'](module|session|package)|@(functools\.)?(lru_)?cache\b""")


def digest() -> str:
    """Names the tree: the package's and the tests' files, without these ones."""
    names = sha256(MARKS.encode())
    files = [*(ROOT / PACKAGE).rglob("*.py"), *(ROOT / "tests").rglob("*.py"), ROOT / "pyproject.toml"]
    for file in sorted(files):
        if Path(__file__).parent not in file.parents:
            names.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return names.hexdigest()[:16]


@dataclass(frozen=True)
class Selection:
    """The tests that passed, and what each runs: `lines[file][line]` are numbers of `tests`.

    `shared` are the files whose tests share something, and how long their longest test took.
    """

    tests: tuple[str, ...]
    seconds: tuple[float, ...]
    failed: tuple[str, ...]
    modules: tuple[str, ...]
    shared: dict[str, float]
    lines: dict[str, dict[int, tuple[int, ...]]]

    def file(self, number: int) -> str:
        """The file of a test."""
        return self.tests[number].split("::")[0]

    def name(self, number: int) -> str:
        """A test's own name, without its file and its case."""
        return name_of(self.tests[number])

    def of_lines(self, file: str, lines: Iterable[int]) -> set[int]:
        """The tests that run one of these lines."""
        of_file = self.lines.get(file, {})
        return {test for line in lines for test in of_file.get(line, ())}

    def only_at_import(self, file: str, lines: Iterable[int]) -> bool:
        """Whether these lines run, but in no test: a function that a module calls while it is imported."""
        of_file = self.lines.get(file, {})
        return any(line in of_file for line in lines) and not self.of_lines(file, lines)

    def of_file(self, file: str) -> set[int]:
        """The tests that run any line of this file's functions."""
        return self.of_lines(file, self.lines.get(file, {}))


class _Recorder:
    """A plugin of pytest: switches coverage's context at each test, and keeps outcomes and CPU times."""

    def __init__(self, coverage) -> None:
        self.coverage, self.passed, self.failed, self.seconds = coverage, [], [], {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report):
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)


def record(output: Path, basetemp: Path) -> None:
    """Run the pure tests once under coverage, in this process, and write what they run."""
    from coverage import Coverage

    data = output.with_suffix(".coverage")
    coverage = Coverage(data_file=str(data), include=[f"{ROOT / PACKAGE}/*"], config_file=False)
    recorder = _Recorder(coverage)
    coverage.start()
    pytest.main([*OPTIONS, "--tb=line", f"--basetemp={basetemp}", "-m", MARKS, *FOLDERS], plugins=[recorder])
    coverage.stop()
    passed = [test for test in recorder.passed if test not in set(recorder.failed)]
    numbers = {test: number for number, test in enumerate(passed)}
    lines: dict[str, dict[int, list[int]]] = {}
    contexts = coverage.get_data()
    for file in sorted(contexts.measured_files()):
        of_lines = contexts.contexts_by_lineno(file)
        lines[str(Path(file).relative_to(ROOT))] = {
            line: [numbers[test] for test in tests if test in numbers] for line, tests in of_lines.items()
        }
    content = {
        "tests": passed,
        "seconds": [round(recorder.seconds[test], 4) for test in passed],
        "failed": recorder.failed,
        "modules": sorted(name for name in sys.modules if not name.startswith("_")),
        "lines": lines,
    }
    output.write_text(json.dumps(content))
    data.unlink(missing_ok=True)


def load(file: Path) -> Selection:
    """Read what `record` wrote. Tests of a file that shares something count for all that any of them runs."""
    content = json.loads(file.read_text())
    tests, seconds, failed, modules = (tuple(content[name]) for name in ("tests", "seconds", "failed", "modules"))
    by_file: dict[str, list[int]] = {}
    for number, test in enumerate(tests):
        by_file.setdefault(test.split("::")[0], []).append(number)
    sharing = {file: own for file, own in by_file.items() if SHARED.search((ROOT / file).read_text())}
    companions = {number: own for own in sharing.values() for number in own}
    lines = {
        path: {int(line): _with_companions(numbers, companions) for line, numbers in of_lines.items()}
        for path, of_lines in content["lines"].items()
    }
    shared = {file: max(seconds[number] for number in own) for file, own in sharing.items()}
    return Selection(tests, seconds, failed, modules, shared, lines)


def name_of(test: str) -> str:
    """`test_it` of `tests/unit/test_file.py::TestClass::test_it[case]`."""
    return test.partition("[")[0].rpartition("::")[2]


def _with_companions(numbers: Iterable[int], companions: dict[int, list[int]]) -> tuple[int, ...]:
    return tuple({other for number in numbers for other in companions.get(number, [number])})
