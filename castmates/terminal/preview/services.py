"""What `castmates plan` shows of open-loop services: their loads, what they are judged by, and limits on latencies."""

from castmates.english import listed
from castmates.project import Project
from castmates.study.services import load_of, service_members
from castmates.study.spec import Plan

MANY = 6  # services that are named one by one


def lines(project: Project, plan: Plan) -> list[str]:
    """A sentence on the services, and one on each limit; none without a service."""
    found = {member.workload: member for member in service_members(plan).values()}
    if not found:
        return []
    ordered = sorted(found.items(), key=lambda one: load_of(one[1]) or 0.0)
    names = [_with_load(name, load_of(member)) for name, member in ordered[:MANY]]
    names += [f"{len(found) - MANY} more"] if len(found) > MANY else []
    judged = f"{listed(names)}: judged by the p99 of request latency, not by rate"
    sharing = [name for name, member in found.items() if len(member.cpus) == 1]
    shared = ["server and load generator share a CPU where they have one (castmates help services)"] if sharing else []
    limits = project.study.recommend.latency
    keep = [f"which load keeps {listed([f'{name} below {time}' for name, time in limits.items()])}"] if limits else []
    return [judged, *shared, *keep]


def _with_load(name: str, load: float | None) -> str:
    return name if load is None else f"{name} ({load:,.0f} a second)"
