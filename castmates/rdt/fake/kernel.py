"""How kernel versions differ in what resctrl answers."""

import errno
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Kernel:
    """The ways of one version."""

    name: str
    pads_values: bool  # schemata in columns: masks "00f", bandwidth " 50"; otherwise "f" and "50"
    tells_sparse: bool  # has info/L3/sparse_masks
    knows_debug: bool  # the mount option that shows every group's CLOSID and RMID
    renames: bool  # a monitoring group can be renamed and moved to another control group
    task_lists: bool  # "12,13" in one write to tasks, a text for each refusal; an empty write is no error
    rmid_first: bool  # mkdir takes an RMID before a CLOSID
    limbo_for_all: bool  # every freed RMID waits for the limbo worker, also one that has nothing in the cache
    clears_on_cpus: bool  # a write to cpus or cpus_list begins a new last_cmd_status; otherwise it appends
    clears_on_mkdir: bool
    mkdir_in_info: int  # errno
    cuts_mbps: bool = False  # MiB/s are rounded up to the step of per cent and cut to 32 bits (before 2b5648416e47)
    forgets_lost_counts: bool = True  # of ids that the hardware does not track any more (since 15292f1b4c55)
    assigns_counters: bool = False  # has mbm_assign_mode, where the hardware has such counters
    allocates_io: bool = False  # has io_alloc, where the hardware has it
    knows_clusters: bool = True  # sub-NUMA nodes have folders, and mon_L3_* is their sum; else it is the first one's


V6_1 = Kernel(
    name="6.1",
    pads_values=True,
    tells_sparse=False,
    knows_debug=False,
    renames=False,
    task_lists=False,
    rmid_first=True,
    limbo_for_all=False,
    clears_on_cpus=False,
    clears_on_mkdir=False,
    mkdir_in_info=errno.EPERM,
    knows_clusters=False,
)
V6_1_90 = replace(V6_1, name="6.1.90", cuts_mbps=True, forgets_lost_counts=False)  # by the sources
V6_12 = Kernel(
    name="6.12",
    pads_values=True,
    tells_sparse=True,
    knows_debug=True,
    renames=True,
    task_lists=True,
    rmid_first=False,
    limbo_for_all=True,
    clears_on_cpus=False,
    clears_on_mkdir=False,
    mkdir_in_info=errno.EPERM,
)
V7_2 = Kernel(
    name="7.2",
    pads_values=False,
    tells_sparse=True,
    knows_debug=True,
    renames=True,
    task_lists=True,
    rmid_first=False,
    limbo_for_all=True,
    clears_on_cpus=True,
    clears_on_mkdir=True,
    mkdir_in_info=errno.ENODEV,
    assigns_counters=True,
    allocates_io=True,
)
