"""`castmates workloads noise`: each workload alone for a while, and how its rate wanders."""

import os
from collections.abc import Mapping

from castmates.analysis.design.pilot import Wandering, wandering
from castmates.errors import CastmatesError
from castmates.machine.lock import machine_lock
from castmates.protocols import Say
from castmates.runner.cleanup.restore import heal_or_refuse
from castmates.runner.cleanup.warden import guarded
from castmates.study.model import Workload
from castmates.trials.workloads.check import Places, starter
from castmates.trials.workloads.promises import launched
from castmates.workloads import environments
from castmates.workloads.inputs import lack_of

WHAT = "castmates workloads noise"
WARM_UP = 2.0  # seconds that are left out


def measure_noise(workloads: Mapping[str, Workload], places: Places, seconds: float, say: Say) -> list[Wandering]:
    """Record these workloads one after the other; those that cannot be started here are an error."""
    environments.build(environments.NATIVE, places.envs, places.cache)
    rows: list[Wandering] = []
    with machine_lock(WHAT, say=say), guarded() as warden:
        heal_or_refuse(say)
        for number, (name, workload) in enumerate(workloads.items(), start=1):
            if (lack := lack_of(workload, places.envs, places.cache)) is not None and not lack.environment:
                raise CastmatesError(f"{name} is not here: {lack.what}; {lack.remedy}.")
            cpus = tuple(sorted(os.sched_getaffinity(0))[-workload.cores :])
            say(f"{number} of {len(workloads)}: {name}, {WARM_UP + seconds:.0f} s on CPU {', '.join(map(str, cpus))}")
            with launched(starter(name, workload, places, cpus), cpus, warden) as alone:
                alone.become_ready()
                beats = alone.record(WARM_UP, seconds)
            if len(beats) < 2:
                raise CastmatesError(
                    f"{name} made fewer than two steps in {seconds:.0f} s; give it longer (--seconds)."
                )
            if not (of_workload := wandering(name, beats)):
                say(f"{name}: too few windows with three steps; give it longer (--seconds)")
            rows += of_workload
    return rows
