"""Whether this machine is the lab's: a real kernel on a processor whose caches and counters are invented."""

from pathlib import Path

from castmates.linux.host import cpuinfo

LAB = "RDT-lab"  # in the processor's name


def platform_here(root: Path = Path("/")) -> str:
    """Return where figures that are taken here come from: `measured`, or `emulated` in the lab."""
    return "emulated" if LAB in cpuinfo(root).get("model name", "") else "measured"
