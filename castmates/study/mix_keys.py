"""What a user may write under `mixes` and `mitigations`: who runs beside whom, how near, how many, with what CPU."""

from collections.abc import Callable
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    SerializationInfo,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from castmates.study.partition_keys import Rates, Ways, one_or_list
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


# The key `mixes` of a study: a list of mixes, or keys that make them: drawn at random, or all pairs of a set.

MOST_BESIDE, MOST_DRAWN = 64, 10_000
SetName = Literal["random", "pairs", "groups"]
RANGE_EXPECTED = f"how many run beside the lead: a number from 1 to {MOST_BESIDE}, or two such as [1, 3]"
SETS_EXPECTED = "a list of mixes, or one of the keys random, pairs, groups and list"
# Parts of a union; in brackets, so that errors do not show them as keys.
LIST, SETS = "[list]", "[sets]"


def _range(value: object) -> tuple[int, int]:
    """Take `2` for from 2 to 2."""
    written = value if isinstance(value, list | tuple) else [value, value]
    ends = [end for end in written if type(end) is int]
    if len(ends) != 2 or len(written) != 2 or not 1 <= ends[0] <= ends[1] <= MOST_BESIDE:
        raise ValueError(RANGE_EXPECTED)
    return ends[0], ends[1]


_BESIDE = {"type": "integer", "minimum": 1, "maximum": MOST_BESIDE}
Range = Annotated[
    tuple[int, int],
    BeforeValidator(_range),
    WithJsonSchema({"anyOf": [_BESIDE, {"type": "array", "items": _BESIDE, "minItems": 2, "maxItems": 2}]}),
]


class RandomMixes(Written):
    """Mixes that are drawn, so that each workload leads, and meets each other, about equally often."""

    count: int = Field(
        ge=1, le=MOST_DRAWN, description="how many; a larger number draws more, and keeps those that were drawn"
    )
    antagonists: Range = Field(
        default=(1, 1),
        description="how many run beside the lead, such as 2; of a range such as [1, 3] each number is drawn about "
        "equally often",
    )
    copies: int = Field(
        default=1,
        ge=1,
        le=MOST_BESIDE,
        description="instances of each of them; they fill a large machine with few different workloads",
    )
    seed: int = Field(default=1, ge=0, description="of the draw; it stays as it is once mixes are drawn")
    pool: list[Name] = Field(
        default=[],
        alias="from",
        description="workloads or tags of the catalogue; those of 'leads' and 'antagonists' if left out. Leads are "
        "drawn from 'leads' where the study has some, and from here otherwise",
    )


class MixSets(Written):
    """Mixes that are not written out one by one."""

    random: RandomMixes | None = Field(default=None, description="mixes drawn at random")
    pairs: Literal["all", "others"] | None = Field(
        default=None,
        description="each of 'leads' and 'antagonists' as lead beside each of them: all, with a second instance of "
        "itself too; others, without",
    )
    groups: list[Annotated[list[Name], Field(min_length=1)]] = Field(
        default=[],
        description="sets of workloads or tags: each member as lead beside each other member of its set; a workload "
        "that is written twice also beside itself",
    )
    listed: list[ArrangedMix] = Field(default=[], alias="list", description="further mixes, written out")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.random is None and self.pairs is None and not self.groups and not self.listed:
            raise ValueError(SETS_EXPECTED)
        return self


class MadeMix(ArrangedMix):
    """A mix that one of the keys of `MixSets` made; no user writes it."""

    made_by: SetName
    insists: bool = True  # the study is refused on a machine that has no place for it


def _kind(value: object) -> str:
    return SETS if isinstance(value, dict | MixSets) else LIST


MixesKey = Annotated[
    Annotated[list[ArrangedMix], Tag(LIST)] | Annotated[MixSets, Tag(SETS)],
    Discriminator(_kind),
]
