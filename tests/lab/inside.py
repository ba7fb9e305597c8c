"""How a test comes into a guest and its outcome comes back."""

import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from tests.lab.kit.boot import boot
from tests.lab.kit.build import PROJECT
from tests.lab.shapes import SHAPES

INSIDE = "CASTMATES_INSIDE_LAB"  # set in a guest
REPORTS = Path("/share/reports")
PER_GUEST, PER_TEST = 120, 60  # seconds, at most: emulation is slow, and who emulates may have little time


class Guests:
    """Boots each machine once, with all the tests of the session that want it."""

    def __init__(self, lab):
        self._lab = lab
        self._reports = {}  # machine -> test -> its reports
        self._told = {}  # machine -> what its guest said

    def reports_of(self, test):
        if test.machine not in self._reports:
            items = test.session.items
            self._run(test.machine, [one.nodeid for one in items if getattr(one, "machine", "") == test.machine])
        return self._reports[test.machine].get(test.nodeid, [])

    def told_by(self, machine):
        return self._told[machine]

    def _run(self, machine, tests):
        lab = self._lab()
        variables = {
            INSIDE: machine,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        python, project = shlex.quote(sys.executable), shlex.quote(str(PROJECT))
        command = f"cd {project} && {exports} exec {python} -m pytest -q -p no:cacheprovider @/share/tests"
        with tempfile.TemporaryDirectory(prefix="castmates-lab-") as folder:
            share = Path(folder)
            (share / "tests").write_text("\n".join(tests))
            done = boot(lab, SHAPES[machine], command, share, PER_GUEST + PER_TEST * len(tests))
            reports = {}
            file = share / REPORTS.name
            for line in file.read_text().splitlines() if file.exists() else ():
                report = json.loads(line)
                reports.setdefault(report["test"], []).append(report)
        self._reports[machine], self._told[machine] = reports, done.told


class Remote(pytest.Item):
    """A test that runs in a guest."""

    machine: str

    @classmethod
    def of(cls, test, guests):
        one = cls.from_parent(test.parent, name=test.name)
        one.machine, one.guests = test.callspec.params["machine"], guests
        one.own_markers = test.own_markers
        return one

    def runtest(self):
        reports = self.guests.reports_of(self)
        for report in reports:
            if report["outcome"] == "skipped":
                pytest.skip(report["text"])
            if report["outcome"] == "failed":
                raise FailedInGuest(f"{report['when']} failed on {self.machine}\n{report['text']}")
        if "teardown" not in [report["when"] for report in reports]:
            raise FailedInGuest(f"{self.machine} did not come to this test's end: {self.guests.told_by(self.machine)}")

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, FailedInGuest):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class FailedInGuest(Exception):
    """What the guest's pytest said of a test that failed."""


def write_report(report):
    """In a guest: leave for the host what it needs to know."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    text = "\n".join([text, *(f"--- {title}\n{content}" for title, content in report.sections)])
    line = {"test": report.nodeid, "when": report.when, "outcome": report.outcome, "text": text}
    with REPORTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
