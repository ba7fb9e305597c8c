"""How long the files of each tier take: `pytest --write-durations` puts it into tests/durations.json."""

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "durations.json"
TIERS = ("check", "test", "all")  # each has what is new in it: make check, make test, make test-all


def tier_of(marks: set[str]) -> str | None:
    """Return the first tier that a test with these marks runs in; None for the nightly run, and for that with Slurm."""
    if marks & {"nightly", "slurm"}:
        return None
    if marks & {"simulation", "landing"}:
        return "all"
    if "pure" in marks:
        return "check"
    if "core" in marks or ("real" in marks and "tensorflow" not in marks):
        return "test"
    return "all"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help="put how long each file took into durations.json")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-durations"):
        config.pluginmanager.register(Durations(), "castmates-durations")


class Durations:
    """Adds up the seconds of each file; files that did not run keep what they had while they exist.

    What computes has its CPU time noted, which other load does not change; what waits has the time by the clock.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, dict[str, float]] = {}
        self._used = _cpu_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        used = _cpu_s()
        marks = {mark.name for mark in item.iter_markers()}
        if "pure" in marks:
            report.duration = used - self._used
        self._used, report.tier = used, tier_of(marks)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.tier:
            files = self._seconds.setdefault(report.tier, {})
            file = report.nodeid.partition("::")[0]
            files[file] = files.get(file, 0) + report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        root = session.config.rootpath
        written = {}
        for tier in TIERS:
            files = kept.get(tier, {}) | self._seconds.get(tier, {})
            written[tier] = {file: round(files[file], 1) for file in sorted(files) if (root / file).exists()}
        FILE.write_text(json.dumps(written, indent=1) + "\n")


def _cpu_s() -> float:
    """Return the CPU time of this process, and of its children that have ended."""
    return sum(os.times()[:4])
