"""A fake of Linux's resctrl, in memory, that answers as the kernel does: same errno, same text, same content.

It serves the tests of everything that drives resctrl, and the modelled machine. It was made to agree, operation by
operation, with transcripts of real kernels (tests/data/resctrl, tests/unit/rdt/test_fake_transcripts.py).

    fake = FakeResctrl(LAB, V6_1)                # a machine's shape and a kernel version; mounted
    fake.make("g1")                              # a rdt.resctrl.tree.Tree: read write make remove names locked
    fake.write("g1/schemata", "L3:0=f\\n")        # OSError with the kernel's errno where it is refused
    fake.read("info/last_cmd_status")
    pid = fake.processes.fork()                  # the machine's processes: fork clone exit threads
    fake.proc(f"{pid}/cpu_resctrl_groups")       # also "mounts" and "filesystems"
    with fake.acting(pid): ...                   # calls come from that process and its user

Besides: mount, umount, open (handles that outlive their group), rename, unlink, symlink, chmod, chown, stat;
set_online(cpu, ...); fail(group, event, "Unavailable"); advance(seconds), without which no time passes and nothing
leaves limbo; lose(group, domain) and track(group, domain), as AMD treats ids that do not run; msr(cpu, number), which
shows what the processor makes of masks and throttles. A `Source` knows how much lies in the caches and how much has
been moved, `SetNumbers` unless given; `groups`, `group`, `mask`, `bandwidth` and `ruling` show it what is in force.

Where it is known to differ from a kernel:
- There is no pseudo-locking (refused as a machine without support for it refuses). With io_alloc the highest class
  goes to I/O, whose ways cannot be changed.
- What traffic events count can be read where it can be chosen (BMEC), but not changed. The sub-NUMA nodes of a cache
  read equal parts of what it holds; there are no package events.
- On Arm `cdp` is refused, as kernels without CONFIG_EXPERT do.
- With mba_MBps values are kept, and not enforced.
- Counters need no correction, those of a new group begin at zero, and they run over only where a kernel takes a lost
  count for that (`lose` and `track`).
- Permissions know the owner, its group and others, but no capabilities, ACLs or further groups.
- What 6.1.90 does otherwise than 6.1, and what 7.2 does with counters that belong to groups and with io_alloc, is from
  sources, not from a transcript.
"""

from castmates.rdt.fake.group import Group, Handle
from castmates.rdt.fake.kernel import V6_1, V6_1_90, V6_12, V7_2, Kernel, Processes, Thread
from castmates.rdt.fake.monitors import Failure, SetNumbers, Source
from castmates.rdt.fake.resctrl import FakeResctrl, Stat
from castmates.rdt.fake.shape import (
    AMD_CHIPLETS,
    HASWELL,
    LAB,
    LAB_ALLOCATION_ONLY,
    LAB_MONITORING_ONLY,
    LAB_NO_THROTTLE,
    LAB_TWO_SOCKETS,
    NO_RDT,
    SUB_NUMA,
    Shape,
    Throttle,
    Ways,
)

__all__ = [
    "AMD_CHIPLETS",
    "HASWELL",
    "LAB",
    "LAB_ALLOCATION_ONLY",
    "LAB_MONITORING_ONLY",
    "LAB_NO_THROTTLE",
    "LAB_TWO_SOCKETS",
    "NO_RDT",
    "SUB_NUMA",
    "V6_1",
    "V6_1_90",
    "V6_12",
    "V7_2",
    "Failure",
    "FakeResctrl",
    "Group",
    "Handle",
    "Kernel",
    "Processes",
    "SetNumbers",
    "Shape",
    "Source",
    "Stat",
    "Thread",
    "Throttle",
    "Ways",
]
