"""Weighs control groups against each other and against processes beside them, in either version of the controller."""

from collections.abc import Mapping
from pathlib import Path

from castmates.linux.kernel_files import write_kernel

# The file, the weight of a process that is in no group, and the most.
_FILES = (("cpu.weight", 100, 10_000), ("cpu.shares", 1024, 262_144))


def weigh(cpus: Mapping[Path, int]) -> None:
    """Let each of these groups count on each of so many CPUs as a process does that is in no group.

    The kernel divides a group's weight among the CPUs that it is busy on. With the weight that it begins with, a group
    on eight CPUs would have an eighth of a process's share of each. The proportions hold where there are too many CPUs
    for the largest weight that the kernel takes. Groups that the controller does not reach are left out.
    """
    for file, usual, most in _FILES:
        here = {group: count for group, count in cpus.items() if (group / file).exists()}
        one = min(usual, most // max(here.values(), default=1))
        for group, count in here.items():
            write_kernel(group / file, str(one * count))
