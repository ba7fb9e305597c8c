"""Small studies and plans for tests."""

from collections.abc import Iterable, Mapping

from castmates.study import catalogue, mixes, planning
from castmates.study.cache import Cache
from castmates.study.model import Study, Workload
from castmates.study.placement.layout import Cpu, Layout
from castmates.study.scenes import Room
from castmates.study.spec import Launch, Plan, Prepared

ENVIRONMENTS = ("native", "tfmodels")


def workloads(*names: str, **extra: Workload) -> dict[str, Workload]:
    plain = {name: Workload(command=f"{name} --go", progress="heartbeat", unit="step") for name in names}
    return plain | extra


def study(leads: Iterable[str], antagonists: Iterable[str], **keys: object) -> Study:
    return Study.model_validate(
        {"name": "test", "leads": list(leads), "antagonists": list(antagonists), "controls": None, **keys}
    )


def prepared(programs: dict[str, Workload], content: str = "c", key: str = "k") -> dict[str, Prepared]:
    return {name: Prepared(environment_key=one.environment and key, content=content) for name, one in programs.items()}


def layout(cpus: Iterable[int]) -> Layout:
    """A plain machine: every CPU a core, all under one cache."""
    return Layout(tuple(Cpu(cpu, core=cpu, llc=0, node=0, package=0) for cpu in cpus), memory=(0,))


def plan(
    one: Study,
    measured: Iterable[Launch] = (),
    cpus: Iterable[int] = (0, 1),
    programs: dict[str, Workload] | None = None,
    content: str = "c",
    key: str = "k",
    placebo: str = "p",
    room: Room | None = None,
    cache: Cache | None = None,
    decided: Mapping[str, int] | None = None,
) -> Plan:
    programs = programs or workloads(*one.leads, *one.antagonists, *_named(one))
    catalogue.check_names(one, programs, "study.yaml")
    there = mixes.Programs(programs, prepared(programs, content, key), placebo)
    cast = mixes.resolve(one, there, mixes.Host(layout(cpus), cache), "study.yaml")
    titles = {name: program.title for name, program in programs.items()}
    return planning.extend(one, cast, titles, key, measured, room, decided)


def _named(one: Study) -> list[str]:
    return [name for rule in one.mixes for name in (rule.lead, *rule.antagonists)]
