"""The dials of a plan: workloads that hold a pressure, and how much of the cache or of memory's bandwidth that is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from castmates.study.last_level import NATIVE
from castmates.study.modelled import LINE, WorkloadModel
from castmates.study.sizes import asked_of
from castmates.study.spec import Member, Plan
from castmates.study.written import bytes_of

CAPACITY, BANDWIDTH = "capacity", "bandwidth"
RATE = "--rate"


@dataclass(frozen=True)
class Dial:
    """What a dial is set to."""

    kind: str  # CAPACITY, BANDWIDTH
    amount: float  # MiB of the cache; 1e9 bytes a second


def dials_of(plan: Plan) -> set[str]:
    """The workloads that hold their rate: what they lose themselves is next to nothing, whatever runs beside them."""
    bubbles = plan.prediction.bubbles if plan.prediction else ()
    return {
        *bubbles,
        *(each.workload for each in _members(plan) if each.environment == NATIVE and RATE in each.command),
    }


def settings_of(plan: Plan, bubbles: Iterable[str]) -> Mapping[str, Dial]:
    """What these bubbles are set to, as far as their commands or their models show it."""
    names = set(bubbles)
    found = {each.workload: _setting(each) for each in _members(plan) if each.workload in names}
    return {name: dial for name, dial in found.items() if dial is not None}


def _members(plan: Plan) -> Iterable[Member]:
    return (member for cohort in plan.cohorts for member in cohort.members)


def _setting(member: Member) -> Dial | None:
    if member.model is not None:
        return _modelled(member.model)
    if member.environment != NATIVE or not member.command:
        return None
    asked = asked_of(member, None, None)
    if asked.kernel == CAPACITY and asked.bytes:
        return Dial(CAPACITY, asked.bytes / 2**20)
    if asked.kernel == BANDWIDTH and asked.rate:
        return Dial(BANDWIDTH, asked.rate / 1e9)
    return None


def _modelled(model: WorkloadModel) -> Dial | None:
    """One working set and nothing else is capacity; nothing but a stream that hardly waits is bandwidth."""
    if len(model.reuse) == 1 and model.streaming < 1e-9:
        return Dial(CAPACITY, bytes_of(model.reuse[0].size) / 2**20)
    if not model.reuse and model.accesses:
        return Dial(BANDWIDTH, model.accesses * LINE * (1 + model.writes) / model.compute / 1e9)
    return None
