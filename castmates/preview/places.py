"""Where the mixes of a study would sit on a machine."""

from rich.table import Table

from castmates.machine.topology import Topology
from castmates.project import Project, layout_of
from castmates.study.cpus import format_cpu_list


def places(project: Project, topology: Topology) -> Table:
    """CPUs, caches and memory nodes of every member on that machine."""
    layout = layout_of(topology)
    cast = project.cast(layout)
    table = Table(box=None, header_style="dim")
    for name in ("mix", "role", "workload", "CPUs", "cache", "memory node"):
        table.add_column(name, overflow="fold")
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
    return table
