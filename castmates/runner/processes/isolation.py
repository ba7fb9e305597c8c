"""Gives a launch's CPUs to its processes alone, and switches their prefetchers off where scenes ask for that.

The control group becomes an isolated cpuset partition when everybody is in it and stands still: until then programs
could not be started on these CPUs, which nobody outside may use. The kernel balances no threads among them, so that
members have one CPU each.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cgroups
from castmates.linux.cgroups import CPUS, EFFECTIVE, HANDED_DOWN, ISOLATED, MEMBER, OFF, ON, PARTITION
from castmates.linux.kernel_files import read_text
from castmates.machine.journal import KINDS, Change, Journal
from castmates.machine.knobs import LEAVE_OUT, NAME, TAKE_OUT, switches_off
from castmates.protocols import Say
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import Cohort, Share

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
