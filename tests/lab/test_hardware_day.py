"""A whole day on an emulated machine that obeys masks: its steps run in one process, in few and short windows.

Interpreters start slowly there, so the steps are forked from one.
"""

import atexit
import json
import shlex
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from tests.lab.inside import compiled
from tests.lab.kit.boot import boot
from tests.lab.kit.build import PROJECT
from tests.lab.shapes import SHAPES

GUEST = """
    export PYTHONPATH={project} PYTHONDONTWRITEBYTECODE=1 CASTMATES_CACHE=/tmp/cache
    export PATH={folder}:$PATH
    cp -r /share/bin /tmp && mkdir /tmp/project && cd /tmp/project || exit
    look() {{ find /sys/fs/resctrl | sort; cat /proc/mounts; pgrep -x "chase|stream"; }}
    look > /share/before 2>&1
    {python} /share/day.py > /share/said 2>&1
    code=$?
    look > /share/after 2>&1
    cp -a day /share
    exit $code
"""

# `DAY` is what runs in the guest: the steps are forked from one interpreter, because each takes long to start.
DAY = """
import contextlib, os, sys, time
from dataclasses import replace
from pathlib import Path

from castmates.cli.main import app
from castmates.hardware_day import day, doctor, sweep
from castmates.hardware_day.steps import Ended, bounded
from castmates.rdt.resctrl import mounting
from castmates.trials import capture, known_losses, memory_peak
from castmates.trials.counters import program, table
from castmates.trials.rdt import eviction, isolation, programs, throttles, trial
from castmates.workloads import environments

place = environments.location("native", Path("{project}/envs"), Path("/tmp/cache"))
place.mkdir(parents=True)
os.symlink("/tmp/bin", place / "bin")
environments.ready_file(place).write_text("{{}}")

programs.WINDOW_S, programs.OCCUPIED_S, programs.MOVED_S, programs.FEWEST_BEATS = 0.02, 0.1, 0.02, 4
throttles.MOST_STEPS, throttles.RULE, trial.MEMBERS = 2, replace(throttles.RULE, looks=(4,)), 99
for part, looks in ((isolation, (8, 16)), (eviction, (4,))):
    part.RULE = replace(part.RULE, looks=replace(part.RULE.looks, at=looks))
memory_peak.ladder, memory_peak.WARM_UP_S, memory_peak.MEASURED_S = lambda _: [1], 0.05, 0.3
capture.WARM_UP_S, capture.SECONDS = 0.02, 0.1
FEW = [replace(one, pairs=3) for one in (*program.SOFTWARE, *program.CORE) if one.task in ("kernel-touch", "spin")]
table.trials = lambda *_: FEW
try_one = table.try_one
table.try_one = lambda *given: try_one(*given, perf_stat=False)
known_losses.SHORT = {{"budget": known_losses.SHORT["budget"] | {{"rounds": 1, "window": 0.1}}}}
known_losses.LOSSES = (0.0, 0.05)
sweep.SIZES, sweep.PARTS, day.TRUTH_MINUTES = (3,), (4,), 1
# Four ways of data and few beats, whose ring is larger than this cache; Python takes ten times as long here.
changes = {{
    "leads": ["chase-half"],
    "workloads": {{"chase-half": {{
        "command": "mix chase:30000:256K", "environment": "native", "progress": "heartbeat", "memory": "0.1 GB",
    }}}},
    "controls": None,
    "budget": {{"launches": 3, "rounds": 1, "spare_rounds": 1, "window": 0.2}},
    "limits": dict.fromkeys(("steal", "foreign", "neighbours", "silence"), "100%"),
}}
shipped = sweep._study
sweep._study = lambda text: shipped(text) | changes
begun = time.time()


def say(line):
    print(f"{{time.time() - begun:.0f}} s {{line}}", flush=True)


def forked(words, log, seconds, say, folder=None, aloud=True):
    if words[0] != "doctor":
        return bounded(words, log, 10 * seconds, say, folder, aloud)
    say(" ".join(words))
    printed = log.with_suffix(".printed")
    child = os.fork()
    if not child:
        code = 1
        mounting._leases.clear()
        with printed.open("w") as out, log.open("w") as errors:
            os.dup2(out.fileno(), 1), os.dup2(errors.fileno(), 2)
            try:
                code = app(words, standalone_mode=False) or 0
            except BaseException as problem:
                print(f"castmates: {{problem!r}}", file=sys.stderr, flush=True)
            sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(code, printed.read_text(), log.read_text() if code else "")


doctor.bounded = sweep.bounded = forked
sys.exit(0 if day.spend(Path("day"), 600, False, say) else 1)
"""


def aside(lab):
    """Spend the day in a guest; return the folder of what it left, and its output."""
    share = Path(tempfile.mkdtemp(prefix="castmates-day-"))
    atexit.register(shutil.rmtree, share, ignore_errors=True)
    shutil.copytree(compiled(), share / "bin")
    (share / "day.py").write_text(DAY.format(project=PROJECT))
    command = GUEST.format(
        project=shlex.quote(str(PROJECT)),
        python=shlex.quote(sys.executable),
        folder=shlex.quote(str(Path(sys.executable).parent)),
    )
    return share, boot(lab, SHAPES["obeying"], command, share, timeout=3600)


@pytest.fixture(scope="module")
def spent(beside):
    """What the guest left."""
    share, done = beside
    said = (share / "said").read_text() if (share / "said").exists() else ""
    assert done.code == 0, done.told + said
    return share


def noted(spent):
    return json.loads((spent / "day/steps.json").read_text())


def test_each_step_is_done_and_masks_that_hold_are_found(spent):
    statuses = {name: one["status"] for name, one in noted(spent)["steps"].items()}
    assert set(statuses.values()) == {"done"}, (spent / "said").read_text()
    parts = json.loads((spent / "day/rdt.json").read_text())["parts"]
    assert (parts["masks"]["verdict"], parts["isolation"]["verdict"]) == ("works", "isolated"), parts


def test_losses_are_found_and_what_masks_take_from_the_lead(spent):
    truth = json.loads((spent / "day/truth.json").read_text())
    assert truth["verdict"] == "found", truth
    effects = pd.read_csv(spent / "day/tables/effects.csv", index_col="partition")
    own = effects[effects.member.str.startswith("chase") & effects.antagonists.notna() & (effects.baseline == "alone")]
    # Its four ways of data stay in the cache beside the stream, and do not fit into three ways.
    assert (own.verdict["unmanaged"], own.verdict["split-3"]) == ("no loss", "loss"), own


def test_page_and_bundle_say_that_it_is_no_hardware(spent):
    assert 'stamp other">emulated, not hardware' in (spent / "day/index.html").read_text()
    with tarfile.open(spent / "day/bundle.tar.gz") as archive:
        names = set(archive.getnames())
    assert {"machine.json.gz", "rdt.json", "memory-peak.json", "index.html", "steps.json", "study.yaml"} <= names


def test_the_machine_is_left_as_it_was(spent):
    restored = noted(spent)["restored"]
    assert restored.startswith("Everything is as it was before"), restored
    assert (spent / "after").read_text() == (spent / "before").read_text()
