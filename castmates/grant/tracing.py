"""Lets a user trace: the system calls of the user's own processes; and if asked, who wakes them and runs instead.

The kernel lets users record raw system calls of their own processes once they can look the two tracepoints up. The
scheduler's tracepoints name other programs too, so the kernel gives them only to who may see the whole machine: the
user gets a copy of perf that may, and that nobody else may run.
"""

import grp
from collections.abc import Collection
from pathlib import Path

from castmates.grant.perf import Granting, Step
from castmates.linux import capable_copy, ownership, tracing_rights
from castmates.linux.host import has_capability
from castmates.linux.kernel_files import below
from castmates.linux.ownership import others_in
from castmates.linux.tracing_rights import INTERRUPTS, SCHEDULER, SYSCALLS, TRACEPOINTS, granted_perf

ADVICE = "in a container grant it on the host"
_SHOWING = ("trace", "trace_pipe", "snapshot")  # what is recorded now, of whomever
_SEARCH = 0o001  # to look a file up by its name, without listing the folder


def give_tracing(granting: Granting, everything: bool, root: Path = Path("/")) -> None:
    """Let the user look up the tracepoints that the user may record; what they describe is no secret."""
    point = tracing_rights.mounted(root)
    if point is None:
        granting.leave("nothing to give: tracefs is not mounted (sudo mount -t tracefs nodev /sys/kernel/tracing)")
        return
    point = below(root, str(point))
    families = (SYSCALLS, SCHEDULER, INTERRUPTS) if everything else (SYSCALLS,)
    if _enter(granting, point) and _look_up(granting, point, [name for each in families for name in TRACEPOINTS[each]]):
        if everything:
            _copy(granting)
        else:
            granting.leave(
                "not given: who wakes a thread and who runs instead of it; this shows all programs of the machine, so "
                "it has to be asked for: --tracing"
            )


def _enter(granting: Granting, point: Path) -> bool:
    try:
        mode = int(ownership.read_mode(point), 8)
    except OSError as problem:
        granting.refuse(f"{point}: {problem.strerror}", ADVICE)
        return False
    if mode & _SEARCH:
        granting.leave(f"already: files in {point} can be looked up by name")
        return True
    # Linux 5.17 took these from everybody; before it only the folder's mode keeps them closed.
    if shown := [str(file) for name in _SHOWING if (file := point / name).exists() and file.stat().st_mode & 0o006]:
        granting.refuse(
            f"{point}: {Path(shown[0]).name} is open to every user, who would see what others record",
            f"close it first: chmod o-rw {' '.join(shown)}",
        )
        return False
    words = "files of tracefs can be looked up by name, by who may read them"
    return granting.give(Step(words, "mode", point, f"{mode | _SEARCH:o}", f"chmod {mode:o} {point}"), ADVICE)


def _look_up(granting: Granting, point: Path, tracepoints: Collection[str]) -> bool:
    """Hand over the descriptions of tracepoints; what would switch one on stays root's."""
    owner = granting.grantee.owner
    for file in tracing_rights.files(point, tracepoints):
        words = f"{file.relative_to(point / 'events')} can be read by {granting.grantee.name}"
        if file.exists() and not granting.give(Step(words, "owner", file, owner, f"chown root:root {file}"), ADVICE):
            return False
    return True


def _copy(granting: Granting) -> None:
    grantee = granting.grantee
    if not has_capability(capable_copy.CAPABILITIES["cap_perfmon"]):
        granting.refuse("tracing: this kernel has no CAP_PERFMON", "it came with Linux 5.8; until then, trace as root")
        return
    if others := others_in(grantee.gid, frozenset({grantee.name})):
        group = grp.getgrgid(grantee.gid).gr_name
        granting.refuse(
            f"tracing: {', '.join(others)} would get it too, by the group {group}",
            f"give {grantee.name} a main group without others",
        )
        return
    copy = granted_perf(grantee.uid)
    words = f"a perf that sees all processes of this machine, for {grantee.name} alone"
    try:
        step = Step(words, "capable-copy", copy, capable_copy.wanted(grantee.gid), f"rm {copy}")
    except OSError as problem:
        granting.refuse(f"tracing: {problem.strerror}")
        return
    if granting.give(step, "the file system there must keep capabilities"):
        granting.leave("this copy stays until `sudo castmates doctor --undo`, whatever is restarted")
