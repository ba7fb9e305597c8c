"""Which members of a plan are open-loop services, under which load, and which are one service at several loads."""

import re
from collections.abc import Sequence

from castmates.study.spec import Member, Plan

LOAD = "--load"
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([KM]?)")
_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6}


def service_members(plan: Plan) -> dict[str, Member]:
    """The services of a plan, by the member's name."""
    return {member.name: member for cohort in plan.cohorts for member in cohort.members if member.requests}


def service_workloads(plan: Plan) -> set[str]:
    """The workloads that are services."""
    return {member.workload for member in service_members(plan).values()}


def load_of(member: Member) -> float | None:
    """Requests a second that its command offers; None where that is not known."""
    words = [*member.command, ""]
    found = _NUMBER.fullmatch(words[words.index(LOAD) + 1]) if LOAD in words else None
    return float(found[1]) * _FACTORS[found[2]] if found else None


def same_service(member: Member) -> tuple[object, ...]:
    """What members have in common that differ in their load alone."""
    return _without_load(member.command), member.content, member.cpus, tuple(sorted(member.variables.items()))


def _without_load(command: Sequence[str]) -> tuple[str, ...]:
    words = list(command)
    if LOAD in words:
        at = words.index(LOAD)
        del words[at : at + 2]
    return tuple(words)
