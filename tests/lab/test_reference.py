"""The recorded answers of the kernels, from which the fake has learnt, are still those of the kernels in the lab."""

import difflib
import re
import shlex
import sys
import warnings
from pathlib import Path

import pytest

from tests.lab.kit.boot import boot
from tests.lab.kit.build import PROJECT
from tests.lab.shapes import SHAPES

RECORDED = Path(__file__).parents[1] / "data/resctrl"
OPERATION = re.compile(r"^(?P<what>.*\S) +-> (?P<outcome>\w+) +\| (?P<after>.*)$")
ATTEMPTS = 2  # on a busy host a process that has ended is listed a moment longer (seen once)
PROCESS = re.compile(r"<\w+>|\b\d{3,5}\b|\b0x[0-9a-f]{2,4}\b")


@pytest.mark.parametrize("series", ["6.1", "6.12", "7.2"])
def test_kernel_answers_as_recorded(lab, tmp_path, series):
    command = f"cd {shlex.quote(str(PROJECT))} && {shlex.quote(sys.executable)} -m tests.lab.kit.reference"
    recorded = operations((RECORDED / f"ref-{series}.txt").read_text())
    assert len(recorded) > 230
    for _ in range(ATTEMPTS):
        done = boot(lab, SHAPES[f"linux-{series}"], command, tmp_path, timeout=600)
        assert done.code == 0, done.told
        now = operations(done.stdout)
        differences = list(difflib.unified_diff(recorded, now, "recorded", "now", lineterm="", n=1))
        if not differences:
            return
        warnings.warn("\n".join(differences), stacklevel=1)
    pytest.fail("it differed each time: " + "\n".join(differences), pytrace=False)


def operations(transcript):
    """Each operation with its outcome, without what is another number each time: processes, and ids still in limbo."""
    found = []
    for line in transcript.splitlines():
        if operation := OPERATION.match(line):
            what, outcome, after = operation.groups()
            if "tasks" in what:
                what, after = PROCESS.sub("PID", what), PROCESS.sub("PID", after)
            found.append(f"{re.sub(r'/q[0-9]+$', '/qN', what)} -> {outcome} | {after}")
    return found
