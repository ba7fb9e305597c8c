"""How a test comes into a guest and its outcome comes back."""

import json
import os
import shlex
import sys
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.lab.kit.boot import boot
from tests.lab.kit.build import PROJECT
from tests.lab.shapes import SHAPES

INSIDE = "CASTMATES_INSIDE_LAB"  # set in a guest
AT_ONCE = 2  # guests: each has one busy CPU most of the time
REPORTS = Path("/share/reports")
PER_GUEST, PER_TEST = 120, 60  # seconds, at most: emulation is slow, and who emulates may have little time


class Guests:
    """Boots each machine once, with all the tests of the session that want it; two of them at a time."""

    def __init__(self, lab):
        self._lab = lab
        self._runs = {}  # machine -> a future of its tests' reports and of what its guest said

    def reports_of(self, test):
        if not self._runs:
            self._start_all(self._lab(), test.session.items)
        return self._runs[test.machine].result()[0].get(test.nodeid, [])

    def told_by(self, machine):
        return self._runs[machine].result()[1]

    def _start_all(self, lab, items):
        wanted = {}
        for one in items:
            if machine := getattr(one, "machine", ""):
                wanted.setdefault(machine, []).append(one.nodeid)
        places = threading.BoundedSemaphore(AT_ONCE)
        for machine, tests in wanted.items():
            run = self._runs[machine] = Future()
            # Daemons: a session that is interrupted does not wait for them, and guests end with whoever started them.
            threading.Thread(target=_boot_in_turn, args=(places, run, lab, machine, tests), daemon=True).start()


def _boot_in_turn(places, run, lab, machine, tests):
    with places:
        try:
            run.set_result(_boot(lab, machine, tests))
        except BaseException as error:  # told to the tests that wait for it
            run.set_exception(error)


def _boot(lab, machine, tests):
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
    return reports, done.told


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
