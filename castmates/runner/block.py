"""One block: one launch of a company, in which every scene is measured in several rounds."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.linux.owned_names import folder_prefix
from castmates.machine import counts_record, prepare
from castmates.machine.emulation import platform_here
from castmates.machine.journal import Journal
from castmates.machine.lock import machine_lock
from castmates.machine.topology import read_topology
from castmates.protocols import Held
from castmates.rdt.choose import Wish, refuse_hopeless
from castmates.runner.after_rounds import collector_costs, profiling
from castmates.runner.cleanup.restore import heal_or_refuse
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes import starts as casting
from castmates.runner.processes.barrier import await_ready
from castmates.runner.processes.freezer import Freezer, choose_freezer
from castmates.runner.processes.launch import Running, WorkloadFailed, launch
from castmates.runner.rounds import eviction
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.ledger import Ledger
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.stage import Stage
from castmates.runner.rounds.window import Window, measure
from castmates.study.cpus import format_cpu_list
from castmates.study.schedule import round_order
from castmates.study.spec import Block
from castmates.workloads.heartbeat import HeartbeatError, State

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What a block came to."""

    block: Block
    status: str = "measured"
    reason: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    launch_seconds: float | None = None  # None where not everyone got ready
    measure_seconds: float = 0.0
    total_seconds: float = 0.0
    rounds: int = 0  # without a rejected window
    windows: list[Window] = field(default_factory=list)
    cast: list[Running] = field(default_factory=list)
    platform: str = "measured"
    truth: dict[str, object] = field(default_factory=dict)  # by scene: what a modelled machine comes to without noise
    freezer: str = ""
    runner_cpus: list[int] = field(default_factory=list)
    prepared: prepare.Record = field(default_factory=dict)
    settling: Settling | None = None
    hardware: dict[str, dict[str, str]] = field(default_factory=dict)
    environments: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, object] = field(default_factory=dict)  # the data sets that members read
    layers: list[dict[str, Any]] = field(default_factory=list)  # rows of columns.block.LAYERS
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of each collector, to the lead
    afterwards: str = ""  # why what comes after the rounds was cut short
    without_verdict: list[str] = field(default_factory=list)  # members that did not end within a moment when asked to
    left_behind: list[str] = field(default_factory=list)  # by killed runs, and not to be put right: in sentences


def run_block(block: Block, logs: Path, cache: Path, say: Say, check: Callable[[], None]) -> Outcome:
    """Measure a block; a workload that fails is an outcome, everything else an exception. Leaves nothing running."""
    with machine_lock(f"block {block.path} of study {block.study}", report=say):
        outcome = Outcome(block, left_behind=heal_or_refuse(say).left, platform=platform_here())
        begin = time.monotonic()
        try:
            _run(block, outcome, logs, cache, say, check)
        except (WorkloadFailed, HeartbeatError) as failure:
            outcome.status, outcome.reason = "failed", str(failure)
            for found in (outcome.windows, outcome.layers, outcome.costs):
                found.clear()
            outcome.rounds = 0
        outcome.total_seconds = time.monotonic() - begin
        return outcome


def _run(block: Block, outcome: Outcome, logs: Path, cache: Path, say: Say, check: Callable[[], None]) -> None:
    wish = _wish(block)
    refuse_hopeless(wish)
    with ExitStack() as exits:
        warden = Warden.start()
        exits.callback(warden.release)
        journal = Journal()
        warden.guard_journal(journal)  # of the knobs, and of what is shared out
        outcome.prepared = exits.enter_context(_prepared(block, journal, say))
        beats, scratch = (_temporary(exits, warden, place) for place in (_memory(), None))
        freezer = choose_freezer(block.company.lead.workload)
        exits.callback(freezer.close)
        for group in freezer.groups():
            warden.guard_cgroup(group)
        outcome.freezer = freezer.kind
        exits.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        outcome.runner_cpus = _step_aside(block)
        outcome.environments = casting.environments_used(block.company, cache)
        outcome.inputs = casting.inputs_used(block.company, cache)
        evictors = eviction.evictors(read_topology(), block.company, outcome.runner_cpus)
        starts = casting.starts(block.company, scratch, cache, evictors)
        profiling.offer(block, starts[0], beats)
        say(f"launching {', '.join(start.name for start in starts)}")
        begin = time.monotonic()
        for start in starts:
            outcome.cast.append(launch(start, beats, logs, _adopter(freezer, warden)))
        cpus = sorted({cpu for start in casting.watched(starts, evictors) for cpu in start.cpus})
        rounds_before = (block.number - 1) * block.design.rounds
        hardware = Hardware.choose(cpus, wish, say, block.design.counters, rounds_before)
        exits.callback(hardware.release)
        everyone = {one.name: _held(one, freezer) for one in outcome.cast}
        hardware.attach(everyone, [member.name for member in block.company.members])
        outcome.hardware = hardware.about() | {"eviction": eviction.about(block.company, evictors)}

        def watch() -> None:
            check()
            warden.check()

        await_ready(outcome.cast, freezer, watch)
        outcome.launch_seconds = time.monotonic() - begin
        say(f"all ready after {outcome.launch_seconds:.1f} s")
        passes = {casting.evictor(cpu): amount for cpu, amount in evictors.items()}
        stage = Stage(outcome.cast, freezer, hardware, watch, passes)
        measure_rounds(block, outcome, stage, say)
        outcome.measure_seconds = time.monotonic() - begin - outcome.launch_seconds
        _do_afterwards(stage, block, outcome, everyone, say)
        outcome.hardware |= hardware.about()  # again, for by now it tells what it cost
        if hardware.counters:
            outcome.hardware["counts verified"] = counts_record.verdicts(cache)
        outcome.without_verdict = list(stage.cast) if outcome.afterwards else stage.dismiss()


def measure_rounds(block: Block, outcome: Outcome, stage: Stage, say: Say) -> None:
    """Measure rounds until enough of them are clean, or the spare ones are used up."""
    design, members = block.design, {member.name: member for member in block.company.members}
    outcome.settling = settling = Settling(design.settle, design.longest_settle)
    ledger = Ledger(stage, members, design, frozenset(outcome.runner_cpus))
    number, last = 0, design.rounds + design.spare_rounds
    while outcome.rounds < design.rounds and number < last:
        number += 1
        windows: list[Window] = []
        for position, scene in enumerate(round_order(block, number), start=1):
            window = measure(stage, scene, members, design, settling.seconds, number)
            window.position = position
            window.reasons = ledger.judge(window)
            windows.append(window)
        too_early = settling.learn(windows)
        for window in windows:
            window.since_switch.clear()
        outcome.windows += windows
        if too_early:  # what was measured with the shorter settle time does not count, and does not use up the rounds
            for window in outcome.windows:
                window.reasons.append(too_early)
            outcome.rounds, last = 0, number + design.rounds + design.spare_rounds
        rejected = list(dict.fromkeys(reason for window in windows for reason in window.reasons))
        outcome.rounds += not rejected
        scenes = len(block.company.scenes)
        say(f"round {number}: {scenes} windows" + (f", rejected: {'; '.join(rejected)}" if rejected else ""))


def _do_afterwards(stage: Stage, block: Block, outcome: Outcome, everyone: dict[str, Held], say: Say) -> None:
    """Measure costs and profile: a member that is lost there, and does not say that it was wrong, loses no rounds."""
    try:
        collector_costs.measure_costs(stage, block, outcome, everyone, say)
        profiling.profile(stage, block, outcome, say)
    except (WorkloadFailed, HeartbeatError) as failure:
        if any(one.reader.state is State.FAILED for one in outcome.cast):
            raise
        outcome.afterwards = str(failure)
        say(f"the rounds count, but what comes after them was cut short: {failure}")


def _wish(block: Block) -> Wish:
    """What the block wants of the cache."""
    shares = [share for scene in block.company.scenes for share in scene.shares]
    return Wish(
        shares=bool(shares),
        cdp=any(share.code is not None for share in shares),
        rate=block.design.monitor,
        driver=block.design.driver,
        purpose=f"block {block.path} of study {block.study}",
    )


def _prepared(block: Block, journal: Journal, say: Say) -> AbstractContextManager[prepare.Record]:
    if not block.design.prepare.words:
        return nullcontext({})
    cpus = {cpu for member in block.company.members for cpu in member.cpus}
    purpose = f"block {block.path} of study {block.study}"
    return prepare.prepared(block.design.prepare, cpus, purpose, say, journal)


def _held(one: Running, freezer: Freezer) -> Held:
    group = freezer.group_of(one.name)
    return Held(one.pid, one.start.cpus, str(group) if group else None)


def _adopter(freezer: Freezer, warden: Warden) -> Callable[[str, int], None]:
    def adopt(name: str, pid: int) -> None:
        try:
            warden.guard_process(pid)
        finally:  # a warden that has died must not keep us from ending whom we have just started
            freezer.adopt(name, pid)

    return adopt


def _step_aside(block: Block) -> list[int]:
    """Move this process off the members' CPUs and their SMT siblings, or at least off the lead's."""
    allowed = os.sched_getaffinity(0)
    everyone = {cpu for member in block.company.members for cpu in member.cpus}
    if missing := everyone - allowed:
        raise CastmatesError(
            f"block {block.path} was planned for CPU {min(missing)}, but only CPUs {format_cpu_list(allowed)} may be "
            "used here; run the sweep where it was planned, or plan it anew here."
        )
    siblings = {cpu for core in read_topology().cores() if everyone & set(core) for cpu in core}
    own = (allowed - siblings) or (allowed - everyone) or (allowed - set(block.company.lead.cpus)) or allowed
    os.sched_setaffinity(0, own)
    return sorted(own)


def _temporary(exits: ExitStack, warden: Warden, place: str | None) -> Path:
    try:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix=folder_prefix(), dir=place)))
    except OSError as error:
        raise CastmatesError(
            f"no scratch folder can be made in {place or 'TMPDIR or /tmp'} ({error.strerror}): make room or give write "
            "access there, and run the same command again."
        ) from None
    warden.guard_path(folder)
    return folder


def _memory() -> str | None:
    """Heartbeats belong in memory: a file system that writes back would stall the writers."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
