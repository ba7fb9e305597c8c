"""What a user may write under `mixes` and `mitigations`: who runs beside whom, how near, how many, with what CPU."""

from collections.abc import Callable
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializationInfo,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from castmates.study.cache_keys import Rates, Ways, one_or_list
from castmates.study.written import LOSS, Name, Written

Distance = Literal["smt", "core", "llc", "socket", "other-socket"]  # nearest first
DISTANCES: tuple[Distance, ...] = get_args(Distance)
MOST_COPIES = 256
PERIOD = 10  # milliseconds; the usual 100 would be longer than a slice
LEAST_MS = 1  # that the kernel gives in a period
QUOTAS_EXPECTED = "whole per cents of CPU time from 1% to 99%, or a list of these"
ONCE = "each of them once"


def _quotas(value: object) -> tuple[int, ...]:
    """Take `50%`, or a list of these, for whole per cents; a tuple has them already."""
    if isinstance(value, tuple):
        return value
    percents = [LOSS.read(each) for each in (value if isinstance(value, list) else [value])]
    if not percents or any(percent % 1 for percent in percents):
        raise ValueError(QUOTAS_EXPECTED)
    return tuple(dict.fromkeys(map(int, percents)))


def _quotas_out(percents: tuple[int, ...], info: SerializationInfo) -> list[int] | list[str]:
    return [LOSS.written(percent) for percent in percents] if info.context else list(percents)


def _long_enough(period: int, info: ValidationInfo) -> int:
    """Refuse a period in which a quota is less than the kernel gives."""
    least = min(info.data.get("quota") or (100,))
    if least * period < 100 * LEAST_MS:
        raise ValueError(f"at least {-(-100 * LEAST_MS // least)}, because the kernel gives no less than 1 ms a period")
    return period


Quotas = Annotated[
    tuple[int, ...],
    BeforeValidator(_quotas),
    PlainSerializer(_quotas_out),
    WithJsonSchema(one_or_list([{"type": "string", "pattern": "^[1-9][0-9]? ?%$"}])),
]
Copies = Annotated[int, Field(ge=1, le=MOST_COPIES)]


def _listed(expected: str) -> Callable[[object], object]:
    """Take one for a list of one; an empty list is refused."""

    def listed(value: object) -> object:
        values = value if isinstance(value, list) else [value]
        if not values or any(isinstance(each, bool) or not isinstance(each, int | str) for each in values):
            raise ValueError(expected)
        return values

    return listed


DISTANCES_EXPECTED = f"one of {', '.join(DISTANCES)}, or a list of these"
COUNTS_EXPECTED = f"a whole number from 1 to {MOST_COPIES}, or a list of these"
_DISTANCE, _COUNT = {"enum": list(DISTANCES)}, {"type": "integer", "minimum": 1, "maximum": MOST_COPIES}
Distances = Annotated[
    list[Distance], BeforeValidator(_listed(DISTANCES_EXPECTED)), WithJsonSchema(one_or_list([_DISTANCE]))
]
Counts = Annotated[list[Copies], BeforeValidator(_listed(COUNTS_EXPECTED)), WithJsonSchema(one_or_list([_COUNT]))]


class MixRule(Written):
    """One lead and the antagonists that run beside it at the same time."""

    lead: Name = Field(description="the workload whose loss is studied")
    antagonists: list[Name] = Field(
        min_length=1, description="the workloads beside it; a name twice means two instances"
    )


class CpuShare(Written):
    """What antagonists may take of the CPUs, as clouds give it out."""

    cpus: Literal["lead"] | None = Field(
        default=None, description="lead: the antagonists run on the lead's CPUs, which are thereby overcommitted"
    )
    quota: Quotas = Field(
        default=(),
        description="CPU time that each antagonist may take, of the CPUs that it has (cgroup cpu.max), such as 50%, or "
        "a list; each is measured beside the mix without one",
    )
    period: int = Field(
        default=PERIOD,
        ge=1,
        le=1000,
        validate_default=True,
        description="milliseconds after which the time that 'quota' gives is renewed",
    )
    _period = field_validator("period")(_long_enough)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.model_fields_set and not (self.cpus or self.quota):
            raise ValueError("'cpus', 'quota' or both: a period alone limits nothing")
        return self


class ArrangedMix(MixRule):
    """A mix, in one arrangement or in several."""

    distance: Distances = Field(
        default=[],
        description="how near to the lead the antagonists sit, one or several of smt, core, llc, socket, other-socket "
        "(castmates help placement); each is a mix",
    )
    count: Counts = Field(
        default=[1], min_length=1, description="how many times the antagonists are there, such as [1, 2, 4]"
    )
    share: CpuShare = CpuShare()

    @field_validator("distance", "count")
    @classmethod
    def _each_once(cls, values: list[object]) -> list[object]:
        if len(set(values)) < len(values):
            raise ValueError(ONCE)
        return values

    @field_validator("share")
    @classmethod
    def _one_place(cls, share: CpuShare, info: ValidationInfo) -> CpuShare:
        if share.cpus and info.data.get("distance"):
            raise ValueError("no 'cpus' beside 'distance': both decide where the antagonists sit")
        return share


Kind = Literal["ways", "bandwidth", "code", "core", "socket", "other-socket", "quota"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Mitigated(MixRule):
    """A mix, and what is tried against its loss."""

    distance: Distance | None = Field(
        default=None,
        description="how near to the lead the antagonists sit while nothing is done; as 'placement' has it if left out",
    )
    kinds: list[Kind] = Field(
        default=list(KINDS),
        min_length=1,
        description="what is tried: ways (the best way mask), bandwidth (a throttle), code (ways for code alone), core "
        "(the siblings idle), socket (another last-level cache), other-socket, quota (of CPU time)",
    )
    ways: Ways = Field(default=("all",), description="ways of the lead to choose the best mask from")
    bandwidth: Rates = Field(default=("50%",), description="throttles of the antagonists' memory bandwidth")
    code: Ways = Field(default=("25%",), description="ways for the lead's code alone, of half of the cache")
    quota: Quotas = Field(default=(50,), description="CPU time that each antagonist may take, of its CPUs")
    period: int = Field(
        default=PERIOD,
        ge=1,
        le=1000,
        validate_default=True,
        description="milliseconds after which the time that 'quota' gives is renewed",
    )
    _period = field_validator("period")(_long_enough)
