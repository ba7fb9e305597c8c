"""What failed with real processes is run once more, alone, with the same seed, and counted: `pytest --once-more`.

A pure test never runs again: one that fails once has found a bug. Where more than MOST tests failed, none runs again:
that is no unsteadiness any more. Each second run is appended to unsteady.jsonl, and the last line shows what came out.
"""

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from tests.kinds import kind_of
from tests.seeds import SEED

MOST = 3  # second runs in a run of the tests
LEDGER = "unsteady.jsonl"
LONGEST = 1800  # seconds that a second run may take


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--once-more", action="store_true", help="run tests with real processes that failed once more, alone"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--once-more") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OnceMore(config), "castmates-once-more")


class OnceMore:
    """Remembers what failed, and runs it again when all the others are done."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, str] = {}  # test -> how it failed first
        self._verdict = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.setdefault(report.nodeid, report.longreprtext)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            self._verdict = "green" if session.exitstatus == pytest.ExitCode.OK else ""
            return
        pure = [test for test in self._failed if kind_of(test) == "pure"]
        if pure:
            self._verdict = f"red: {len(self._failed)} failed, {len(pure)} of them pure, which never run again"
        elif len(self._failed) > MOST or not self._failed:
            self._verdict = f"red: {len(self._failed)} failed, too many for a second run (at most {MOST})"
        else:
            broken = [test for test, first in self._failed.items() if not self._passes_now(test, first)]
            if broken:
                self._verdict = f"red: {len(broken)} of {len(self._failed)} failed twice"
            else:
                self._verdict = f"green, {len(self._failed)} unsteady: {', '.join(self._failed)} (see {LEDGER})"
                session.exitstatus = pytest.ExitCode.OK

    def pytest_unconfigure(self) -> None:
        if self._verdict:
            print(self._verdict)

    def _passes_now(self, test: str, first: str) -> bool:
        load = os.getloadavg()[0]
        root = self._config.rootpath
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
        variables = os.environ | {"CASTMATES_SEED": str(SEED)}
        try:
            done = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, timeout=LONGEST)
            passed, words = _has_passed(done), done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            passed, words = False, f"It did not end within {LONGEST} s."
        print(
            f"\n{test} failed; once more, alone, with CASTMATES_SEED={SEED}: {'passed' if passed else 'failed again'}"
        )
        if not passed:
            print(words)
        entry = {
            "test": test,
            "when": datetime.now().astimezone().isoformat(timespec="seconds"),
            "again": "passed" if passed else "failed",
            "first": first[-4000:],
            "load": load,
            "seed": SEED,
            "commit": _commit(root),
        }
        with (root / LEDGER).open("a") as ledger:
            ledger.write(json.dumps(entry) + "\n")
        return passed


def _has_passed(done: "subprocess.CompletedProcess[str]") -> bool:
    """Return whether the one test ran and passed: pytest is content with one that was skipped, too."""
    summary = (done.stdout.strip().splitlines() or [""])[-2:]
    return done.returncode == 0 and any(re.match(r"1 passed", line) for line in summary)


def _commit(root: Path) -> str:
    ask = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(ask, cwd=root, capture_output=True, text=True).stdout.strip()
