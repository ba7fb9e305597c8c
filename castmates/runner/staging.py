"""Brings processes onto a stage: launched, guarded and held still. Whatever happens, none of them is left.

Launches and trials stand on it. Each process is guarded by the warden before it is adopted by the freezer, and everyone
stands still before anyone is measured. What processes leave behind is adopted here, and killed in the end.
"""

import os
import platform
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.files import memory_folder
from castmates.linux.marks import Adoption
from castmates.linux.owner import folder_prefix
from castmates.machine.journal import Journal
from castmates.machine.probes import free_memory, limited_memory
from castmates.machine.topology import read_topology
from castmates.protocols import Say
from castmates.rdt.choose import facts_here
from castmates.runner.cleanup.leftovers import LONGEST_S
from castmates.runner.cleanup.warden import Warden
from castmates.runner.processes import isolation
from castmates.runner.processes.barrier import await_ready, freeze_ready
from castmates.runner.processes.freezer import CgroupFreezer, Freezer, choose_freezer
from castmates.runner.processes.isolation import Prefetchers
from castmates.runner.processes.launch import Running, Start, WorkloadFailed, launch
from castmates.runner.processes.quotas import Quotas, even_out, room_for
from castmates.runner.processes.starts import pages_of
from castmates.runner.rounds.hardware import Hardware
from castmates.runner.rounds.stage import Stage
from castmates.study.machine_keys import MAKES_ONE, NodeFacts, difference
from castmates.study.spec import Cohort, Launch, NodeClass, Share


@dataclass(frozen=True)
class Scratch:
    """Folders that last as long as the stage."""

    files: Path  # temporary files of the processes
    channels: Path  # through which they report to the runner


class LiveStage(Stage):
    """A stage with processes of this machine; it is empty and unwatched at first."""

    def __init__(self, warden: Warden, freezer: Freezer, scratch: Scratch, check: Callable[[], None]) -> None:
        def watch() -> None:
            check()
            warden.check()

        super().__init__((), freezer, Hardware.none(), watch)
        self.scratch = scratch
        self.quotas = Quotas.none()
        self.prefetchers = Prefetchers(())
        self._warden = warden
        self._adoption = Adoption()

    def launch(self, start: Start, logs: Path) -> Running:
        """Start a process; from then on it is guarded, and it is frozen as soon as it is ready."""
        running = launch(start, self.scratch.channels, logs, self._adopt)
        self.cast[start.name] = running
        return running

    def guard_orphan(self, file: Path) -> None:
        """Let a file that a process leaves behind go, should the runner be killed before it has read it."""
        self._warden.guard_orphan(file)

    def freeze_ready(self) -> None:
        """Freeze those who are ready already, so that what is done before the barrier has their CPUs."""
        freeze_ready(list(self.cast.values()), self.freezer)

    def await_ready(self) -> None:
        """Wait until every process is ready, and frozen; then its memory is there, and stands still."""
        await_ready(list(self.cast.values()), self.freezer, self._check)
        for name, process in self.cast.items():
            process.pages = pages_of(self.freezer.stragglers(name), process.start.command)

    def make_room_for_quotas(self, cohort: Cohort, purpose: str) -> None:
        """See to it that CPU time can be bounded, if some scene has a quota; nobody is launched yet."""
        self.quotas = room_for(cohort, next(iter(self.freezer.groups()), None), purpose)

    def bound(self, cohort: Cohort) -> None:
        """Prepare to bound the CPU time of those to whom some scene gives a quota; everyone is frozen."""
        freezer = self.freezer
        even_out({member.name: len(member.cpus) for member in cohort.members}, freezer.group_of)
        self.quotas.take_in(cohort, freezer.group_of, freezer.stragglers, self._warden.guard_cgroup)

    @contextmanager
    def isolated(self, wish: str | None, purpose: str, say: Say) -> Iterator[isolation.Record]:
        """Give everybody's CPUs to nobody else, if that is wished; what was set is yielded."""
        if wish is None:
            yield {}
            return
        group = self.freezer.groups()[0] if self.freezer.kind == CgroupFreezer.kind else None
        cpus = {cpu for process in self.cast.values() for cpu in process.start.cpus}
        with isolation.isolated(group, cpus, Journal(), purpose, say) as record:
            yield record

    def apply_shares(self, shares: tuple[Share, ...]) -> bool:
        """Put these shares of caches, bandwidth and CPU time, and prefetchers, in force; True where ways were lost."""
        self.quotas.apply(shares)
        self.prefetchers.apply(shares)
        return super().apply_shares(shares)

    @contextmanager
    def watched(self, hardware: Hardware, members: Collection[str]) -> Iterator[None]:
        """Let this hardware watch everyone and serve the members; at the end everything is put back."""
        try:
            hardware.attach(self.held(), members, list(self.evictors))
            self.hardware = hardware
            yield
        finally:
            hardware.release()

    def look_after(self) -> None:
        """Wait for orphans that have ended, too."""
        self._adoption.reap([process.pid for process in self.cast.values()])
        super().look_after()

    def close(self) -> list[str]:
        """Kill everyone, also who has left its member; return who these were."""
        try:
            self.freezer.close()
        finally:
            try:
                self.quotas.close()
            finally:
                escaped = self._adoption.end([process.pid for process in self.cast.values()], LONGEST_S)
        return escaped

    def _adopt(self, name: str, pid: int) -> None:
        try:
            self._warden.guard_process(pid)
        finally:  # a warden that has died must not keep us from ending the process that was just started
            self.freezer.adopt(name, pid)


@contextmanager
def on_stage(
    name: str, warden: Warden, check: Callable[[], None] = lambda: None, for_quotas: bool = False
) -> Iterator[LiveStage]:
    """Prepare a stage; at the end its processes are killed and its groups and folders removed.

    Control groups bear the `name`, and are made where CPU time can be bounded if that is wanted. `check` raises an
    error when the result is no longer wanted.
    """
    with scratch_folder(warden, memory_folder()) as channels, scratch_folder(warden) as files:
        freezer = choose_freezer(name, for_quotas)
        stage = LiveStage(warden, freezer, Scratch(files, channels), check)
        try:
            for group in freezer.groups():
                warden.guard_cgroup(group)
            yield stage
        finally:
            escaped = stage.close()
    if escaped:
        raise WorkloadFailed(f"processes that had left their member were killed: {listed(escaped)}")


@contextmanager
def moved_aside(cpus: Collection[int], lead: Collection[int]) -> Iterator[list[int]]:
    """Move this process off these CPUs and their SMT siblings, or at least off the lead's; it moves back at the end."""
    allowed, launch_cpus = os.sched_getaffinity(0), set(cpus)
    siblings = {cpu for core in read_topology().cores() if launch_cpus & set(core) for cpu in core}
    own = (allowed - siblings) or (allowed - launch_cpus) or (allowed - set(lead)) or allowed
    os.sched_setaffinity(0, own)
    try:
        yield sorted(own)
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def scratch_folder(warden: Warden, place: str | None = None) -> Iterator[Path]:
    """Make a folder that is removed at the end, or by the warden."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=folder_prefix(), dir=place)
    except OSError as error:
        raise CastmatesError(
            f"no scratch folder can be made in {place or 'TMPDIR or /tmp'} ({error.strerror}): make room or give write "
            "access there, and run the same command again."
        ) from None
    with folder as path:
        warden.guard_path(Path(path))
        yield Path(path)


# A launch that the kernel would end for want of memory is refused: it might kill anybody, and says so nowhere.


def refuse_too_little(
    cohort: Cohort,
    needs: Mapping[str, int],
    evictors: Mapping[str, int],
    free: Callable[[], int | None] = free_memory,
    roofs: int = 0,
) -> None:
    """Compare what everyone of a launch takes, by the catalogue and the sizes in the plan, with what is free now."""
    parts = [(member.workload, needs.get(member.workload, 0)) for member in cohort.members]
    parts += [("the eviction of the cache", sum(evictors.values()))] if evictors else []
    parts += [("the measuring of roofs", roofs)] if roofs else []
    wanted, here = sum(size for _, size in parts), free()
    if here is None or wanted <= here:
        return
    limit = limited_memory()
    within = f" of the {limit / 1e9:.1f} GB that its control group allows" if limit is not None else ""
    listed = " + ".join(f"{name} {size / 1e9:.1f}" for name, size in parts if size)
    raise CastmatesError(
        f"this launch takes about {wanted / 1e9:.1f} GB of memory ({listed}), and only {here / 1e9:.1f} GB{within} are "
        "free now; end other programs, raise the limit, or use a smaller size of its workloads."
    )


# A node is held against the class that a launch was planned for, before anything is started on it.


class OtherNode(CastmatesError):
    """This node is not of the class of the launch."""


def refuse_other_node(
    launch: Launch, machines: Sequence[NodeClass], read_facts: Callable[[], NodeFacts] = facts_here
) -> None:
    """Refuse a node that is not of the launch's class; nothing was started, so that the launch can run elsewhere."""
    name = launch.cohort.machine
    if not name:
        return
    wanted = next((machine for machine in machines if machine.name == name), None)
    if wanted is None:
        known = ", ".join(machine.name for machine in machines) or "none"
        raise CastmatesError(
            f"launch {launch.path} is for nodes of the class '{name}', which the plan does not know (it has: {known}); "
            "run the same command again, which plans anew."
        )
    if wanted.facts is None:  # a modelled machine is on every node
        return
    if why := difference(wanted.facts, read_facts()):
        raise OtherNode(
            f"launch {launch.path} is for nodes of the class '{name}' ({wanted.capture}), and {platform.node()} is not "
            f"one: {why}; let it run on a node of that class ('machines.{name}.slurm' in the study selects them), or "
            f"capture this node with `{MAKES_ONE} FILE` as another class."
        )
