"""`castmates workloads check`: each workload alone for a few seconds, and every promise of it tried."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from castmates.errors import CastmatesError
from castmates.machine.lock import machine_lock
from castmates.protocols import Say
from castmates.runner.cleanup.restore import heal_or_refuse
from castmates.runner.cleanup.warden import Warden, guarded
from castmates.runner.processes.launch import Start, WorkloadFailed
from castmates.runner.processes.starts import member_start
from castmates.study.mixes import member_of
from castmates.study.model import Workload
from castmates.study.placement.search import Seat
from castmates.study.spec import Prepared
from castmates.trials.workloads import promises
from castmates.trials.workloads.promises import Alone, Finding, NotTried, launched, refused
from castmates.workloads import environments, inputs
from castmates.workloads.heartbeat import HeartbeatError
from castmates.workloads.inputs import Lack, lack_of

WHAT = "castmates workloads check"

Verdict = Literal["kept", "broken", "not here"]


@dataclass(frozen=True)
class Result:
    """What the check of one workload showed."""

    workload: str
    verdict: Verdict
    why: str  # in a sentence, where it is not kept
    findings: tuple[Finding, ...] = ()

    def about(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "workload": self.workload,
            "verdict": self.verdict,
            "why": self.why,
            "promises": {
                finding.promise: {"seen": finding.seen, "broken": finding.broken} for finding in self.findings
            },
        }


@dataclass(frozen=True)
class Places:
    """Where things are built, from what, and whether those that are not there yet are."""

    envs: Path
    cache: Path
    build: bool = True


def check(workloads: Mapping[str, Workload], places: Places, seconds: float, say: Say) -> list[Result]:
    """Check these workloads one after the other."""
    environments.build(environments.NATIVE, places.envs, places.cache)
    results = []
    with machine_lock(WHAT, say=say), guarded() as warden:
        heal_or_refuse(say)
        for number, (name, workload) in enumerate(workloads.items(), start=1):
            say(f"{number} of {len(workloads)}: {name}")
            result = check_one(name, workload, places, seconds, warden)
            results.append(result)
            if result.why:
                say(f"{name}: {result.verdict}: {result.why}")
    return results


def check_one(name: str, workload: Workload, places: Places, seconds: float, warden: Warden) -> Result:
    """Check one workload; the caller holds the machine's lock."""
    lack = lack_of(workload, places.envs, places.cache)
    if lack is not None and not (places.build and lack.environment):
        return _not_here(name, lack)
    cpus = tuple(sorted(os.sched_getaffinity(0))[-workload.cores :])
    if len(cpus) < workload.cores:
        return Result(name, "not here", f"it wants {workload.cores} CPUs, and there are {len(cpus)}")
    start = starter(name, workload, places, cpus)  # what cannot be built is a separate error
    if lack is not None and (still := lack_of(workload, places.envs, places.cache)):  # a program of the environment
        return _not_here(name, still)
    findings: list[Finding] = []
    try:
        with launched(start, cpus, warden) as first:
            _try_everything(first, workload, cpus, seconds, findings)
        with launched(start, cpus, warden) as second:
            _try_again(second, findings)
    except NotTried:
        raise
    except OSError as problem:
        raise NotTried(refused(problem)) from None
    except (WorkloadFailed, HeartbeatError, CastmatesError) as problem:
        warden.check()  # without one the workload is not to blame
        findings.append(_broken_off(findings, str(problem)))
    why = "; ".join(finding.broken for finding in findings if not finding.kept)
    return Result(name, "broken" if why else "kept", why, tuple(findings))


def _not_here(name: str, lack: Lack) -> Result:
    return Result(name, "not here", f"{lack.what}; {lack.remedy}")


def _try_everything(
    alone: Alone, workload: Workload, cpus: tuple[int, ...], seconds: float, findings: list[Finding]
) -> None:
    findings.append(promises.ready(alone.become_ready()))
    seen = alone.run(seconds)
    findings += [promises.progress(seen, workload), promises.pinned(seen, cpus)]
    findings += [promises.threads(seen, workload), promises.memory(seen, workload)]
    findings.append(promises.freezes(alone.stand()))
    findings.append(promises.ends(alone.end()))


def _try_again(alone: Alone, findings: list[Finding]) -> None:
    seconds = alone.become_ready()
    if not alone.works():
        raise WorkloadFailed("it made no progress when it was started a second time")
    findings.append(promises.restarts(seconds))


def starter(name: str, workload: Workload, places: Places, cpus: tuple[int, ...]) -> Callable[[Path], Start]:
    """Build what the workload needs, and make what starts it in a scratch folder."""
    native = environments.build(environments.NATIVE, places.envs, places.cache) / "bin"
    environment_key = inputs_key = None
    if workload.environment is not None:
        environments.build(workload.environment, places.envs, places.cache)
        environment_key = environments.key(workload.environment, places.envs)
    if workload.inputs is not None:
        inputs.build(workload.inputs, places.envs, places.cache)
        inputs_key = inputs.key(workload.inputs, places.envs)
    prepared = Prepared(environment_key=environment_key, content="", inputs_key=inputs_key)
    member = member_of(name, "lead", Seat(cpus, ()), workload, prepared)
    return lambda scratch: member_start(member, native, scratch, places.cache)


def _broken_off(findings: Sequence[Finding], why: str) -> Finding:
    """Return the promise at which a workload failed: the first of which nothing is known, or else the last."""
    known = {finding.promise for finding in findings}
    unknown = (name for name in promises.NAMES if name not in known)
    return Finding(next(unknown, promises.NAMES[-1]), "failed", why)
