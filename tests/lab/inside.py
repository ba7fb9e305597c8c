"""How a test comes into a guest and its outcome comes back."""

import atexit
import functools
import json
import os
import shlex
import shutil
import sys
import tempfile
import threading
import warnings
from concurrent.futures import Future
from pathlib import Path

import pytest

from castmates.workloads.native.build import FLAGS, SOURCES, compile_program, find_compiler
from tests.lab.kit.boot import boot
from tests.lab.kit.build import PROJECT
from tests.lab.shapes import SHAPES

INSIDE = "CASTMATES_INSIDE_LAB"  # set in a guest
PROGRAMS = "CASTMATES_LAB_PROGRAMS"  # set in a guest: where those are that it may install
AT_ONCE = 3  # guests: each has one busy CPU, or none while its tests wait
OWN_PROGRAMS = ("chase", "stream", "gather", "mix", "spin", "loop", "count", "known", "tax", "taxed")
MODELLED = PROJECT / "tests/lab/kit/modelled.h"
REPORTS = Path("/share/reports")
BOOTS = 3  # of one machine, at most
# Seconds, at most: emulation is slow, and who emulates may have little time.
PER_GUEST, PER_TEST, SILENCE = 240, 150, 300


class Guests:
    """Boots each machine once, with all the tests of the session that want it.

    One at a time while other tests run, more of them when there is nothing to do but to wait. What takes longest, a
    whole sweep, goes beside them: a test module does it in its function `aside`.
    """

    def __init__(self, lab):
        self._lab = lab
        self._runs = {}  # machine, or module -> a future of what came of it
        self._places, self._places_left = threading.Semaphore(1), 0

    def begin(self, items):
        if self._runs:
            return
        jobs, wanted = {}, {}
        for one in items:
            if hasattr(module := getattr(one, "module", None), "aside"):
                jobs[module.__name__] = module.aside
            if machine := getattr(one, "machine", ""):
                wanted.setdefault(machine, []).append(one.nodeid)
        jobs |= {machine: functools.partial(_boot, machine, tests) for machine, tests in wanted.items()}
        if jobs:
            lab = _in_a_thread(self._prepare)
            self._runs = {name: _in_a_thread(self._in_turn, job, lab) for name, job in jobs.items()}
            self._places_left = AT_ONCE - 1

    def result_of(self, name, items):
        self.begin(items)
        while self._places_left:
            self._places_left -= 1
            self._places.release()
        return self._runs[name].result()

    def reports_of(self, test):
        return self.result_of(test.machine, test.session.items)[0].get(test.nodeid, [])

    def told_by(self, machine):
        return self._runs[machine].result()[1]

    def _prepare(self):
        lab = self._lab()
        compiled()
        return lab

    def _in_turn(self, job, lab):
        with self._places:
            return job(lab.result())


def _in_a_thread(do, *given):
    """Begin it, and return its future; a session that is interrupted does not wait for it."""
    future = Future()

    def run():
        try:
            future.set_result(do(*given))
        except BaseException as error:  # also a test's skip or failure: passed on to the tests that wait for it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


@functools.cache
def compiled():
    """A folder of our programs for any x86-64: inside it takes long to compile, and there is less of a processor."""
    folder = Path(tempfile.mkdtemp(prefix="castmates-lab-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in OWN_PROGRAMS:
        compile_program(SOURCES / f"{name}.c", folder / name, find_compiler(), [*FLAGS, "-include", str(MODELLED)])
    return folder


def _boot(machine, tests, lab):
    """Run tests in a guest; where it ends before its tests do, those that are left run in another one.

    On a busy host the emulated machine hangs or panics now and then. A test that takes its guest down each time fails.
    """
    reports, told = {}, ""
    for attempt in range(1, BOOTS + 1):
        left = [test for test in tests if not _is_over(reports.get(test, []))]
        if not left:
            break
        if attempt > 1:
            warnings.warn(f"{machine} was booted again for {len(left)} tests, after: {told}", stacklevel=1)
        new, said = _boot_once(lab, machine, left)
        reports |= new
        told += f"guest {attempt} of {BOOTS}, for {len(left)} tests: {said}\n"
    return reports, told


def _is_over(reports):
    return any(report["when"] == "teardown" or report["outcome"] == "failed" for report in reports)


def _boot_once(lab, machine, tests):
    variables = {
        INSIDE: machine,
        PROGRAMS: str(lab.programs),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "CASTMATES_SEED": os.environ.get("CASTMATES_SEED", ""),
    }
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    python, project = shlex.quote(sys.executable), shlex.quote(str(PROJECT))
    command = f"cd {project} && {exports} exec {python} -m pytest -q -p no:cacheprovider @/share/tests"
    with tempfile.TemporaryDirectory(prefix="castmates-lab-") as folder:
        share = Path(folder)
        (share / "tests").write_text("\n".join(tests))
        shutil.copytree(compiled(), share / "compiled")
        longest = PER_GUEST + PER_TEST * len(tests)
        done = boot(lab, SHAPES[machine], command, share, longest, REPORTS.name, SILENCE)
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
        one.own_markers, one.location_of_test = test.own_markers, test.reportinfo()
        return one

    def runtest(self):
        reports = self.guests.reports_of(self)
        for report in reports:
            if report["outcome"] == "skipped":
                pytest.skip(report["text"])
            if report["outcome"] == "failed":
                raise FailedInGuest(f"{report['when']} failed on {self.machine}\n{report['text']}")
        if not _is_over(reports):
            raise FailedInGuest(f"{self.machine} did not come to this test's end: {self.guests.told_by(self.machine)}")

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, FailedInGuest):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.location_of_test  # a skip by a mark wants its line


class FailedInGuest(Exception):
    """What the guest's pytest printed of a test that failed."""


def write_report(report):
    """In a guest: leave for the host what it needs to know."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    text = "\n".join([text, *(f"--- {title}\n{content}" for title, content in report.sections)])
    line = {"test": report.nodeid, "when": report.when, "outcome": report.outcome, "text": text}
    with REPORTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
