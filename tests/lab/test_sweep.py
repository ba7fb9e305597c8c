"""A study with a mask sweep, under Snakemake, on an emulated processor whose cache obeys masks.

What is found is compared with what the emulator says happened.

The guest measures. Programs come compiled, and the tables are made of its launches here: inside, each takes minutes.
"""

import atexit
import json
import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest

from castmates.pipeline.analyse import Terms, write_tables
from castmates.report.page.page import page, shown
from castmates.report.results import Results, read_results
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.records import read_json
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.lab.inside import compiled
from tests.lab.kit.boot import boot
from tests.lab.shapes import SHAPES
from tests.lab.truth import LINE, Truth
from tests.workflow.sweeps import ROOT, Sweeps

NOBODY = 65534
LEAD, OTHER, LEADS_CPU, OTHERS_CPU = "near@1", "far@2", 1, 2  # the first core is the runner's own
ALL_WAYS, ENOUGH = 12, 4  # a huge page fills four ways of each set
KERNEL = {"environment": "native", "progress": "heartbeat", "memory": "0.1 GB"}
WORKLOADS = {
    # A beat in 10 ms: the ring of heartbeats is 1 MiB, and who fills it faster is long in filling the cache.
    "near": {
        "title": "a huge page",
        "command": "mix chase:30000:2M",
        "options": {"huge": True},
        "unit": "round",
        **KERNEL,
    },
    "far": {
        "title": "four times the cache",
        "command": "stream",
        "options": {"bytes": "24M", "mode": "read"},
        "unit": "MiB",
        **KERNEL,
    },
}
NIGHTLY = os.environ.get("CASTMATES_LAB") == "all"
WAYS = (2, 3, 4, 5, 6, 8) if NIGHTLY else (3, 4, 5)
STUDY = {
    "workloads": WORKLOADS,
    "leads": ["near"],
    "antagonists": ["far"],
    "cache": {"sweeps": [{"split": list(WAYS)}, {"lead_ways": [2]}], "monitor": 10},
    "budget": {
        "launches": 3,
        "rounds": 1,
        "spare_rounds": 1,
        "window": 0.3,
        "settle": 0.05,
        "longest_window": 1.0,
        "longest_settle": 0,
    },
    # An emulated CPU is one of the host's threads: what it loses to others there looks like silence here.
    "limits": {"steal": "100%", "foreign": "100%", "neighbours": "100%", "silence": "100%"},
}
PARTITIONS = {"unmanaged": (ALL_WAYS, ALL_WAYS), "lead-2": (2, ALL_WAYS)}
PARTITIONS |= {f"split-{ways}": (ways, ALL_WAYS - ways) for ways in WAYS}
# By driver and seed; at landings the first.
SWEEPS = [(driver, seed) for driver in ("resctrl", "pqos") for seed in (1, 2, 3)]
SWEEPS = SWEEPS if NIGHTLY else SWEEPS[:1]

# In the guest's memory: the folder that it shares with the host is slow and has no mmap. Folders above the
# project and Python may be closed to others: what is opened inside goes with the guest.
BEGIN = """
    export PATH={python}:$PATH PYTHONDONTWRITEBYTECODE=1 CASTMATES_CACHE=/tmp/cache
    cp -a project /tmp && cd /tmp/project || exit
    look() {{ find /sys/fs/resctrl -maxdepth 1 | sort; cat /sys/fs/resctrl/schemata /proc/mounts; }}
    look > /share/before 2>&1
"""
# By a plain user, to whom root grants what a sweep needs.
RESCTRL = """
    for place in {opened}; do
        while [ "$place" != / ]; do chmod o+rx "$place"; place=$(dirname "$place"); done
    done
    chown -R nobody /tmp/project && chmod 1777 /tmp /dev/shm /run/lock || exit
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp/project USER=nobody \
        bash -c 'kill -STOP $$; {snakemake}' &
    shell=$!
    until grep -q "^State:.*T" /proc/$shell/status; do sleep 0.1; done
    python -c '{prepare}' --grant --user nobody --shell $shell > /share/granted || exit
    chown -R nobody /tmp/cache
    kill -CONT $shell
    wait $shell
    code=$?
"""
# By root, as pqos needs it, which Debian's package installs.
PQOS = """
    cp -a {programs}/. / && ldconfig && python -c '{prepare}' --restore > /share/granted || exit
    {snakemake}
    code=$?
"""
END = """
    cp -a results logs /share
    python -m castmates doctor --undo > /share/undone || exit
    look > /share/after 2>&1
    exit $code
"""
SNAKEMAKE = "snakemake --cores 4 --show-failed-logs --until measure_launch"
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


@dataclass(frozen=True)
class Swept:
    """A sweep, the folder of what it left, and how its guest ended."""

    driver: str
    share: Path
    code: int | None
    told: str

    @cached_property
    def windows(self) -> pd.DataFrame:
        return table(self.share, "windows")

    @cached_property
    def truth(self) -> Truth:
        return Truth(self.share / "truth.csv", LEADS_CPU, OTHERS_CPU)

    @cached_property
    def results(self) -> Results:
        """What was measured, with its tables."""
        study_file, folder = self.share / "project/config/config.yaml", StudyFolder(self.share / "results/small")
        study = read_keys(Study, study_file.read_text(), str(study_file))
        terms = Terms(study.margin, machine=read_json(folder.machine_file))
        write_tables(read_plan(folder.plan_file), folder, terms, folder.tables)
        return read_results(folder.path, study_file)


def aside(lab):
    """Run the sweeps, each in a guest."""
    return {(driver, seed): _sweep(lab, driver, seed) for driver, seed in SWEEPS}


def _sweep(lab, driver, seed):
    share = Path(tempfile.mkdtemp(prefix="castmates-sweep-"))
    atexit.register(shutil.rmtree, share, ignore_errors=True)
    sweeps = Sweeps.make(share / "project", share / "cache")
    sweeps.write_study(STUDY | {"seed": seed, "cache": STUDY["cache"] | {"driver": driver}})
    shutil.copytree(compiled(), share / "compiled")
    python = Path(sys.executable)
    command = (BEGIN + {"resctrl": RESCTRL, "pqos": PQOS}[driver] + END).format(
        prepare=PREPARE,
        snakemake=SNAKEMAKE,
        python=shlex.quote(str(python.parent)),
        programs=shlex.quote(str(lab.programs)),
        opened=shlex.join(map(str, [ROOT, python.parent, python.resolve().parent])),
    )
    done = boot(lab, SHAPES["server"], command, share, timeout=2400)
    return Swept(driver, share, done.code, done.told)


@pytest.fixture(scope="module", params=SWEEPS, ids=lambda sweep: f"{sweep[0]}-{sweep[1]}")
def swept(request, beside):
    """One sweep."""
    found = beside[request.param]
    assert found.code == 0, found.told
    return found


@pytest.fixture(scope="module")
def plain(beside):
    """That of a plain user."""
    found = beside[SWEEPS[0]]
    assert found.code == 0, found.told
    return found


def table(share: Path, name: str) -> pd.DataFrame:
    """The rows of all launches."""
    return pd.concat(pd.read_parquet(file) for file in (share / "results/small/launches").glob(f"*/*/{name}.parquet"))


def test_every_window_carries_the_masks_that_were_read_back(swept):
    windows = swept.windows
    assert set(windows.partition) == set(PARTITIONS)
    for partition, ways in PARTITIONS.items():
        for member, wanted in zip((LEAD, OTHER), ways, strict=True):
            rows = windows[(windows.partition == partition) & (windows.member == member)]
            assert (rows.ways == wanted).all(), (partition, member, rows.ways.tolist())
            assert rows.schemata.str.contains("L3:0=").all()
    assert windows.valid.any(), windows.reasons.value_counts()  # how many depends on what else the host does
    assert set(windows.platform) == {"emulated"}


def test_readings_are_what_the_emulator_counted(swept):
    """What the lead holds beside the other, what it moves and what it misses in a second."""
    truth, key = swept.truth.by_ways(beside=True), ["launch", "window"]
    corun = swept.windows[(swept.windows.kind == "corun") & swept.windows.valid & (swept.windows.member == LEAD)]
    of_lead = corun[[*key, "partition"]].drop_duplicates()
    samples = table(swept.share, "samples").query("subject == @LEAD").merge(of_lead, on=key)
    read = samples.groupby(["partition", "metric"]).value.median().fillna(0)  # pqos shows no 0
    counts = table(swept.share, "counters").query("member == @LEAD").merge(of_lead, on=key)
    counted = counts.groupby(["partition", "event"]).value.sum()
    for partition in of_lead.partition.unique():
        happened = truth.loc[PARTITIONS[partition][0]]
        misses = 1e9 * counted[partition, "cache-misses"] / counted[partition, "task-clock"]
        assert misses == pytest.approx(happened.misses, rel=0.1, abs=3000), partition
        moved, held = LINE * (happened.read + happened.written), LINE * happened.lines
        # pqos counts in tenths of a MiB by CPU, and runs itself: what just fits is disturbed by it.
        beside_it = 2**20 if swept.driver == "resctrl" else 2**22
        assert read[partition, "mbm_total"] == pytest.approx(moved, rel=0.05, abs=beside_it), partition
        if swept.driver == "resctrl":  # pqos gives ids to what is filled from then on
            assert read[partition, "llc_occupancy"] == pytest.approx(held, rel=0.01, abs=2**16), partition


def test_losses_are_those_that_the_emulator_counted(swept):
    """The lead's rate under each partition, against its rate alone."""
    beside, alone = swept.truth.by_ways(beside=True), swept.truth.by_ways(beside=False)
    effects = swept.results.effects
    rows = effects[(effects.member == LEAD) & (effects.baseline == "alone") & (effects.antagonists != "")]
    assert set(rows.partition) == set(PARTITIONS) - {"lead-2"}
    for row in rows.itertuples():
        truth = beside.asked[PARTITIONS[row.partition][0]] / alone.asked[ALL_WAYS]
        assert 1 / row.slowdown == pytest.approx(truth, rel=0.02, abs=0.005), row.partition


def test_the_ways_that_are_recommended_are_those_that_are_enough(swept):
    beside, alone = swept.truth.by_ways(beside=True), swept.truth.by_ways(beside=False)
    kept = beside.asked[list(WAYS)] / alone.asked[ALL_WAYS]
    enough = max(kept.index[kept < 0.95]) + 1
    (advice,) = swept.results.recommendations.itertuples()
    assert advice.verdict == "knee"
    assert abs(int(advice.partition.removeprefix("split-")) - enough) <= 1
    assert enough == ENOUGH + 1  # what else the lead touches needs some of a fifth way


def test_every_window_has_the_kernels_readings_of_its_members(plain):
    samples, key = table(plain.share, "samples"), ["launch", "window"]
    occupancy = samples[(samples.metric == "llc_occupancy") & (samples.source == "resctrl") & samples.value.notna()]
    readings = occupancy.groupby([*key, "subject"]).size()
    measured = plain.windows[plain.windows.valid].groupby([*key, "member"]).size()
    placebos = measured.index.get_level_values("member").str.startswith("placebo")
    assert set(measured.index[~placebos]) <= set(readings.index)
    assert readings.median() >= 3


def test_results_are_stamped_emulated(plain):
    effects = plain.results.effects
    assert set(effects.platform) == {"emulated"}
    of_partition = effects[(effects.partition == "split-3") & (effects.member == LEAD)]
    assert set(of_partition.lead_ways) == {3}
    assert {"alone", "placebo", "placebo@mask", "unmanaged"} <= set(of_partition.baseline)
    words = page(plain.results, dict.fromkeys(shown(plain.results), "<svg></svg>"))
    assert "Emulated: a real kernel, but its processor is a model" in words


def test_the_sweep_was_a_plain_users(plain):
    record = json.loads(next((plain.share / "results/small/launches").glob("*/*/launch.json")).read_text())
    assert record["freezer"] == "cgroup", record["freezer"]
    assert (plain.share / "results/small/plan.json").stat().st_uid == NOBODY
    assert "resctrl is mounted" in (plain.share / "granted").read_text()


def test_what_was_changed_is_taken_back(swept):
    assert "schemata: No such file" in (swept.share / "before").read_text()
    assert (swept.share / "after").read_text() == (swept.share / "before").read_text()
