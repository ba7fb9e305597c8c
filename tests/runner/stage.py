"""Blocks of small real programs, for tests of the runner."""

import sys
from pathlib import Path

from castmates import project
from castmates.machine.topology import read_topology
from castmates.study import mixes, planning
from castmates.study.model import Study, Workload
from castmates.study.spec import Plan, Prepared
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
# The runner's own machine is noisy and shared: nothing may be rejected for what others do.
LIMITS = {"steal": 1, "foreign": 1, "neighbours": 1}


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
        "blocks": 1,
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
    cast = mixes.resolve(study, programs, layout, prepared, "p", "test.yaml")
    return planning.extend(study, cast, dict.fromkeys(programs, ""), key)
