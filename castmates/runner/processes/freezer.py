"""Holds members still and lets them go on: by control groups where they can be had, by signals elsewhere."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.linux import cgroups, cpu_quota
from castmates.linux.marks import MarkedFamily
from castmates.linux.owner import group_name
from castmates.linux.processes import is_stopped
from castmates.runner.processes.restarts import TaskBound
from castmates.workloads.standing import VARIABLE, Standing

_CHANGE_S, _KILL_S = 5.0, 10.0
_PAUSE_S = 0.00005  # between two looks whether members stand still
_SLOW_S = 0.05  # from which on it is looked for what keeps a member from stopping


class Freezer(Protocol):
    """Freezes, thaws and kills whole process trees by the member's name."""

    kind: str

    def adopt(self, name: str, pid: int) -> None:
        """Take charge of a member; called by the parent right after launch, the pid leads its own session."""

    def freeze(self, name: str) -> None:
        """Stop the member's whole tree and return when it stands still."""

    def thaw(self, name: str) -> None:
        """Let the member's whole tree go on."""

    def pause(self, names: Sequence[str]) -> None:
        """Stop these members, who run, all at once and return when those of them that are known stand still."""

    def let_go(self, names: Sequence[str]) -> None:
        """Let these members, who were paused or frozen, go on."""

    def is_frozen(self, name: str) -> bool:
        """Check that the member lives and no thread of it can run."""

    def kill(self, name: str) -> None:
        """Kill the member's whole tree, frozen or not, and return when all are gone."""

    def stragglers(self, name: str) -> list[int]:
        """List the processes of the member that still live, its leader among them."""

    def group_of(self, name: str) -> Path | None:
        """Name the control group that holds the member alone; None where there is none."""

    def groups(self) -> list[Path]:
        """List the control groups that the warden must guard."""

    def close(self) -> None:
        """Kill what is left and remove what was made; safe to call twice."""


class CgroupFreezer:
    """Freezes members in separate control groups, which no child can leave."""

    kind = "cgroup"

    def __init__(self, home: Path, name_hint: str) -> None:
        name = group_name(name_hint)
        self._root = cgroups.make(home, name)
        self._members: dict[str, Path] = {}
        self._bound = TaskBound(name)

    def adopt(self, name: str, pid: int) -> None:
        """Move the member, and the children that it may already have, into a new group."""
        group = cgroups.make(self._root, f"{len(self._members)}.{name}")
        self._members[name] = group
        family = MarkedFamily(pid)
        family.stop(_CHANGE_S)  # so that no process is born while they move
        while outside := {p.pid for p in family.living()} - set(cgroups.processes(group)):
            for each in outside:
                try:
                    cgroups.move(group, each)
                except ProcessLookupError:
                    continue
                except OSError as error:
                    raise CastmatesError(f"member {name} cannot be moved into {group}: {error.strerror}") from None
        self._bound.adopt(group, cgroups.processes(group))
        family.resume()
        if not cgroups.event(group, "populated"):
            raise CastmatesError(f"member {name} ended right after its start; see its log")

    def freeze(self, name: str) -> None:
        """Freeze the group and wait until the kernel reports it."""
        self.pause([name])

    def thaw(self, name: str) -> None:
        """Thaw the group and wait until the kernel reports it."""
        if not cgroups.freeze(self._members[name], False, _CHANGE_S):
            raise CastmatesError(f"member {name} did not thaw within {_CHANGE_S:g} s")

    def pause(self, names: Sequence[str]) -> None:
        """Freeze their groups together, and wait for each."""
        for name in names:
            cgroups.ask(self._members[name], frozen=True)
        for name in names:
            if not cgroups.wait(self._members[name], "frozen", True, _CHANGE_S):
                raise _unwilling(name)

    def let_go(self, names: Sequence[str]) -> None:
        """Thaw their groups: they run as soon as the kernel is asked."""
        for name in names:
            cgroups.ask(self._members[name], frozen=False)

    def is_frozen(self, name: str) -> bool:
        """Ask the kernel."""
        group = self._members[name]
        return group.is_dir() and cgroups.event(group, "frozen") and cgroups.event(group, "populated")

    def kill(self, name: str) -> None:
        """Kill the group and remove it."""
        group = self._members[name]
        if group.is_dir():
            if not cgroups.kill(group, _KILL_S):
                raise CastmatesError(f"member {name} could not be killed within {_KILL_S:g} s: {self.stragglers(name)}")
            cgroups.remove(group)

    def stragglers(self, name: str) -> list[int]:
        """List the group's living processes."""
        group = self._members[name]
        if not group.is_dir() or not cgroups.event(group, "populated"):
            return []
        return cgroups.processes(group)

    def group_of(self, name: str) -> Path | None:
        """Name the member's own group."""
        return self._members[name]

    def groups(self) -> list[Path]:
        """Name the one group that holds all others, and the one that bounds them."""
        return [self._root, *self._bound.groups()]

    def close(self) -> None:
        """Kill every member and remove all groups."""
        for name in self._members:
            self.kill(name)
        cgroups.remove(self._root)
        self._bound.close()


class SignalFreezer:
    """Freezes members with SIGSTOP, found through /proc by parentage, session, process group and mark."""

    kind = "signals"

    def __init__(self) -> None:
        self._members: dict[str, MarkedFamily] = {}

    def adopt(self, name: str, pid: int) -> None:
        """Remember the member and who it is, so that its number cannot be taken for another's."""
        family = MarkedFamily(pid)
        family.stop(_CHANGE_S)  # so that no process is born while we look
        living = family.living()
        family.resume()
        if not living:
            raise CastmatesError(f"member {name} ended right after its start; see its log")
        self._members[name] = family

    def freeze(self, name: str) -> None:
        """Stop everyone, look again for new children, and return when none runs."""
        if running := self._members[name].stop(_CHANGE_S):
            raise CastmatesError(f"member {name} did not stop within {_CHANGE_S:g} s: processes {running} run on")

    def thaw(self, name: str) -> None:
        """Let everyone go on."""
        self._members[name].resume()

    def pause(self, names: Sequence[str]) -> None:
        """Signal them together; those that take long are stopped with more care."""
        waiting = [self._members[name] for name in names]
        for family in waiting:
            family.pause()
        begin = time.monotonic()
        while waiting := [family for family in waiting if not family.paused()]:
            if time.monotonic() - begin > _SLOW_S:
                break
            time.sleep(_PAUSE_S)
        for name in names:
            if self._members[name] in waiting:
                self.freeze(name)

    def let_go(self, names: Sequence[str]) -> None:
        """Let those who are known go on."""
        for name in names:
            self._members[name].let_go()

    def is_frozen(self, name: str) -> bool:
        """Read the state of every thread."""
        living = self._members[name].living()
        return bool(living) and all(is_stopped(process.pid) for process in living)

    def kill(self, name: str) -> None:
        """Kill everyone and look again until none is left."""
        if left := self._members[name].kill(_KILL_S):
            raise CastmatesError(f"member {name} could not be killed within {_KILL_S:g} s: {left}")

    def stragglers(self, name: str) -> list[int]:
        """List those who live."""
        return [process.pid for process in self._members[name].living()]

    def group_of(self, name: str) -> Path | None:  # noqa: ARG002
        """Name none."""
        return None

    def groups(self) -> list[Path]:
        """Name none."""
        return []

    def close(self) -> None:
        """Kill every member."""
        for name in self._members:
            self.kill(name)


def _unwilling(name: str) -> CastmatesError:
    return CastmatesError(f"member {name} did not freeze within {_CHANGE_S:g} s: it waits for a device")


def choose_freezer(name_hint: str, for_quotas: bool = False) -> Freezer:
    """Take control groups where they work, else signals; for quotas in a place that the controller can reach."""
    home = (cpu_quota.find_home() if for_quotas else None) or cgroups.find_home()
    return CgroupFreezer(home, name_hint) if home else SignalFreezer()


# Members stand between two steps before they are frozen, so that nothing is queued on a device meanwhile.

LONGEST_WAIT = 60.0  # seconds that a step may take
_BETWEEN_STEPS_PAUSE_S = 0.0001


@dataclass
class BetweenSteps:
    """The runner's end, for one member, and what it has to report."""

    standing: Standing
    path: Path
    times: int = 0
    longest_s: float = 0.0

    @classmethod
    def create(cls, path: Path) -> "BetweenSteps":
        """Make the file of a member that is launched now."""
        return cls(Standing.create(path), path)

    @property
    def variables(self) -> dict[str, str]:
        """What the member finds in its environment."""
        return {VARIABLE: str(self.path)}

    def about(self) -> dict[str, object]:
        """How often it was frozen between two steps, and how long the longest wait for that was."""
        return {"times": self.times, "longest_wait_s": round(self.longest_s, 4)}


class Process(Protocol):
    """What is needed of a running member here."""

    between_steps: BetweenSteps | None

    @property
    def name(self) -> str:
        """The member's name."""

    @property
    def gone(self) -> bool:
        """Whether it makes no more steps."""


def let_stand(processes: Iterable[Process], longest_s: float = LONGEST_WAIT) -> None:
    """Ask all of these that can, and return when each of them stands or makes no more steps."""
    asked = [(process, process.between_steps) for process in processes if process.between_steps is not None]
    begin = time.monotonic()
    for _, one in asked:
        one.standing.ask()
    while asked:
        standing = [one for _, one in asked if one.standing.stands()]  # looked at once: it may change at any time
        waited = time.monotonic() - begin
        for one in standing:
            one.times += 1
            one.longest_s = max(one.longest_s, waited)
        asked = [(process, one) for process, one in asked if one not in standing and not process.gone]
        if asked and waited > longest_s:
            raise CastmatesError(
                f"member {asked[0][0].name} did not come to the end of a step within {longest_s:g} s, so what it "
                "queued on its device would go on while it is frozen: its steps must be shorter"
            )
        if asked:
            time.sleep(_BETWEEN_STEPS_PAUSE_S)


def let_go(processes: Iterable[Process]) -> None:
    """Let all of these make steps again, as soon as they are thawed."""
    for process in processes:
        if process.between_steps is not None:
            process.between_steps.standing.let_go()
