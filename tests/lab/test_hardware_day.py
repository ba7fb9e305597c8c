"""A whole day on an emulated machine that obeys masks: its steps run in one process, in few and short windows.

An interpreter starts slowly there; counters and losses, which take minutes, have tests of their own; no sweep is begun.
"""

import atexit
import json
import shlex
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from tests.lab.inside import compiled
from tests.lab.kit.boot import boot
from tests.lab.kit.build import PROJECT
from tests.lab.shapes import SHAPES

GUEST = """
    export PYTHONPATH={project} PYTHONDONTWRITEBYTECODE=1 CASTMATES_CACHE=/tmp/cache
    mkdir /tmp/project && cd /tmp/project || exit
    look() {{ find /sys/fs/resctrl | sort; cat /proc/mounts; pgrep -x "chase|stream"; }}
    look > /share/before 2>&1
    {python} /share/day.py > /share/said 2>&1
    code=$?
    look > /share/after 2>&1
    cp -a day /share
    exit $code
"""

# `DAY` is what runs in the guest.
DAY = """
import contextlib, sys, time
from dataclasses import replace
from pathlib import Path

from castmates.hardware_day import day, doctor, sweep
from castmates.hardware_day.steps import Ended
from castmates.trials import capture, memory_peak
from castmates.trials.rdt import eviction, isolation, programs, throttles, trial

for module in (capture, trial, memory_peak):
    module.environments.build = lambda *_: Path("/share")
programs.WINDOW_S, programs.OCCUPIED_S, programs.MOVED_S, programs.FEWEST_BEATS = 0.02, 0.1, 0.02, 4
throttles.MOST_STEPS, throttles.RULE, trial.MEMBERS = 2, replace(throttles.RULE, looks=(4,)), 99
for part, looks in ((isolation, (8, 16)), (eviction, (4,))):
    part.RULE = replace(part.RULE, looks=replace(part.RULE.looks, at=looks))
memory_peak.ladder, memory_peak.WARM_UP_S, memory_peak.MEASURED_S = lambda _: [1], 0.02, 0.1
capture.WARM_UP_S, capture.SECONDS = 0.02, 0.1
sweep.SIZES, sweep.PARTS = (3,), (1,)
begun = time.time()


def say(line):
    print(f"{time.time() - begun:.0f} s {line}", flush=True)


def bounded(words, log, seconds, say, folder=None, aloud=True):
    if {"--verify-counters", "--truth"} & {*words} or words[0] == "sweep":
        return Ended(None, "", "its time was over.")
    from castmates.cli.main import app

    out = log.open("w+")
    with contextlib.chdir(folder or "."), contextlib.redirect_stdout(out):
        try:
            app(words, standalone_mode=False)
        except Exception as problem:
            return Ended(1, "", str(problem))
    out.seek(0)
    return Ended(0, out.read(), "")


doctor.bounded = sweep.bounded = bounded
sys.exit(0 if day.spend(Path("day"), 600, False, say) else 1)
"""


def aside(lab):
    """Spend the day in a guest; return the folder of what it left, and its output."""
    share = Path(tempfile.mkdtemp(prefix="castmates-day-"))
    atexit.register(shutil.rmtree, share, ignore_errors=True)
    shutil.copytree(compiled(), share / "bin")
    (share / "day.py").write_text(DAY)
    command = GUEST.format(project=shlex.quote(str(PROJECT)), python=shlex.quote(sys.executable))
    return share, boot(lab, SHAPES["obeying"], command, share, timeout=1800)


@pytest.fixture(scope="module")
def spent(beside):
    """What the guest left."""
    share, done = beside
    said = (share / "said").read_text() if (share / "said").exists() else ""
    assert done.code == 1, done.told + said  # three steps are left to other tests, and count as failed
    return share


def noted(spent):
    return json.loads((spent / "day/steps.json").read_text())


def test_masks_that_hold_are_found_and_what_could_not_be_done_ends_no_day(spent):
    statuses = {name: one["status"] for name, one in noted(spent)["steps"].items()}
    assert statuses == {
        "capture": "done", "memory-peak": "done", "verify-counters": "failed", "verify-rdt": "done", "truth": "failed",
        "sweep": "failed",
    }, (spent / "said").read_text()  # fmt: skip
    parts = json.loads((spent / "day/rdt.json").read_text())["parts"]
    assert (parts["masks"]["verdict"], parts["isolation"]["verdict"]) == ("works", "isolated"), parts


def test_page_and_bundle_say_that_it_is_no_hardware(spent):
    assert 'stamp other">emulated, not hardware' in (spent / "day/index.html").read_text()
    with tarfile.open(spent / "day/bundle.tar.gz") as archive:
        names = set(archive.getnames())
    assert {"machine.json.gz", "rdt.json", "memory-peak.json", "index.html", "steps.json", "study.yaml"} <= names


def test_the_machine_is_left_as_it_was(spent):
    restored = noted(spent)["restored"]
    assert restored.startswith("Everything is as it was before"), restored
    assert (spent / "after").read_text() == (spent / "before").read_text()
