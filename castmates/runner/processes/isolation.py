"""Gives a launch's CPUs to its processes alone: their control group becomes an isolated cpuset partition.

It is made when everybody is in the group and stands still: until then programs could not be started on these CPUs,
which nobody outside may use. The kernel balances no threads among them, so that members have one CPU each.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import cpuset_partition
from castmates.linux.cpuset_partition import CPUS, EFFECTIVE, HANDED_DOWN, ISOLATED, MEMBER, OFF, ON, PARTITION
from castmates.linux.kernel_files import read_text
from castmates.machine.journal import Change, Journal
from castmates.machine.quieting import LEAVE_OUT
from castmates.protocols import Say
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import Cohort

KNOB, KIND = "cpuset", "cpuset-controller"  # of a study, of the journal
Record = dict[str, dict[str, str]]  # what each file held before, and what it was set to


def refuse_several_cpus(cohort: Cohort) -> None:
    """Refuse members with threads that the kernel would leave where they began."""
    for member in cohort.members:
        if len(member.cpus) > 1:
            raise _impossible(
                f"{member.workload} has {len(member.cpus)} CPUs, and in an isolated partition the kernel does not "
                "move threads to CPUs that are idle"
            )


@contextmanager
def isolated(group: Path | None, cpus: Collection[int], journal: Journal, purpose: str, say: Say) -> Iterator[Record]:
    """Make the group a partition of these CPUs for as long as this lasts; everything else leaves them, we first."""
    if group is None:
        raise _impossible("members are stopped by signals here, not by control groups of version 2")
    if not cpuset_partition.has_controller(group.parent):
        why = cpuset_partition.lacking() or f"the controller 'cpuset' does not reach {group.parent}"
        raise _impossible(why)
    _leave(cpus)
    changes = _changes(group, cpus)
    try:
        for change in changes:  # one by one: the files of the second appear with the first
            for target, error in journal.apply([change], purpose).items():
                raise _impossible(f"{target}: {error.strerror}")
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
    handed = [] if cpuset_partition.read_controller(above) == ON else [Change(KNOB, KIND, str(above), OFF, ON)]
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
        raise _impossible(f"the launch is on every CPU that castmates may use ({format_cpu_list(own)})")
    os.sched_setaffinity(0, own - set(cpus))


def _impossible(why: str) -> CastmatesError:
    return CastmatesError(f"{KNOB} cannot be 'isolated' here: {why}; {LEAVE_OUT}.")
