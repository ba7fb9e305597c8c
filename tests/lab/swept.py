"""A study with a mask sweep, under Snakemake, in a guest whose cache obeys masks, and what became of it.

The guest measures. Programs come compiled, and the tables are made of its launches here: inside, each takes minutes.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from castmates.pipeline.analyse import Terms, write_tables
from castmates.report.results import Results, read_results
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from castmates.results.records import read_json
from castmates.study.model import Study
from castmates.study.reading import read_keys
from tests.lab.inside import compiled
from tests.lab.kit.boot import boot
from tests.lab.truth import Truth
from tests.workflow.sweeps import ROOT, Sweeps

LEAD, OTHER, LEADS_CPU, OTHERS_CPU = "near@1", "far@2", 1, 2  # the first core is the runner's own
ALL_WAYS = 12
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
    "attribution": {"isolated": "split-5"},
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
# By root, who can read the processor's registers too.
ROOTS = """
    mount -t resctrl resctrl /sys/fs/resctrl && python -c '{prepare}' --restore > /share/granted || exit
    {snakemake}
    code=$?
    umount /sys/fs/resctrl
"""
HOW = {"resctrl": RESCTRL, "pqos": PQOS, "root": ROOTS}
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
        terms = Terms(study.margin, study.attribution.isolated, read_json(folder.machine_file))
        write_tables(read_plan(folder.plan_file), folder, terms, folder.tables)
        return read_results(folder.path, study_file)


def sweep(lab, shape, driver, changes):
    """Sweep in a guest of this shape; the study is `STUDY` with these changes."""
    share = Path(tempfile.mkdtemp(prefix="castmates-sweep-"))
    atexit.register(shutil.rmtree, share, ignore_errors=True)
    sweeps = Sweeps.make(share / "project", share / "cache")
    cache = STUDY["cache"] | {"driver": "pqos" if driver == "pqos" else "resctrl"} | changes.get("cache", {})
    sweeps.write_study(STUDY | changes | {"cache": cache})
    shutil.copytree(compiled(), share / "compiled")
    python = Path(sys.executable)
    command = (BEGIN + HOW[driver] + END).format(
        prepare=PREPARE,
        snakemake=SNAKEMAKE,
        python=shlex.quote(str(python.parent)),
        programs=shlex.quote(str(lab.programs)),
        opened=shlex.join(map(str, [ROOT, python.parent, python.resolve().parent])),
    )
    done = boot(lab, shape, command, share, timeout=2400)
    return Swept(driver, share, done.code, done.told)


def table(share: Path, name: str) -> pd.DataFrame:
    """The rows of all launches."""
    return pd.concat(pd.read_parquet(file) for file in (share / "results/small/launches").glob(f"*/*/{name}.parquet"))
