"""Explains in a sentence what resctrl refused and why: the error number first, the kernel's own words beside it."""

import errno

from castmates.errors import CastmatesError
from castmates.rdt.resctrl.tree import Tree

STATUS = "info/last_cmd_status"

# The error numbers that mean the same whatever was tried.
ADVICE = {
    errno.EACCES: "this user may not: run as root, or let root prepare groups once with `castmates doctor --grant`",
    errno.EPERM: "this is not permitted here: run as root, outside of containers; where the processor only monitors, "
    "no control group can be made",
    errno.EROFS: "resctrl is mounted read-only here, as in containers: start the container with "
    "-v /sys/fs/resctrl:/sys/fs/resctrl, or run on the host",
    errno.ENOENT: "the group is gone: somebody has removed it, or unmounted resctrl, or run `pqos -R`",
    errno.ENODEV: "the group is gone: somebody has removed it, or unmounted resctrl, or run `pqos -R`",
}


def reason(tree: Tree, error: OSError) -> str:
    """Name the error, and what the kernel reports of its last command; to be called at once, under the lock.

    Its report is not trusted: every user's command overwrites it, and some refusals leave it at "ok".
    """
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    try:
        lines = tree.read(STATUS).splitlines()
        report = " / ".join(dict.fromkeys(line for line in lines if line))  # kernels append to what was there
    except OSError:
        report = ""
    return f"{code}, '{report}'" if report not in ("", "ok") else f"{code}, without a message from the kernel"


def refusal(tree: Tree, error: OSError, what: str, advice: str = "") -> CastmatesError:
    """Return the one sentence: what was refused, why, and what to do."""
    remedy = advice or ADVICE.get(error.errno or 0, "")
    return CastmatesError(f"resctrl refused to {what} ({reason(tree, error)})" + (f": {remedy}." if remedy else "."))
