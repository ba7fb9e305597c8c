"""How long the files of each tier take: `pytest --write-durations` puts it into tests/durations.json."""

import json
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "durations.json"
TIERS = ("check", "test", "all")  # each has what is new in it: make check, make test, make test-all


def tier_of(marks: set[str]) -> str | None:
    """Return the first tier that a test with these marks runs in; None for the nightly run."""
    if "nightly" in marks:
        return None
    if "pure" in marks:
        return "check"
    if "core" in marks or ("real" in marks and "tensorflow" not in marks):
        return "test"
    return "all"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help="put how long each file took into durations.json")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "castmates-durations")


class Durations:
    """Adds up the seconds of each file; files that did not run keep what they had while they exist."""

    def __init__(self) -> None:
        self._seconds: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if tier := tier_of(set(report.keywords)):
            files = self._seconds.setdefault(tier, {})
            file = report.nodeid.partition("::")[0]
            files[file] = files.get(file, 0) + report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        root = session.config.rootpath
        written = {}
        for tier in TIERS:
            files = kept.get(tier, {}) | self._seconds.get(tier, {})
            written[tier] = {file: round(files[file], 1) for file in sorted(files) if (root / file).exists()}
        FILE.write_text(json.dumps(written, indent=1) + "\n")
