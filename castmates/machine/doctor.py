"""Says what this machine offers a study, what each lack costs, and how to change it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from castmates.machine import checks_cpu, checks_rdt, checks_tools
from castmates.machine.checks import Check
from castmates.machine.topology import Topology

if TYPE_CHECKING:
    from rich.console import Group

STYLES = {"yes": "green", "no": "red", "partly": "yellow", "unknown": "dim"}


def examine(facts: Mapping[str, Any], topology: Topology) -> list[Check]:
    """Judge the facts row by row; nothing is read or tried here."""
    return [
        checks_cpu.cores(topology),
        checks_cpu.equal_cores(topology),
        checks_cpu.smt(facts, topology),
        checks_cpu.llc(facts, topology),
        checks_cpu.numa(facts, topology),
        checks_cpu.balanced(facts, topology),
        checks_rdt.kernel(facts),
        checks_rdt.mounted(facts),
        checks_rdt.permission(facts),
        *checks_rdt.features(facts),
        checks_rdt.verified(facts),
        checks_rdt.pqos(facts),
        checks_tools.perf(facts),
        checks_tools.hardware_counters(facts),
        checks_tools.software_counters(facts),
        checks_tools.counting(facts),
        checks_tools.counts_verified(facts),
        checks_tools.paranoid(facts),
        checks_tools.freezing(facts),
        checks_tools.put_back(facts),
        checks_cpu.governor(facts),
        checks_cpu.turbo(facts),
        checks_cpu.swap(facts),
        checks_cpu.steal(facts),
        checks_tools.tracing(facts),
        checks_tools.compiler(facts),
        checks_tools.tensorflow_python(facts),
        checks_tools.packages(facts),
    ]


def as_json(checks: Sequence[Check]) -> str:
    """Render the rows as a JSON list of objects with the keys name, state, found, cost and remedy."""
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
    table.add_column("found", overflow="fold")
    notes: list[RenderableType] = []
    for check in checks:
        # Text, not markup: a kernel's own brackets must come out as they are.
        table.add_row(Text(check.name), Text(check.state, style=STYLES[check.state]), Text(check.found))
        if check.state != "yes":
            notes.append(Text(f"{check.name}: {check.cost}", style="bold"))
            notes.append(Padding(Text(check.remedy), (0, 0, 0, 4)))
    return Group(table, *notes)
