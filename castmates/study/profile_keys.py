"""The key `profile` of a study: launches apart from all others, in which steps of the leads are traced."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from castmates.study.counter_keys import MOST_RANGES, CounterKeys
from castmates.study.written import Amount, Written

FEWEST_FOR_INTERVALS = 3  # launches


class ProfileKeys(Written):
    """How often, and for how long, leads are traced (docs/operations.md)."""

    steps: int = Field(
        default=8, ge=1, le=1000, description="steps of the lead in each trace; a trace of one step may be all start-up"
    )
    times: int = Field(default=3, ge=1, le=100, description="traces of each scene in a launch, in random order")
    launches: int = Field(
        default=FEWEST_FOR_INTERVALS,
        ge=1,
        le=100,
        description=f"launches of each lead beside its antagonists; intervals want {FEWEST_FOR_INTERVALS} at least",
    )
    keep: Amount = Field(
        default="200 MB",
        description="how much of the traces themselves a launch keeps on disk, such as 1 GB; 0 B for none. What was "
        "read of them is kept always",
    )
    scenes: Annotated[list[Literal["alone", "corun"]], Field(min_length=1)] = Field(
        default=["alone", "corun"],
        description="kinds of scenes that are traced: the lead alone, and beside its antagonists",
    )
    ranges: int = Field(
        default=0,
        ge=0,
        le=MOST_RANGES,
        description="annotations (phases, ranges, instants, epochs) near the traces that a launch keeps one by one of "
        "a lead with 'phases: true', at most, and joins to operations; 0 for none",
    )
    primitives: bool = Field(
        default=False,
        description="as many further launches, in which oneDNN logs each primitive that it executes: which "
        "implementation, with which instructions, on which shapes. The other launches stay as they are",
    )
    first_epoch: bool = Field(
        default=False,
        description="as many further launches, of leads that read records: each trace begins with the first record, "
        "read once from storage, as in a first epoch, and once from the page cache. The others stay as they are",
    )


def traceable(keys: ProfileKeys, study: Mapping[str, object]) -> ProfileKeys:
    """The keys, in a study (what is known of it) whose leads run, and are not profiled in measured launches too."""
    if study.get("platform") == "modelled":
        raise ValueError("no 'profile' in a study whose platform is modelled: nothing runs that could be traced")
    counters = study.get("counters")
    if isinstance(counters, CounterKeys) and counters.profile:
        raise ValueError("no 'profile' beside 'counters.profile', which traces steps after the rounds of launches")
    return keys
