"""Where the mixes of a study sit on a machine."""

from rich.table import Table

from castmates.project import Project
from castmates.study.cpus import format_cpu_list


def places(project: Project) -> Table:
    """CPUs, caches and memory nodes of every member."""
    layout = project.layout()
    cast = project.cast(layout, project.shareable_cache())
    table = Table(box=None, header_style="dim")
    for name in ("mix", "role", "workload", "CPUs", "cache", "memory node"):
        table.add_column(name, overflow="fold")
    everyone = (*cast.mixes, *(control.mix for control in cast.controls))
    mixes = {(mix.lead, mix.antagonists): mix for mix in everyone}  # whatever partitions are tried on them
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
