"""The key `profile` of a study: launches apart from all others, in which steps of the leads are traced."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator

from castmates.study.counter_keys import MOST_RANGES, CounterKeys, EventText
from castmates.study.event_spelling import names_of
from castmates.study.written import Amount, Written, bytes_of

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


# The key `trace` of a study: launches in which everything that happens is recorded on one clock.

Family = Literal["scheduler", "syscalls", "faults", "interrupts", "stacks", "latencies"]
USUAL: tuple[Family, ...] = ("scheduler", "syscalls", "faults", "interrupts", "stacks")
FAMILIES: tuple[Family, ...] = (*USUAL, "latencies")
LONGEST = 60  # seconds of a recording
MOST_COUNTS = 4  # that every processor counts at once; perf would have more of them take turns
SHORTEST_CLOCK = 10_000  # ns
LEAST_BUFFER, MOST_BUFFER = 64 * 1024, 512 * 1024**2  # bytes


class TraceKeys(Written):
    """What trace launches record, and of which mixes a sweep has one (docs/tracing.md)."""

    mixes: list[str] = Field(
        default=[],
        description="mixes of which each sweep makes a trace, such as dlrm-train+stream; `castmates trace "
        "record` makes one "
        "of any mix on demand",
    )
    seconds: float = Field(default=5.0, gt=0, le=LONGEST, description="that are recorded in each scene")
    rounds: int = Field(default=1, ge=1, le=20, description="recordings of each scene, in random order")
    steps: int = Field(
        default=8,
        ge=0,
        le=1000,
        description="steps of the lead that its framework profiles within each recording, where it can; 0 for none",
    )
    events: Annotated[list[Family], Field(min_length=1)] = Field(
        default=list(USUAL),
        description="families of events that perf records of the members, and of nobody else; `latencies` only where "
        "it is asked for: sampled loads, on processors with PEBS, IBS or SPE (not tried on real hardware)",
    )
    counts: dict[EventText, Annotated[int, Field(ge=1)]] = Field(
        default={},
        max_length=MOST_COUNTS,
        description="events that are sampled once in so many, each with its period, such as {cache-misses: 10000}: the "
        f"query counts-by-operation has them by operation. {MOST_COUNTS} at most; page-faults are in the family faults",
    )
    members: list[str] = Field(
        default=[], description="workloads whose processes perf records; all of the mix if left out"
    )
    buffer: Amount | None = Field(
        default=None,
        description="of each CPU, into which the kernel writes events, such as 8 MiB; they are lost where it is full. "
        "If left out, as large as this user may have, and 16 MiB at most",
    )
    most: Amount = Field(
        default="2 GB", description="size of the file of recorded events at which a recording ends early"
    )
    keep: Amount = Field(
        default="200 MB",
        description="how much of the raw files a launch keeps on disk, such as 1 GB; 0 B for none. The tables are kept "
        "always",
    )
    partitions: list[str] = Field(
        default=[], description="partitions under which these mixes are traced too, by the names that `cache` makes"
    )

    @field_validator("events")
    @classmethod
    def _each_once(cls, events: list[Family]) -> list[Family]:
        return [family for family in FAMILIES if family in events]

    @field_validator("counts")
    @classmethod
    def _one_by_one(cls, counts: dict[str, int]) -> dict[str, int]:
        for event in counts:
            name, _, modes = event.partition(":")
            if name in ("page-faults", "faults") or ("/" not in name and modes.strip("ukh")):
                raise ValueError(f"no {event}: page faults and tracepoints are in families of `events`, one by one")
            if name in ("cpu-clock", "task-clock") and counts[event] < SHORTEST_CLOCK:
                raise ValueError(
                    f"{event} once in {SHORTEST_CLOCK:,} ns at least, as the kernel samples it no more often"
                )
            if len(names_of(event)) > 1:
                raise ValueError(f"one event each, and no choice such as {event}")
        return counts

    @field_validator("buffer")
    @classmethod
    def _of_a_size(cls, buffer: str | None) -> str | None:
        if buffer is not None and not LEAST_BUFFER <= bytes_of(buffer) <= MOST_BUFFER:
            raise ValueError("between 64 KiB and 512 MiB")
        return buffer


def recordable(keys: TraceKeys, study: Mapping[str, object]) -> TraceKeys:
    """The keys, in a study (what is known of it) whose members run."""
    if study.get("platform") == "modelled":
        raise ValueError("no 'trace' in a study whose platform is modelled: nothing runs that could be recorded")
    return keys
