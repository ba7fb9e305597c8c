"""The cast of a modelled launch: processes that are never started, with the runner's view of a process."""

import subprocess
import typing
from collections.abc import Sequence
from pathlib import Path

from castmates.runner.modelled.world import Process
from castmates.runner.processes.evictor import Evictor
from castmates.runner.processes.launch import Running, Start
from castmates.runner.processes.starts import placebo_member
from castmates.runner.rounds.eviction import MIB, has_masks
from castmates.study.evictors import TIMES
from castmates.study.modelled import LINE, MachineModel, WorkloadModel
from castmates.study.spec import Cohort
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import State

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
    amount = TIMES * machine.ways * machine.way_bytes
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
