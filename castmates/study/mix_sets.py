"""The key `mixes` of a study: a list of mixes, or keys that make them: drawn at random, or all pairs of a set."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from castmates.study.mix_keys import ArrangedMix
from castmates.study.written import Name, Written

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
