"""Where the mixes of a study would sit on a machine."""

from io import StringIO

from rich.console import Console
from rich.table import Table

from castmates.machine.topology import Topology
from castmates.preview.terminal import width
from castmates.project import Project, layout_of
from castmates.study.cpus import format_cpu_list


def describe_places(project: Project, topology: Topology) -> str:
    """CPUs, caches and memory nodes of every member on that machine, as text for a terminal."""
    layout = layout_of(topology)
    cast = project.cast(layout)
    table = Table("mix", "role", "workload", "CPUs", "cache", "memory node", box=None)
    mixes = {mix.identity: mix for mix in (*cast.mixes, *(control.mix for control in cast.controls))}
    for mix in mixes.values():
        for name in (mix.lead, *mix.antagonists):
            member = cast.members[name]
            caches = {cpu.llc for cpu in layout.cpus if cpu.id in member.cpus} - {None}
            table.add_row(
                mix.name if name == mix.lead else "",
                member.role,
                member.workload,
                format_cpu_list(member.cpus),
                format_cpu_list(cache for cache in caches if cache is not None) or "unknown",
                format_cpu_list(member.nodes) or "not bound",
            )
    text = StringIO()
    Console(file=text, width=width(), highlight=False, color_system=None).print(table)
    return text.getvalue()
