"""One launch of a modelled study: the same rounds, windows, ledger and record as a measured one, in modelled time."""

import subprocess
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import castmates
from castmates.errors import CastmatesError
from castmates.protocols import Say
from castmates.runner.modelled.hardware import ModelledHardware, grant_of, modelled_hardware, quota_of
from castmates.runner.modelled.world import Process, World
from castmates.runner.outcome import Measured
from castmates.runner.processes.launch import Running, Start
from castmates.runner.processes.starts import Evictor, placebo_member
from castmates.runner.rounds.processor_record import processor_record
from castmates.runner.rounds.round import measure_rounds
from castmates.runner.rounds.stage import MIB, Stage, has_masks
from castmates.study.cpus import format_cpu_list
from castmates.study.modelled import LINE, MachineModel, WorkloadModel
from castmates.study.scenes import CACHE_TIMES
from castmates.study.spec import Cohort, Launch, Scene, Share
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import State

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
        outcome.processor = processor_record(hardware.allocator, launch, outcome.windows)
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


# The cast of a modelled launch: processes that are never started, with the runner's view of a process.

FIRST_PID = 1000  # what comes before is the system's
PLACEBO = WorkloadModel(compute=0.01)
EVICTOR = WorkloadModel(compute=1e-6, accesses=MIB // LINE, writes=1.0, parallel=16)  # a step is 1 MiB


def processes(cohort: Cohort, evictors: Sequence[Evictor]) -> list[Process]:
    """Every member, a placebo for every CPU that some scene gives to one, and the evictors."""
    members = [Process(each.name, each.model, each.cpus) for each in cohort.members if each.model is not None]
    placebos = sorted({cpu for scene in cohort.scenes for cpu in scene.placebos})
    return [
        *members,
        *(Process(placebo_member(cpu), PLACEBO, (cpu,)) for cpu in placebos),
        *(Process(each.name, EVICTOR, (each.cpu,)) for each in evictors),
    ]


def evictors(cohort: Cohort, machine: MachineModel) -> list[Evictor]:
    """Return one for each cache with members, where some scene has way masks."""
    if not has_masks(cohort):
        return []
    own_cpus = [cpu for member in cohort.members for cpu in member.cpus]
    amount = CACHE_TIMES * machine.ways * machine.way_bytes
    found = []
    for domain in sorted({machine.domain_of(cpu) for cpu in own_cpus}):
        around = machine.around(domain)
        found.append(Evictor(next((cpu for cpu in around if cpu not in own_cpus), around[-1]), amount))
    return found


class _Reader(heartbeat.Reader):
    """The heartbeat of a process that does not exist."""

    def __init__(self) -> None:
        self.written = 0

    @property
    def state(self) -> State:
        """It is always ready."""
        return State.READY

    @property
    def head(self) -> int:
        """How many beats there ever were."""
        return self.written


class Played(Running):
    """A process of the modelled machine, as the runner sees processes."""

    def __init__(self, process: Process, number: int) -> None:
        start = Start(process.name, process.cpus, (), command=[], environment={}, ready_within=0.0)
        self._beats = _Reader()
        nobody = typing.cast("subprocess.Popen[bytes]", None)  # whatever would ask it is defined anew here
        super().__init__(start, nobody, self._beats, Path(), ready_seconds=0.0)
        self._process = process
        self._number = number

    @property
    def pid(self) -> int:
        """A number that is its own."""
        return self._number

    def ended(self) -> str:
        """It never ends."""
        return ""

    def forget_beats(self) -> None:
        """Begin anew: what was reported so far belongs to no window."""
        self.read_beats()
        self.records, self.lost = [], 0

    def read_beats(self) -> None:
        """Take what was reported since."""
        new, self._process.beats = self._process.beats, []
        self.records += new
        self._beats.written += len(new)
        self.seen = self._beats.written

    def last_lines(self, count: int = 5) -> list[str]:  # noqa: ARG002
        """It writes nothing."""
        return []


# The stage of a modelled launch: the runner's rounds, windows and ledger on it, in the modelled machine's time.


class Freezing:
    """Who is frozen on the modelled machine; nothing else can thaw them."""

    kind = "none needed (modelled)"

    def __init__(self) -> None:
        self._moving: set[str] = set()

    def adopt(self, name: str, pid: int) -> None:
        """Everybody begins frozen."""

    def freeze(self, name: str) -> None:
        """Stop a process."""
        self._moving.discard(name)

    def thaw(self, name: str) -> None:
        """Let a process run."""
        self._moving.add(name)

    def pause(self, names: Sequence[str]) -> None:
        """Stop processes."""
        self._moving.difference_update(names)

    def let_go(self, names: Sequence[str]) -> None:
        """Let processes run."""
        self._moving.update(names)

    def is_frozen(self, name: str) -> bool:
        """Check whether it is stopped."""
        return name not in self._moving

    def kill(self, name: str) -> None:
        """There is nothing to kill."""

    def stragglers(self, name: str) -> list[int]:  # noqa: ARG002 (the runner asks so)
        """No process stays behind."""
        return []

    def group_of(self, name: str) -> Path | None:  # noqa: ARG002
        """There are no control groups."""
        return None

    def groups(self) -> list[Path]:
        """There is nothing to guard."""
        return []

    def close(self) -> None:
        """There is nothing to let go of."""


class ModelledStage(Stage):
    """Processes on the modelled machine, and which of them run."""

    def __init__(
        self,
        world: World,
        cast: Sequence[Played],
        hardware: ModelledHardware,
        check: Callable[[], None],
        evictors: Mapping[str, int],
    ) -> None:
        super().__init__(cast, Freezing(), hardware, check, evictors)
        self._world, self._granted = world, hardware.granted

    def now_ns(self) -> int:
        """Return the time on the modelled machine's clock."""
        return self._world.now_ns

    def apply_shares(self, shares: tuple[Share, ...]) -> bool:
        """Put these shares of caches, bandwidth, CPU time and prefetchers in force; True where ways were lost."""
        lost = super().apply_shares(shares)
        quotas = {share.member: quota_of(share) for share in shares}
        prefetching = not any(share.prefetchers for share in shares)  # of all cores, as on real machines
        self._world.grant(
            {
                name: replace(grant, quota=quotas.get(name, 1.0), prefetching=prefetching)
                for name, grant in self._granted().items()
            }
        )
        return lost

    def switch(self, names: Sequence[str]) -> None:
        """Freeze and thaw until exactly these processes run."""
        super().switch(names)
        self._world.let_run(names)

    def sleep_until(self, t_ns: int) -> None:
        """Let the modelled time pass, which takes next to none of ours, and keep up with the heartbeats."""
        self._check()
        self._world.run_until(t_ns)
        self.read_beats()

    def exchange(self, names: Sequence[str]) -> None:
        """Freeze and thaw until exactly these processes run."""
        super().exchange(names)
        self._world.let_run(names)

    def rest_until(self, t_ns: int) -> None:
        """Let the modelled time pass."""
        self.sleep_until(t_ns)

    def cpus_of_threads(self, name: str) -> set[int]:
        """Return where a process may run: it is never moved."""
        return set(self.cast[name].start.cpus)

    def dismiss(self) -> list[str]:
        """No process has to be asked to end."""
        self.switch([])
        return []


# The modelled machine as the report describes machines.


def facts_of_classes(models: Mapping[str, MachineModel]) -> dict[str, Any]:
    """The same of modelled classes of nodes: those of the first one, and of each by its name."""
    each = {name: modelled_facts(model) for name, model in models.items()}
    return {**next(iter(each.values())), "classes": each}


def modelled_facts(machine: MachineModel) -> dict[str, Any]:
    """Return what machine.json has of it: no host, because the numbers belong to none."""
    cores, behind = machine.all_cores, "socket" if machine.sockets else "cache"
    caches = [
        {
            "level": 3,
            "id": number,
            "bytes": machine.ways * machine.way_bytes,
            "ways": machine.ways,
            "cpus": format_cpu_list(machine.around(number)),
        }
        for number in range(machine.domains)
    ]
    return {
        "platform": "modelled",
        "read_at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu_model": (
            f"a model (castmates help modelled-machine), {machine.bandwidth}/s of memory bandwidth for each {behind}"
        ),
        "topology": {
            "allowed": format_cpu_list(range(cores * machine.threads)),
            "cores": cores,
            "packages": machine.memories,
            "llcs": caches,
        },
        "governors": {},
        "resctrl": {"kernel": True, "mounted": True, "writable": True},
        "perf": {"hardware": "the modelled machine has none"},
        "model": machine.model_dump(mode="json"),
        "castmates": castmates.__version__,
    }
