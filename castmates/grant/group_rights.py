"""Gives a user groups of resctrl, to write their masks and to move the user's own processes there, and nothing else.

The kernel lets users move tasks that they own (the effective user, rdtgroup_task_write_permission), and write
what the file's permissions allow. Making and removing groups stays root's: the root folder would give everybody's. So
do the files `cpus` and `cpus_list`: they take CPUs from all other groups, and with them all that is in the default one.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.grant.perf import Grantee, Granting, Step, granted
from castmates.linux import cgroups
from castmates.linux.kernel_files import below
from castmates.linux.owner import born_of, delegated_group_name
from castmates.linux.processes import status_of
from castmates.machine.facts import resctrl as resctrl_facts
from castmates.machine.journal import Change
from castmates.machine.resctrl_state import ANYTHING, POINT, read_schemata

FILES = ("tasks", "schemata")
ENOUGH = 6  # a lead, antagonists, and one with everything; fewer where the processor has fewer classes


def give_groups(granting: Granting, groups: int, default_group: bool, root: Path = Path("/")) -> None:
    """Mount resctrl unless it is, make the groups, and hand their files over."""
    facts = resctrl_facts(root)
    if not facts["kernel"]:
        granting.leave("nothing to give: the kernel has no resctrl for this processor, so there are no partitions")
        return
    here = below(root, facts["mounted"] or str(POINT))
    if facts["mounted"] is None and not _mount(granting, here):
        return
    for number in range(groups):
        if not _group(granting, here / delegated_group_name(granting.grantee.uid, number), number):
            break
    if default_group:
        _hand_over_default(granting, here / "schemata")


def not_given(grantee: Grantee, root: Path = Path("/")) -> str:
    """Describe what partitions lack as long as the default group's masks are root's, or ""."""
    mounted = resctrl_facts(root)["mounted"]
    if mounted is None or (below(root, mounted) / "schemata").stat().st_uid == grantee.uid:
        return ""
    return (
        "Partitions will not limit the rest of the machine, whose masks stay root's: it keeps all ways, and may fill"
        " those of a program. `sudo castmates doctor --grant --default-group` hands its masks over too."
    )


def _mount(granting: Granting, here: Path) -> bool:
    advice = "in a container mount it on the host, and start the container with -v /sys/fs/resctrl:/sys/fs/resctrl"
    return granting.give(Step("resctrl is mounted", "resctrl-mount", here, "mounted", f"umount {here}"), advice)


def _group(granting: Granting, group: Path, made: int) -> bool:
    """Make one group and hand its files over; False where the processor has no class for it."""
    what = f"a group of {granting.grantee.name}'s with its own masks"
    error = granting.attempt(Step(what, "group", group, cgroups.THERE, f"rmdir {group}"))
    if error is not None and error.errno == errno.ENOSPC and made:
        granting.leave(f"no more than {made} groups: the processor has no class for another one")
    elif error is not None:
        advice = "remove groups that are not used (castmates doctor names them)" if error.errno == errno.ENOSPC else ""
        granting.refuse(f"{what}: {group}: {error.strerror}", advice)
    if error is not None:
        return False
    return all(_hand_over(granting, group / name, name) for name in FILES)


def _hand_over_default(granting: Granting, file: Path) -> None:
    """Note the masks before the user can write them: the user's own journal cannot be read later."""
    noted = any((entry.change.kind, entry.change.target) == ("resctrl-schemata", str(file)) for entry in granted())
    what = "the masks of all processes that are in no group"
    try:
        masks = read_schemata(file)
    except OSError as error:
        granting.refuse(f"{what}: {file}: {error.strerror}")
        return
    if not noted:
        change = Change("default group's masks", "resctrl-schemata", str(file), masks, ANYTHING)
        granting.journal.announce([change], f"{granting.grantee.name}'s sweeps")
    _hand_over(granting, file, what)


def _hand_over(granting: Granting, file: Path, what: str) -> bool:
    if not file.exists():
        return True
    words = f"{what}: belongs to {granting.grantee.name}"
    return granting.give(Step(words, "owner", file, granting.grantee.owner, f"chown root:root {file}"))


# Gives a user a part of the control groups in which members can be frozen, bounded and killed.
#
# Users may move processes only inside their own part, so the shell from which sweeps are started must be in it: it is
# moved there, and what it starts is born there. systemd does the same for a scope, and then root need not.

SCOPE = "systemd-run --user --scope -p Delegate=yes"
# What the user may do there, and where: version 1 has a hierarchy for each controller. Under version 2 CPU time is not
# bounded there: the shell is in the group, and from a group with processes the kernel hands no controller down.
PLACES = {
    "freeze": cgroups.unified,
    "bound": cgroups.pids_of_version_1,
    "hold back": cgroups.cpu_of_version_1,
}


def give_control_groups(granting: Granting, shell: int | None) -> None:
    """Delegate a group to the user beside the shell, in each hierarchy that the runner uses, and move it there."""
    if shell is None:
        granting.leave(_without_shell(granting.grantee))
        return
    if uid_of(shell) != granting.grantee.uid:
        raise CastmatesError(
            f"--shell {shell}: this is not a process of {granting.grantee.name}; give the number that `echo $$` prints "
            "in the shell from which sweeps are to be started"
        )
    is_given = False
    for what, place in PLACES.items():
        home = cgroups.group_of(shell, place)
        if home is not None and home.is_dir():
            is_given = True
            _delegate(granting, home, shell, what)
    if not is_given:
        granting.leave("nothing to give: no control groups are mounted here, so members are stopped by signals")


def has_scopes(grantee: Grantee) -> bool:
    """Check whether systemd serves this user: the user's own scope is delegated without root."""
    return Path(f"/run/user/{grantee.uid}/systemd/private").exists()


def calling_shell(grantee: Grantee) -> int | None:
    """Find the process of the user from which we were started, through sudo; None where there is none."""
    return next((pid for pid in _ancestors() if uid_of(pid) == grantee.uid), None)


def uid_of(pid: int) -> int | None:
    """Return the real user of a process; sudo's own is root's by then."""
    words = status_of(pid).get("Uid", "").split()
    return int(words[0]) if words and set(words[:3]) == {words[0]} else None


def group_name(grantee: Grantee) -> str:
    """Return the name of the user's part."""
    return f"castmates-{grantee.uid}"


def _delegate(granting: Granting, home: Path, shell: int, what: str) -> None:
    grantee = granting.grantee
    group = home if home.name == group_name(grantee) else home / group_name(grantee)
    undo = f"rmdir {group}, when it is empty"
    advice = "inside a container /sys/fs/cgroup must be writable"
    words = f"a control group in which {grantee.name} may {what} processes"
    if not granting.give(Step(words, "group", group, cgroups.THERE, undo), advice):
        return
    for name in cgroups.DELEGATED:
        file = group / name
        words = f"{file.name} belongs to {grantee.name}"
        step = Step(words, "owner", file, grantee.owner, f"chown root:root {file}")
        if file.exists() and not granting.give(step, advice):
            return
    _move(granting, group, shell)


def _move(granting: Granting, group: Path, shell: int) -> None:
    """Move the shell; to undo it, the group's removal moves everybody back to the one above it."""
    if shell in cgroups.processes(group):
        granting.leave(f"already: the shell (process {shell}) is in {group}")
        return
    try:
        cgroups.move(group, shell)
    except OSError as problem:
        granting.refuse(f"moving the shell (process {shell}) into {group}: {problem.strerror}")
        return
    granting.say(f"  the shell (process {shell}) is now in {group}, and so is all that it starts")
    granting.say(f"      undo: echo {shell} > {group.parent / cgroups.PROCESSES}")


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1 and born_of(pid) is not None:
        yield pid
        pid = int((status_of(pid).get("PPid")) or 0)


def _without_shell(grantee: Grantee) -> str:
    if has_scopes(grantee):
        return f"nothing to give: systemd lets {grantee.name} have a scope without root; start sweeps with: {SCOPE} …"
    return (
        f"nothing to give: no shell of {grantee.name} called us; name one with --shell PID (`echo $$` prints its "
        "number), or members are stopped by signals"
    )
