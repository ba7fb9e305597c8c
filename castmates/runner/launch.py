"""One launch of a cohort, of any kind, from the machine's lock to what it came to."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from castmates.errors import CastmatesError
from castmates.machine import prepare, trial_records
from castmates.machine.journal import Journal
from castmates.machine.lock import machine_lock
from castmates.machine.probes import platform_here
from castmates.machine.topology import read_topology
from castmates.protocols import Say
from castmates.rdt.choose import CacheRequest, refuse_hopeless
from castmates.results.columns.parquet import load_ahead
from castmates.runner import outcome as progress
from castmates.runner import record
from castmates.runner.after_rounds.measure import measure_after_rounds
from castmates.runner.cleanup.restore import heal_or_refuse
from castmates.runner.cleanup.warden import NotCleanedUp, Warden, guarded
from castmates.runner.outcome import LaunchKind, Measured, Outcome
from castmates.runner.processes import isolation, starts
from castmates.runner.processes.launch import Start, WorkloadFailed
from castmates.runner.processes.quotas import bounded_members
from castmates.runner.profiles import rounds
from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.processor_record import processor_record
from castmates.runner.rounds.round import measure_rounds
from castmates.runner.rounds.witnesses import PrefetchWitness, QuotaWitness
from castmates.runner.staging import LiveStage, moved_aside, on_stage, refuse_too_little
from castmates.study import rehearsing
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import Launch
from castmates.workloads.heartbeat import HeartbeatError


def run_launch(
    launch: Launch,
    logs: Path,
    cache: Path,
    say: Say,
    check: Callable[[], None],
    needs: Mapping[str, int] = MappingProxyType({}),
) -> Outcome:
    """Measure a launch; a workload that fails is an outcome, everything else an exception. Leaves nothing running.

    `needs` has the bytes that each workload takes.
    """

    def wait(words: str) -> None:
        say(words)
        progress.waiting(launch, words)

    with machine_lock(_purpose(launch), say=wait):
        kind_here = kind_of(launch)
        platform = rehearsing.PLATFORM if rehearsing.machine_of(launch.design.driver) else platform_here()
        outcome = kind_here.Outcome(launch, left_behind=heal_or_refuse(say).left, platform=platform, needs=needs)
        kind, begin = kind_here(outcome, logs.parent), time.monotonic()
        try:
            _run(kind, logs, cache, say, check)
        except (WorkloadFailed, HeartbeatError) as failure:
            outcome.fail(str(failure))
        except NotCleanedUp as problem:
            outcome.left_behind.append(str(problem))
        except BaseException:
            kind.abandon()
            raise
        outcome.total_seconds = time.monotonic() - begin
        return outcome


def _run(kind: LaunchKind[Any], logs: Path, cache: Path, say: Say, check: Callable[[], None]) -> None:
    outcome, launch = kind.outcome, kind.launch
    refuse_hopeless(_cache_request(launch))
    if launch.design.prepare.cpuset:
        isolation.refuse_several_cpus(launch.cohort)
    with (
        guarded() as warden,
        _knobs(launch, warden, say) as outcome.prepared,
        isolation.switched(launch.cohort, _purpose(launch), Journal(), say) as switches,
        _aside(launch) as outcome.runner_cpus,
        on_stage(launch.cohort.lead.workload, warden, check, bool(bounded_members(launch.cohort))) as stage,
        kind.guarded(stage),
    ):
        begin, stage.prefetchers = time.monotonic(), switches
        _launch(kind, stage, logs, cache, say)
        with _watched(outcome, stage, say):
            outcome.hardware |= stage.hardware.about()
            outcome.reading = stage.hardware.reading()
            stage.await_ready()
            stage.bound(launch.cohort)
            outcome.launch_seconds = time.monotonic() - begin
            say(f"all ready after {outcome.launch_seconds:.1f} s")
            with stage.isolated(launch.design.prepare.cpuset, _purpose(launch), say) as partition:
                outcome.prepared |= {isolation.KNOB: partition} if partition else {}
                kind.observe(stage, say)
            load_ahead()  # while members end; not before, because a launch wants a runner without threads
            outcome.hardware |= stage.hardware.about()  # once more: by now it shows what it cost
            if stage.hardware.counters:
                outcome.hardware["counts verified"] = trial_records.counters_verified(cache)
            outcome.without_verdict = list(stage.cast) if outcome.afterwards else stage.dismiss()


def _launch(kind: LaunchKind[Any], stage: LiveStage, logs: Path, cache: Path, say: Say) -> None:
    """Launch members, placebos, evictors and the helpers of the kind, one after the other."""
    outcome, launch, cohort, scratch = kind.outcome, kind.launch, kind.launch.cohort, stage.scratch
    outcome.freezer = stage.freezer.kind
    outcome.environments = starts.environments_used(cohort, cache)
    outcome.inputs = starts.inputs_used(cohort, cache)
    rehearsed = bool(rehearsing.machine_of(launch.design.driver))
    evictors = [] if rehearsed else eviction.evictors(read_topology(), cohort, outcome.runner_cpus)
    stage.evictors = {each.name: each.bytes for each in evictors}
    helpers = kind.helpers(scratch.files, cache)
    refuse_too_little(cohort, outcome.needs, stage.evictors, roofs=kind.needed_bytes())
    everyone = starts.starts(cohort, scratch.files, cache, evictors)
    everyone = [replace(start, ranges=kind.ranges_of(start)) for start in everyone]
    kind.prepare(everyone[: len(cohort.members)], scratch.channels)
    everyone += helpers
    outcome.hardware = {"eviction": eviction.about(cohort, evictors, rehearsed)}
    say(f"launching {', '.join(start.name for start in everyone)}")
    progress.launching(launch)
    stage.make_room_for_quotas(cohort, _purpose(launch))
    for start in everyone:
        outcome.cast.append(stage.launch(start, logs))
        kind.started(stage, start.name)
    stage.freeze_ready()


def _watched(outcome: Outcome, stage: LiveStage, say: Say) -> AbstractContextManager[None]:
    """Choose what watches the launch's CPUs; those of evictors are not among them: they run between windows only."""
    launch = outcome.launch
    cpus = sorted(
        {cpu for process in stage.cast.values() if process.name not in stage.evictors for cpu in process.start.cpus}
    )
    rounds_before = (launch.number - 1) * launch.design.rounds
    hardware = Hardware.choose(cpus, _cache_request(launch), say, launch.design.counters, rounds_before)
    if isolation.wanted(launch.cohort):
        hardware = replace(hardware, collectors=[PrefetchWitness(stage.prefetchers), *hardware.collectors])
    if any(share.quota for scene in launch.cohort.scenes for share in scene.shares):
        hardware = replace(hardware, collectors=[QuotaWitness(lambda: stage.quotas), *hardware.collectors])
    return stage.watched(hardware, [member.name for member in launch.cohort.members])


def _cache_request(launch: Launch) -> CacheRequest:
    """Return what the launch wants of the cache."""
    shares = [share for scene in launch.cohort.scenes for share in scene.shares if share.of_cache]
    return CacheRequest(
        shares=bool(shares),
        cdp=any(share.code is not None for share in shares),
        rate=launch.design.monitor,
        driver=launch.design.driver,
        beyond_site=launch.design.beyond_site,
        purpose=_purpose(launch),
    )


def _knobs(launch: Launch, warden: Warden, say: Say) -> AbstractContextManager[prepare.Record]:
    """Set the knobs that the study names; the warden puts them back if this process cannot."""
    journal = Journal()
    warden.guard_journal(journal)  # of what is shared out, too
    return prepare.prepared(launch.design.prepare, _cpus(launch), prepare.Preparing(_purpose(launch), say, journal))


def _aside(launch: Launch) -> AbstractContextManager[list[int]]:
    """Move this process off the members' CPUs."""
    allowed = os.sched_getaffinity(0)
    if missing := _cpus(launch) - allowed:
        raise CastmatesError(
            f"launch {launch.path} was planned for CPU {min(missing)}, but only CPUs {format_cpu_list(allowed)} may be "
            "used here; run the sweep where it was planned, or plan it anew here."
        )
    return moved_aside(_cpus(launch), launch.cohort.lead.cpus)


def _cpus(launch: Launch) -> set[int]:
    return {cpu for member in launch.cohort.members for cpu in member.cpus}


def _purpose(launch: Launch) -> str:
    return f"launch {launch.path} of study {launch.study}"


# The kinds of launches: one that measures, one that profiles, one that traces.


class Measure(LaunchKind[Measured]):
    """Rounds of scenes are measured."""

    Outcome = Measured

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give the lead its page."""
        if self.launch.design.counters.profile:
            rounds.offer(members[0], channels)

    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for."""
        measure_rounds(self.outcome, stage, say)
        self.outcome.processor = processor_record(stage.hardware.allocator, self.launch, self.outcome.windows)
        measure_after_rounds(self.outcome, stage, say)

    @staticmethod
    def write(outcome: Measured, folder: Path) -> None:
        """Write the files of the launch."""
        record.write(outcome, folder)

    @staticmethod
    def words(outcome: Measured) -> str:
        """Say what it came to."""
        if not outcome.rounds:
            return (
                "measured, but every round has a rejected window; `castmates sweep --retry` measures launches like "
                "this again"
            )
        rejected = sum(bool(window.reasons) for window in outcome.windows)
        return f"measured {len(outcome.windows)} windows, {rejected} rejected, in {outcome.total_seconds:.0f} s"


def kind_of(launch: Launch) -> type[LaunchKind[Any]]:
    """Return the kind of a launch; one that measures need not import what traces."""
    if launch.design.profiling is not None:
        from castmates.runner.profiles.kind import Profile

        return Profile
    if launch.design.tracing is not None:
        from castmates.runner.tracing.kind import Trace

        return Trace
    return Measure
