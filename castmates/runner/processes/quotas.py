"""Gives members no more than a share of their CPUs' time, where a scene's shares say so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups, cpu_quota
from castmates.linux.cpu_quota import Throttling
from castmates.linux.owner import group_name
from castmates.machine.journal import Change, Journal
from castmates.study.spec import Cohort, Share

# Control groups are to change nobody's share of a CPU: of members against each other, or against the runner.
#
# The groups are the launch's, and go with their weights.


def even_out(cpus: Mapping[str, int], group_of: Callable[[str], Path | None]) -> None:
    """Weigh the groups of members with so many CPUs, and the one that all of them are in against what is beside it.

    Where the controller is, an administrator may have handed it down, or a quota needs it.
    """
    own = {group: count for name, count in cpus.items() if (group := group_of(name)) is not None}
    try:
        cpu_quota.weigh(own)
        for above in {group.parent for group in own}:
            cpu_quota.weigh({above: sum(count for group, count in own.items() if group.parent == above)})
    except OSError as error:
        raise CastmatesError(
            f"the control groups of members cannot be weighed against each other ({error.strerror}), so that a group "
            "with more CPUs would get less of each; start the sweep where the controller 'cpu' does not reach."
        ) from None


KIND = "cpu-controller"  # of the journal


@dataclass(frozen=True)
class Bounded:
    """A member whose CPU time can be bounded."""

    group: Path
    cpus: int


class Quotas:
    """The control groups of these members, and the bounds in force."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._groups: dict[str, Bounded] = {}
        self._hierarchy: Path | None = None  # of version 1, made for this alone
        self._journal = journal
        self._asked: dict[str, tuple[int | None, int]] = {}  # microseconds of CPU time, and of a period

    @classmethod
    def none(cls) -> "Quotas":
        """Nobody is bounded."""
        return cls()

    def take_in(
        self,
        cohort: Cohort,
        group_of: Callable[[str], Path | None],
        processes_of: Callable[[str], Sequence[int]],
        guard: Callable[[Path], None],
    ) -> None:
        """Prepare to bound those to whom some scene gives a quota; they are frozen, each in its group if it has one.

        Version 2 bounds the groups in which members are frozen. Where the controller is version 1's, they are moved
        into groups of that hierarchy as well.
        """
        cpus = {member.name: len(member.cpus) for member in cohort.members}
        if not (names := bounded_members(cohort)):
            return
        if hierarchy := _version_1(cohort.lead.workload):
            self._hierarchy = hierarchy
            guard(hierarchy)
            groups = {name: _moved(hierarchy, number, name, processes_of(name)) for number, name in enumerate(names)}
            even_out({name: cpus[name] for name in names}, groups.get)
        else:
            groups = {name: group for name in names if (group := group_of(name)) is not None}
        self._groups = {name: Bounded(group, cpus[name]) for name, group in groups.items()}

    @property
    def members(self) -> Sequence[str]:
        """Who can be bounded."""
        return list(self._groups)

    def apply(self, shares: Iterable[Share]) -> None:
        """Put the quotas of these shares in force; who has none in them is not bounded."""
        by_member = {share.member: share for share in shares}
        for name, bounded in self._groups.items():
            wanted = _asked_of(by_member.get(name), bounded.cpus)
            if self._asked.get(name, _asked_of(None, bounded.cpus)) == wanted:
                continue
            try:
                cpu_quota.bound(bounded.group, *wanted)
            except OSError as error:
                raise CastmatesError(
                    f"the CPU time of {name} cannot be bounded in {bounded.group} ({error.strerror}); take its quota "
                    "out of the study."
                ) from None
            self._asked[name] = wanted

    def asked(self) -> dict[str, str]:
        """The bounds that were asked for, in the kernel's words; by member, those without one left out."""
        return {name: f"{quota} {period}" for name, (quota, period) in self._asked.items() if quota is not None}

    def read_back(self) -> dict[str, str]:
        """The bounds in force, by member; those without one left out."""
        words = {name: cpu_quota.bound_of(bounded.group) for name, bounded in self._groups.items()}
        return {name: each for name, each in words.items() if not each.startswith(cpu_quota.NONE)}

    def throttling(self) -> dict[str, Throttling | None]:
        """What the kernel counted so far, by member."""
        return {name: cpu_quota.throttling(bounded.group) for name, bounded in self._groups.items()}

    def close(self) -> None:
        """Remove what was made for this alone, and put back what was changed; nobody is in the groups any more."""
        if self._hierarchy is not None:
            cgroups.remove(self._hierarchy)
        if (journal := self._journal) is not None:
            journal.restore(lambda entry: entry.owner == journal.owner and entry.change.kind == KIND)
        self._groups, self._hierarchy, self._journal = {}, None, None


def bounded_members(cohort: Cohort) -> list[str]:
    """List those to whom some scene gives a quota."""
    shares = [share for scene in cohort.scenes for share in scene.shares if share.quota is not None]
    return list(dict.fromkeys(share.member for share in shares))


def room_for(cohort: Cohort, root: Path | None, purpose: str) -> Quotas:
    """Have the controller reach the groups that members will have in `root`, which is ours and has nobody in it yet.

    What is changed above it is written down.
    """
    if not bounded_members(cohort) or cgroups.here(cgroups.cpu_of_version_1):
        return Quotas.none()
    if root is None:
        raise _impossible("members are stopped by signals here, not by control groups of version 2")
    if why := cpu_quota.obstacle(root.parent):
        raise _impossible(why)
    journal = Journal()
    files = cpu_quota.still_to_hand_down(root.parent)
    changes = [Change("cpu controller", KIND, str(file), cpu_quota.OFF, cpu_quota.ON) for file in files]
    made = Quotas(journal if changes else None)
    refused = journal.apply(changes, purpose)
    try:
        for file, error in refused.items():
            raise _impossible(f"the controller 'cpu' cannot be handed down in {file}: {error.strerror}")
        cpu_quota.write_controller(root / cpu_quota.HANDED_DOWN, cpu_quota.ON)
    except (CastmatesError, OSError) as problem:
        made.close()
        if isinstance(problem, OSError):
            why = f"the controller 'cpu' cannot be handed down in {root}: {problem.strerror}"
            raise _impossible(why) from None
        raise
    return made


def _asked_of(share: Share | None, cpus: int) -> tuple[int | None, int]:
    if share is None or share.quota is None or share.period is None:
        return None, 100_000  # what the kernel begins with
    period_us = 1000 * share.period
    return max(period_us * cpus * share.quota // 100, cpu_quota.LEAST_US), period_us


def _version_1(hint: str) -> Path | None:
    """Make a group in the hierarchy of version 1's controller; None where that is none of version 1's."""
    places = cgroups.here(cgroups.cpu_of_version_1)
    why = ""
    for place in places:
        try:
            return cgroups.make(place, group_name(hint))
        except CastmatesError as error:
            why = str(error)
    if places:
        raise _impossible(why)
    return None


def _moved(hierarchy: Path, number: int, name: str, pids: Sequence[int]) -> Path:
    group = cgroups.make(hierarchy, f"{number}.{name}")
    for pid in pids:
        try:
            cgroups.move(group, pid)
        except ProcessLookupError:
            continue
        except OSError as error:
            raise _impossible(f"{name} cannot be moved into {group}: {error.strerror}") from None
    return group


def _impossible(why: str) -> CastmatesError:
    return CastmatesError(f"CPU time cannot be bounded: {why}; take the quotas out of the study.")
