"""Gives a user a part of the control groups in which members can be frozen, bounded and killed.

Users may move processes only inside their own part, so the shell from which sweeps are started must be in it:
it is moved there, and what it starts is born there. systemd does the same for a scope, and then root need not.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.grant.perf import Grantee, Granting, Step
from castmates.linux import cgroups
from castmates.linux.owner import born_of
from castmates.linux.processes import status_of

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
