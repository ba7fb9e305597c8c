"""Gives members no more than a share of their CPUs' time, where a scene's shares say so."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups, cpu_quota
from castmates.linux.cgroups import CPUS, EFFECTIVE, HANDED_DOWN, ISOLATED, MEMBER, OFF, ON, PARTITION
from castmates.linux.cpu_quota import Throttling
from castmates.linux.kernel_files import read_text
from castmates.linux.owner import group_name
from castmates.machine.journal import KINDS, Change, Journal
from castmates.machine.knobs import LEAVE_OUT, NAME, TAKE_OUT, switches_off
from castmates.protocols import Say
from castmates.study.cpus import format_cpu_list
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


# Gives a launch's CPUs to its processes alone: their control group becomes an isolated cpuset partition.
#
# It is made when everybody is in the group and stands still: until then programs could not be started on these CPUs,
# which nobody outside may use. The kernel balances no threads among them, so that members have one CPU each.

KNOB, _ISOLATION_KIND = "cpuset", "cpuset-controller"  # of a study, of the journal
Record = dict[str, dict[str, str]]  # what each file held before, and what it was set to


def refuse_several_cpus(cohort: Cohort) -> None:
    """Refuse members with threads that the kernel would leave where they began."""
    for member in cohort.members:
        if len(member.cpus) > 1:
            raise _isolation_impossible(
                f"{member.workload} has {len(member.cpus)} CPUs, and in an isolated partition the kernel does not "
                "move threads to CPUs that are idle"
            )


@contextmanager
def isolated(group: Path | None, cpus: Collection[int], journal: Journal, purpose: str, say: Say) -> Iterator[Record]:
    """Make the group a partition of these CPUs for as long as this lasts; everything else leaves them, we first."""
    if group is None:
        raise _isolation_impossible("members are stopped by signals here, not by control groups of version 2")
    if not cgroups.has_controller(group.parent):
        why = cgroups.lacking() or f"the controller 'cpuset' does not reach {group.parent}"
        raise _isolation_impossible(why)
    _leave(cpus)
    changes = _changes(group, cpus)
    try:
        for change in changes:  # one by one: the files of the second appear with the first
            for target, error in journal.apply([change], purpose).items():
                raise _isolation_impossible(f"{target}: {error.strerror}")
        say(f"CPUs {format_cpu_list(cpus)} are an isolated cpuset partition")
        record = {
            "before": {change.target: change.former for change in changes},
            "set": {change.target: change.new for change in changes},
        }
        yield record
        if (now := read_text(group / PARTITION)) not in (ISOLATED, None):
            record["lost"] = {str(group / PARTITION): now}
            say(f"{group / PARTITION} is '{now}' at the end, so that others may have run on the launch's CPUs")
    finally:
        targets = {change.target for change in changes}
        undone = journal.restore(lambda entry: entry.owner == journal.owner and entry.change.target in targets)
        for each in undone:
            if each.how in ("foreign", "failed"):
                say(str(each))


def _changes(group: Path, cpus: Collection[int]) -> Sequence[Change]:
    above = group.parent / HANDED_DOWN
    handed = [] if cgroups.read_controller(above) == ON else [Change(KNOB, _ISOLATION_KIND, str(above), OFF, ON)]
    # It has no CPUs of its own before, which means its parent's; an empty list is refused while somebody is in it.
    all_cpus = read_text(group.parent / EFFECTIVE) or ""
    return [
        *handed,
        Change(KNOB, "file", str(group / CPUS), all_cpus, format_cpu_list(cpus)),
        Change(KNOB, "file", str(group / PARTITION), MEMBER, ISOLATED),
    ]


def _leave(cpus: Collection[int]) -> None:
    """Go elsewhere by ourselves, or find that there is nowhere to go."""
    own = os.sched_getaffinity(0)
    if not own - set(cpus):
        raise _isolation_impossible(f"the launch is on every CPU that castmates may use ({format_cpu_list(own)})")
    os.sched_setaffinity(0, own - set(cpus))


def _isolation_impossible(why: str) -> CastmatesError:
    return CastmatesError(f"{KNOB} cannot be 'isolated' here: {why}; {LEAVE_OUT}.")


# The hardware prefetchers of a launch's cores are switched off in the scenes whose shares say so.
#
# Registers belong to cores, so everybody's are switched together: a sibling's would be switched with them anyway.

_PREFETCHERS_KNOB = "prefetchers of a scene"  # in the journal, beside the knob that a study sets for whole launches


class Prefetchers:
    """The registers of these cores, as found and with every prefetcher off."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes
        self.off = False  # what was asked for

    def apply(self, shares: Iterable[Share]) -> None:
        """Switch them off where a share says so, and else back to what was found."""
        off = any(share.prefetchers == "off" for share in shares)
        if off == self.off:
            return
        for change in self._changes:
            try:
                KINDS[change.kind].write(Path(change.target), change.new if off else change.former)
            except OSError as error:
                raise _refusal(change.target, error) from None
        self.off = off

    def asked(self) -> dict[str, str]:
        """What every register was asked to hold."""
        return {change.target: change.new if self.off else change.former for change in self._changes}

    def read_back(self) -> dict[str, str]:
        """What every register holds; "" where it cannot be read."""
        return {change.target: _read(change) for change in self._changes}


def wanted(cohort: Cohort) -> bool:
    """Whether some scene has its prefetchers off."""
    return any(share.prefetchers for scene in cohort.scenes for share in scene.shares)


@contextmanager
def switched(cohort: Cohort, purpose: str, journal: Journal, say: Say, root: Path = Path("/")) -> Iterator[Prefetchers]:
    """Prepare to switch them, before anything is launched; at the end they are as they were found.

    They are switched off and on once: where registers cannot be written nothing is launched.
    """
    if not wanted(cohort):
        yield Prefetchers(())
        return
    changes = [
        Change(_PREFETCHERS_KNOB, change.kind, change.target, change.former, change.new)
        for change in switches_off(root, {cpu for member in cohort.members for cpu in member.cpus})
    ]
    try:
        for target, error in journal.apply(changes, purpose).items():
            raise _refusal(target, error)
        prefetchers = Prefetchers(changes)
        prefetchers.off = True
        prefetchers.apply(())
        yield prefetchers
    finally:
        for undone in journal.restore(
            lambda entry: entry.owner == journal.owner and entry.change.knob == _PREFETCHERS_KNOB
        ):
            if undone.how in ("foreign", "gone", "failed"):
                say(str(undone))


def _read(change: Change) -> str:
    try:
        return KINDS[change.kind].read(Path(change.target))
    except OSError:
        return ""


def _refusal(target: str, error: OSError) -> CastmatesError:
    return CastmatesError(
        f"{NAME} cannot be switched: {target}: {error.strerror}; run the study as root, with the kernel not locked "
        f"down and without msr.allow_writes=off, {TAKE_OUT}."
    )
