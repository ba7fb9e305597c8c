"""Lets users count what their own processes do, also inside the kernel; not what others' do."""

from pathlib import Path

from castmates.grant.steps import Granting, Step
from castmates.linux.host import SYSCTL

SETTING = f"{SYSCTL}/kernel/perf_event_paranoid"
# The kernel's part of one's own processes, by thread. Whole CPUs, and with them control groups, stay closed to users:
# that would be 0, and shows everybody what others do.
NEEDED = 1


def give(granting: Granting, root: Path = Path("/")) -> None:
    """Lower the threshold as far as it must be, which is less than a capability on the interpreter would give."""
    file = root / SETTING
    try:
        level = int(file.read_text())
    except (OSError, ValueError):
        granting.leave("nothing to give: this kernel has no perf events")
        return
    if level <= NEEDED:
        granting.leave(f"already: users may count their own processes (kernel.perf_event_paranoid is {level})")
        return
    words = f"users may count events of their own processes: kernel.perf_event_paranoid {level} -> {NEEDED}"
    step = Step(words, "file", file, str(NEEDED), f"sysctl kernel.perf_event_paranoid={level}")
    granting.give(step, "in a container set it on the host")
