"""A study with a mask sweep, under Snakemake, by a plain user, on the real resctrl of an emulated machine.

The guest measures. Programs come compiled, and the tables are made of its launches here: inside, each takes minutes.
"""

import atexit
import json
import shlex
import shutil
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from castmates.pipeline.analyse import Terms, write_tables
from castmates.report.page.page import page, shown
from castmates.report.results import read_results
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.records import read_json
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.lab.inside import compiled
from tests.lab.kit.boot import boot
from tests.lab.shapes import SHAPES
from tests.workflow.sweeps import ROOT, Sweeps

NOBODY = 65534
LEAD, OTHER = "chase@1", "stream@2"  # the first core is the runner's own
STUDY = {
    "cache": {"sweeps": [{"split": [3, 8]}, {"lead_ways": [2]}], "monitor": 20},
    "budget": {
        "launches": 1,
        "rounds": 2,
        "spare_rounds": 1,
        "window": 0.5,
        "settle": 0.1,
        "longest_window": 3.0,
        "longest_settle": 0,
    },
    # An emulated CPU is one of the host's threads: what it loses to others there looks like silence here.
    "limits": {"steal": "100%", "foreign": "100%", "neighbours": "100%", "silence": "100%"},
}
WAYS = {"unmanaged": (12, 12), "split-3": (3, 9), "split-8": (8, 4), "lead-2": (2, 12)}


# In the guest's memory: the folder that it shares with the host is slow and has no mmap. Folders above the
# project and Python may be closed to others: what is opened inside goes with the guest.
GUEST = """
    export PATH={python}:$PATH PYTHONDONTWRITEBYTECODE=1 CASTMATES_CACHE=/tmp/cache
    for place in {opened}; do
        while [ "$place" != / ]; do chmod o+rx "$place"; place=$(dirname "$place"); done
    done
    cp -a project /tmp && chown -R nobody /tmp/project
    chmod 1777 /tmp /dev/shm /run/lock && cd /tmp/project || exit
    look() {{ find /sys/fs/resctrl -maxdepth 1 | sort; cat /sys/fs/resctrl/schemata /proc/mounts; }}
    look > /share/before 2>&1
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp/project USER=nobody \
        bash -c 'kill -STOP $$; snakemake --cores 4 --show-failed-logs --until measure_launch' &
    shell=$!
    until grep -q "^State:.*T" /proc/$shell/status; do sleep 0.1; done
    python -c '{prepare}' --grant --user nobody --shell $shell > /share/granted || exit
    chown -R nobody /tmp/cache
    kill -CONT $shell
    wait $shell
    code=$?
    cp -a results logs /share
    python -m castmates doctor --undo > /share/undone || exit
    look > /share/after 2>&1
    exit $code
"""


# One Python for both, because it starts slowly.
PREPARE = """
import shutil, sys
from pathlib import Path
from castmates.cli import main
from castmates.workloads import environments
place = environments.location("native", Path("envs"), Path("/tmp/cache"))
shutil.copytree("/share/compiled", place / "bin")
environments.ready_file(place).write_text("{}")
sys.argv[:1] = ["castmates", "doctor"]
main.main()
"""


def aside(lab):
    """Run the sweep in a guest; return the folder of what it left, and its output."""
    share = Path(tempfile.mkdtemp(prefix="castmates-sweep-"))
    atexit.register(shutil.rmtree, share, ignore_errors=True)
    sweeps = Sweeps.make(share / "project", share / "cache")
    sweeps.write_study(STUDY)
    shutil.copytree(compiled(), share / "compiled")
    python = Path(sys.executable)
    opened = shlex.join(map(str, [ROOT, python.parent, python.resolve().parent]))
    command = GUEST.format(prepare=PREPARE, python=shlex.quote(str(python.parent)), opened=opened)
    shape = replace(SHAPES["linux-6.12"], memory=3072, parallel=True)
    done = boot(lab, shape, command, share, timeout=1800)
    if done.code is None and "Oops" in done.console:  # a panic of the emulated machine, see Shape
        warnings.warn(f"the sweep was begun again, after: {done.told}", stacklevel=1)
        done = boot(lab, shape, command, share, timeout=1800)
    return share, done


@pytest.fixture(scope="module")
def swept(beside):
    """The folder of results."""
    share, done = beside
    assert done.code == 0, done.told
    return share


@pytest.fixture(scope="module")
def results(swept):
    """What was measured, with its tables."""
    study_file, folder = swept / "project/config/config.yaml", StudyFolder(swept / "results/small")
    study = read_keys(Study, study_file.read_text(), str(study_file))
    terms = Terms(study.margin, machine=read_json(folder.machine_file))
    write_tables(read_plan(folder.plan_file), folder, terms, folder.tables)
    return read_results(folder.path, study_file)


@pytest.fixture(scope="module")
def windows(swept):
    return table(swept, "windows")


def table(swept: Path, name: str) -> pd.DataFrame:
    """The rows of all launches."""
    return pd.concat(pd.read_parquet(file) for file in (swept / "results/small/launches").glob(f"*/*/{name}.parquet"))


def test_every_window_carries_the_masks_that_the_kernel_read_back(windows):
    assert set(windows.partition) == set(WAYS)
    for partition, ways in WAYS.items():
        for member, wanted in zip((LEAD, OTHER), ways, strict=True):
            rows = windows[(windows.partition == partition) & (windows.member == member)]
            assert (rows.ways == wanted).all(), (partition, member, rows.ways.tolist())
            assert rows.schemata.str.contains("L3:0=").all()
    assert windows.valid.any(), windows.reasons.value_counts()  # how many depends on what else the host does
    assert set(windows.platform) == {"emulated"}


def test_occupancy_series_come_from_the_kernel(swept, windows):
    samples, slices = table(swept, "samples"), table(swept, "slices")
    occupancy = samples[(samples.metric == "llc_occupancy") & (samples.source == "resctrl")]
    assert {LEAD, OTHER} <= set(occupancy.subject)
    readings = occupancy[occupancy.value.notna()].groupby(["window", "subject"]).size()
    # What was read in a watched slice that does not count is left out of a window that has slices that do.
    active = slices[slices.watched & slices.counted].groupby("window").member.unique()
    assert len(active) > 0
    assert {(window, member) for window, members in active.items() for member in members} <= set(readings.index)
    valid = windows.groupby("window").valid.all()
    read = set(readings.index.get_level_values("window"))
    assert read & set(valid.index[valid]) == set(active.index) & set(valid.index[valid])
    assert readings.median() >= 3
    assert occupancy.value.max() > 0


def test_results_are_stamped_emulated(swept, results):
    effects = pd.read_csv(swept / "results/small/tables/effects.csv")
    assert set(effects.platform) == {"emulated"}
    of_partition = effects[(effects.partition == "split-3") & (effects.member == LEAD)]
    assert set(of_partition.lead_ways) == {3}
    assert {"alone", "placebo", "placebo@mask", "unmanaged"} <= set(of_partition.baseline)
    words = page(results, dict.fromkeys(shown(results), "<svg></svg>"))
    assert "cache occupancy and counters are invented. This is not a measurement" in words


def test_the_sweep_was_a_plain_users(swept):
    record = json.loads(next((swept / "results/small/launches").glob("*/*/launch.json")).read_text())
    assert record["freezer"] == "cgroup", record["freezer"]
    assert (swept / "results/small/plan.json").stat().st_uid == NOBODY


def test_what_was_granted_is_taken_back(swept):
    assert "resctrl is mounted" in (swept / "granted").read_text()
    assert "schemata: No such file" in (swept / "before").read_text()
    assert (swept / "after").read_text() == (swept / "before").read_text()
