"""Launches of small real programs, for tests of the runner."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from castmates import project
from castmates.machine.topology import read_topology
from castmates.pipeline.measure_launch import measure_launch
from castmates.study import mixes, planning
from castmates.study.model import Study, Workload
from castmates.study.scenes import scenes_of
from castmates.study.spec import Cohort, Mix, Partition, Plan, Prepared
from castmates.workloads import environments

PYTHON = sys.executable
# Counts in a tight loop and beats about a thousand times a second.
COUNTER = """
import os, sys, time
from castmates.workloads.heartbeat import Writer
print("cpus", sorted(os.sched_getaffinity(0)), "threads", os.environ.get("OMP_NUM_THREADS"), flush=True)
beat = Writer.from_environment()
beat.ready()
steps, end = 0, float(sys.argv[1]) if len(sys.argv) > 1 else 1e9
start = time.monotonic()
while time.monotonic() - start < end:
    for _ in range(20000):
        steps += 1
    beat.beat()
sys.exit(7)
"""
# The runner's own machine is noisy and shared: nothing may be rejected for what others do, unless nothing moves at all.
LIMITS = {"steal": 1, "foreign": 1, "neighbours": 1, "restart_gap": 1, "silence": 0.95}


def counter(seconds: float | None = None, **keys: object) -> Workload:
    words = [PYTHON, "-c", COUNTER, *([str(seconds)] if seconds else [])]
    return Workload.model_validate({"command": words, "progress": "heartbeat", "unit": "step", **keys})


def build_native(cache: Path) -> str:
    environments.build("native", Path("envs"), cache)
    return environments.key("native", Path("envs"))


def plan_of(
    programs: dict[str, Workload],
    antagonists: list[str],
    cache: Path,
    counters: dict[str, object] | None = None,
    **budget: object,
) -> Plan:
    """A study of the lead `lead` beside these antagonists, placed on this machine."""
    key = build_native(cache)
    small = {
        "launches": 1,
        "rounds": 2,
        "window": 0.1,
        "settle": 0.02,
        "longest_window": 1.0,
        "longest_settle": 0,
    } | budget
    study = Study.model_validate(
        {
            "name": "test",
            "leads": ["lead"],
            "antagonists": antagonists,
            "budget": small,
            "limits": LIMITS,
            "controls": None,
            "counters": {"cost_pairs": 0} | (counters or {}),
        }
    )
    layout = project.layout_of(read_topology())
    prepared = dict.fromkeys(programs, Prepared(environment_key=None, content="c"))
    cast = mixes.resolve(study, mixes.Programs(programs, prepared, "p"), mixes.Host(layout), "test.yaml")
    return planning.extend(study, cast, dict.fromkeys(programs, ""), key)


def measured(plan: Plan, folder: Path, cache: Path) -> dict[str, Any]:
    """Measure the first launch of a plan; its record."""
    measure_launch(plan, plan.launches[0].path, folder, cache)
    return json.loads((folder / "launch.json").read_text())


def tables(folder: Path, *names: str) -> list[pd.DataFrame]:
    """What a launch left."""
    return [pd.read_parquet(folder / f"{name}.parquet") for name in names]


def with_cohort(plan: Plan, cohort: Cohort) -> Plan:
    """The plan with another cohort in its only launch."""
    (one,) = plan.launches
    return plan.model_copy(update={"launches": (one.model_copy(update={"cohort": cohort}),)})


def under(plan: Plan, partition: Partition) -> Plan:
    """The plan with its co-run under a partition too."""
    (cohort,) = plan.cohorts
    (mix,) = cohort.mixes
    more = Mix.model_validate(mix.model_dump() | {"identity": "under", "partitions": (partition,)})
    members = {member.name: member for member in cohort.members}
    return with_cohort(
        plan, cohort.model_copy(update={"mixes": (mix, more), "scenes": scenes_of((mix, more), members)})
    )


# Three phases that follow each other and one inside another; each step touches 100 new pages in its second phase.
JOB = """
import mmap, time
from castmates.workloads.heartbeat import Writer
from castmates.workloads.phases import mark, phase

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

beat = Writer.from_environment()
beat.ready()
step = 0
while True:
    with phase("input", step=step):
        spin(0.001)
    with phase("forward", step=step):
        memory = mmap.mmap(-1, 4096 * 100)
        for page in range(100):
            memory[4096 * page] = 1
        memory.close()
        with phase("attention"):
            spin(0.002)
    mark("optimizer", step)
    spin(0.001)
    mark()
    beat.beat()
    step += 1
"""


def python_job(code: str, **keys: object) -> Workload:
    keys = {"command": [PYTHON, "-c", code], "progress": "heartbeat", "unit": "step", "phases": True} | keys
    return Workload.model_validate(keys)
