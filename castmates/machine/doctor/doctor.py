"""Shows what this machine offers a study, what each lack costs, and how to change it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from castmates.machine import quirks
from castmates.machine.doctor import cpu, memory, rdt, tools
from castmates.machine.doctor.caches import special_caches
from castmates.machine.doctor.check import Check
from castmates.machine.doctor.features import features
from castmates.machine.doctor.latencies import memory_latencies
from castmates.machine.topology import Topology

if TYPE_CHECKING:
    from rich.console import Group

STYLES = {"yes": "green", "no": "red", "partly": "yellow", "unknown": "dim"}


def examine(facts: Mapping[str, Any], topology: Topology) -> list[Check]:
    """Judge the facts row by row; nothing is read or tried here."""
    return [
        cpu.cores(topology),
        cpu.equal_cores(topology),
        cpu.smt(facts, topology),
        cpu.llc(facts, topology),
        cpu.numa(facts, topology),
        *special_caches(facts, topology),
        cpu.balanced(facts, topology),
        memory.room(facts, topology),
        memory.huge_pages(facts),
        memory.peak(facts),
        rdt.kernel(facts),
        rdt.mounted(facts),
        *filter(None, [rdt.default_class(facts)]),
        rdt.permission(facts),
        *features(facts),
        rdt.verified(facts),
        rdt.pqos(facts),
        *_known_quirks(facts),
        tools.perf(facts),
        tools.hardware_counters(facts),
        tools.software_counters(facts),
        tools.counting(facts),
        tools.counts_verified(facts),
        tools.paranoid(facts),
        tools.freezing(facts),
        tools.cpuset_partition(facts),
        tools.put_back(facts),
        cpu.governor(facts),
        cpu.turbo(facts),
        cpu.swap(facts),
        cpu.steal(facts),
        tools.tracing(facts),
        memory_latencies(facts),
        tools.compiler(facts),
        tools.tensorflow_python(facts),
        tools.gpus(facts),
        tools.packages(facts),
        tools.plugins(facts),
    ]


def as_json(checks: Sequence[Check]) -> str:
    """Render the rows as a JSON list of objects with the keys name, state, finding, cost, remedy and change."""
    return json.dumps([asdict(check) for check in checks], indent=2, ensure_ascii=False)


def as_table(checks: Sequence[Check]) -> "Group":
    """Render the rows, then what each lack costs, for a rich console, which leaves colours out on a pipe."""
    from rich import box
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("finding", overflow="fold")
    notes: list[RenderableType] = []
    for check in checks:
        # Text, not markup: a kernel's own brackets must come out as they are.
        table.add_row(Text(check.name), Text(check.state, style=STYLES[check.state]), Text(check.finding))
        if check.state != "yes" and not check.remedy.startswith("See "):
            notes.append(Text(f"{check.name}: {check.cost}", style="bold"))
            notes.append(Padding(Text(check.remedy), (0, 0, 0, 4)))
    return Group(table, *notes)


def _known_quirks(facts: Mapping[str, Any]) -> list[Check]:
    """Return a row for each quirk that no other row shows, or one that there is none."""
    shown = [quirk for quirk in quirks.applicable(facts) if not quirk.row]
    if not shown:
        return [Check("known quirks", "yes", "none for this processor and kernel")]
    return [Check(f"known quirks: {one.name}", "partly", one.heading(facts), one.happens, one.do) for one in shown]
