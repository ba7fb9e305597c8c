"""One launch of a modelled study: the same rounds, windows, ledger and record as a measured one, in modelled time."""

import time
from collections.abc import Callable
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.protocols import Say
from castmates.runner.modelled.cast import FIRST_PID, Played, evictors, processes
from castmates.runner.modelled.hardware import grant_of, modelled_hardware
from castmates.runner.modelled.stage import Freezing, ModelledStage
from castmates.runner.modelled.world import World
from castmates.runner.outcome import Measured
from castmates.runner.processes.starts import placebo_member
from castmates.runner.rounds.measure import measure_rounds
from castmates.runner.rounds.processor_record import processor_record
from castmates.study.spec import Launch, Scene

PLATFORM = "modelled"


def run_launch(launch: Launch, _logs: Path, _cache: Path, say: Say, check: Callable[[], None]) -> Measured:
    """Play a launch; nothing is started and nothing of this machine is touched, so that no lock is needed either."""
    machine = launch.design.model
    if machine is None:
        raise CastmatesError(f"launch {launch.path} does not belong to a modelled study: its design has no 'model'.")
    begin = time.monotonic()
    chosen = evictors(launch.cohort, machine)
    world = World(machine, processes(launch.cohort, chosen), launch.seed)
    cast = [Played(process, pid) for pid, process in enumerate(world.processes.values(), start=FIRST_PID)]
    pids, design = {process.name: process.pid for process in cast}, launch.design
    hardware = modelled_hardware(world, pids, design.monitor, design.beyond_site)
    stage = ModelledStage(world, cast, hardware, check, {each.name: each.bytes for each in chosen})
    hardware.attach(stage.held(), [member.name for member in launch.cohort.members])
    outcome = Measured(launch, platform=PLATFORM, launch_seconds=0.0, freezer=Freezing.kind, hardware=hardware.about())
    outcome.reading = hardware.reading()
    outcome.cast.extend(cast)
    say("a modelled launch: nothing is started")
    try:
        measure_rounds(outcome, stage, say)
        outcome.processor = processor_record(hardware.allocator, launch)
        stage.dismiss()
    finally:
        hardware.release()
    outcome.truth = {scene.name: truth(world, scene) for scene in launch.cohort.scenes}
    outcome.total_seconds = outcome.measure_seconds = time.monotonic() - begin
    return outcome


def truth(world: World, scene: Scene) -> dict[str, dict[str, object]]:
    """Return what is true of everybody who runs in a scene, without noise, when nothing changes any more."""
    names = [*scene.active, *map(placebo_member, scene.placebos)]
    shares = {share.member: share for share in scene.shares if share.member in names}
    granted = {name: grant_of(share, world.processes[name].cpus, world.machine) for name, share in shares.items()}
    return world.truth_of(names, granted)
