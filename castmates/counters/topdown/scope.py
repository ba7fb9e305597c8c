"""How perf is made to count one member: its control group, its processes, or its CPUs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castmates.errors import CastmatesError
from castmates.linux.cgroups import memberships
from castmates.linux.kernel_files import PERF_DEVICES
from castmates.linux.processes import Family
from castmates.protocols import Held
from castmates.study.cpus import format_cpu_list, parse

How = Literal["auto", "cgroup", "thread", "cpu"]
HIERARCHIES = ("perf_event", "")  # of v1, else the unified one; perf itself looks for them in this order
DEVICES = Path("/", PERF_DEVICES)
KINDS = ("core", "atom")


@dataclass(frozen=True)
class Scope:
    """Perf's words for one member."""

    name: str  # cgroup, thread, cpu
    words: tuple[str, ...]
    note: str = ""


def scope_of(held: Held, family: Family, how: How, devices: Path = DEVICES) -> Scope | str:
    """Return perf's words for this member, or a sentence that explains why there are none."""
    on = ("-a", "-C", format_cpu_list(held.cpus))
    kind = ("--cputype", core_kind) if (core_kind := kind_of(held.cpus, devices)) else ()
    if how == "cpu":
        return Scope("cpu", (*on, *kind), "everything that ran on the member's CPUs")
    if how != "thread" and (group := group_for_perf(held)):
        return Scope("cgroup", (*on, "--for-each-cgroup", group, *kind))
    if how == "cgroup":
        return "the member has no control group that perf counts by (it needs cgroup v2, or v1's perf_event)"
    living = [str(process.pid) for process in family.living()]
    return Scope("thread", ("-p", ",".join(living), *kind)) if living else "the member ended before perf was started"


def group_for_perf(held: Held, root: Path = Path("/")) -> str:
    """Return perf's name for the member's own group; "" where it is in a hierarchy that perf does not count by."""
    groups = memberships(held.pid, root)
    name = next((groups[hierarchy] for hierarchy in HIERARCHIES if hierarchy in groups), "").strip("/")
    return name if name and held.cgroup and held.cgroup.rstrip("/").endswith(f"/{name}") else ""


def kind_of(cpus: Sequence[int], devices: Path = DEVICES) -> str:
    """Which of a hybrid processor's kinds of core all these CPUs are; "" where they are mixed, and elsewhere."""
    for kind in KINDS:
        with suppress(OSError, ValueError, CastmatesError):
            file = devices / f"cpu_{kind}" / "cpus"
            if set(cpus) <= set(parse(file.read_text().strip(), str(file))):
                return kind
    return ""
