"""What a table is: its name, what a row of it is, and its columns, each with its type and its meaning."""

from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import NamedTuple, TypeVar

from castmates.study.capabilities import Capability

Columns = Mapping[str, str]  # column -> pandas dtype
TYPES: Mapping[type | UnionType, str] = {
    str: "str",
    int: "int64",
    int | None: "Int64",  # whole numbers, of which some may be missing
    float: "float64",
    bool: "bool",
}


Estimate = TypeVar("Estimate", bound=Callable[..., object])


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str  # pandas' name of it
    meaning: str


class Table(Columns):
    """A table: maps its columns to their types, in their order."""

    def __init__(
        self,
        name: str,
        about: str,
        *columns: Column,
        rule: str = "",
        estimate: str = "",
        asked: Capability | None = None,
        heading: str = "",
    ) -> None:
        """Its file, and what a row is; the rule that writes it; its estimate; which studies have it, all if left out.

        With a heading it is on the page as it is; other tables have templates, or only their files.
        The estimate is a function in `castmates.analysis` ("module:function"), imported where the table is made. Its
        parameters name the facts and the other tables that it needs (castmates/pipeline/estimates.py).
        """
        self.name, self.about, self.columns, self.rule, self.asked = name, about, columns, rule, asked
        self.estimate, self.heading = estimate, heading
        self._types = {column.name: column.type for column in columns}

    def estimated_by(self, function: Estimate) -> Estimate:
        """Declare the function below as the estimate."""
        self.estimate = f"{function.__module__.removeprefix('castmates.analysis.')}:{function.__name__}"
        return function

    def __getitem__(self, column: str) -> str:
        """The type of a column."""
        return self._types[column]

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self._types)

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self._types)

    def __repr__(self) -> str:
        """Name the table."""
        return f"<table {self.name}>"


def by_name(*tables: Table) -> dict[str, Table]:
    """These tables, by their names."""
    return {table.name: table for table in tables}


def col(name: str, kind: type | UnionType, meaning: str) -> Column:
    """A column of one table."""
    return Column(name, TYPES[kind], meaning)


def usual(names: str) -> tuple[Column, ...]:
    """Columns that are the same in many tables."""
    return tuple(USUAL[name] for name in names.split())


def ends(
    stem: str, low: str = "", high: str = "", of: str = "", kind: type | UnionType = float
) -> tuple[Column, Column]:
    """The two ends of an interval; `of`: the column that it is the interval of."""
    of, before = of or stem, stem and f"{stem}_"
    return (
        col(f"{before}low", kind, low or f"lower end of the interval of {of}"),
        col(f"{before}high", kind, high or f"upper end of the interval of {of}"),
    )


def interval(
    name: str, meaning: str = "", low: str = "", high: str = "", *, stem: str | None = None
) -> tuple[Column, Column, Column]:
    """A column and the two ends of its interval, which begin with its name without `_pct`, or with `stem`."""
    value = col(name, float, meaning) if meaning else USUAL[name]
    return value, *ends(name.removesuffix("_pct") if stem is None else stem, low, high, of=name)


# What is the same in many tables.
USUAL: Mapping[str, Column] = {
    column.name: column
    for column in (
        col("study", str, "name of the study"),
        col("cohort", str, "the mixes of one lead that share a launch"),
        col("launch", int, "number of the launch within its cohort, from 1"),
        col("round", int, "of the launch, from 1; of its trace in a profile launch"),
        col("window", int, "number within the launch, from 1"),
        col("mix", str, "lead and antagonists, joined by +"),
        col("lead", str, "the workload whose loss is studied"),
        col("antagonists", str, "the workloads beside it, joined by +"),
        col("member", str, "a workload on its CPUs: stream@1"),
        col("workload", str, "of the catalogue"),
        col("role", str, "lead, antagonist"),
        col("partition", str, "how the cache was shared out; unmanaged where it was not"),
        col("lead_ways", int | None, "ways that the lead may fill; NA where no mask was set"),
        col("cache_ways", int | None, "ways that the cache has"),
        col(
            "scene",
            str,
            "alone, alone-again, placebo:<CPU>, corun:<mix>, antagonist-alone:<member>; with @<partition> under one",
        ),
        col("kind", str, "alone, alone-again, placebo, corun, antagonist-alone"),
        col("baseline", str, "what the scene is compared with"),
        col("unit", str, "of progress: step, run …"),
        col("launches", int, "launches that estimate"),
        col("rounds", int, "complete rounds, over all launches"),
        col("windows_rejected", int, "that do not count"),
        col("beats", int, "heartbeats"),
        col("source", str, "who read or counted it"),
        col("note", str, "why a value is missing, or a remark on it"),
        col("status", str, "counted, scaled, not supported, not counted"),
        col("scope", str, "cgroup, thread, cpu, process"),
        col("traces", int, "that it is the mean of"),
        col("type", str, "of the operation: MatMul"),
        col("direction", str, "forward, backward, optimizer, input; empty for none"),
        col("duration_ns", int, "nanoseconds that it took"),
        col("difference_ms", float, "of a step beside others and one alone"),
        col("t_ns", int, "CLOCK_MONOTONIC, in nanoseconds"),
        col("close_ns", int, "closing edge, CLOCK_MONOTONIC"),
        col("last_ns", int | None, "last heartbeat inside"),
        col("curve", str, "the kind of partition: its name without the lead's ways"),
        col("lead_bytes", float, "what the lead's ways hold in one cache; NaN where the machine does not show it"),
        col("loss_pct", float, "of the lead against alone"),
        col("kept_pct", float, "mean over the antagonists of their rate against being alone"),
        col("stp", float, "system throughput: sum of all members' rates over their own alone"),
        col("p_value", float, "two-sided"),
        col("track", int, "number of the track in tracks.parquet"),
        col("t1_ns", int, "end, CLOCK_MONOTONIC, in nanoseconds"),
        col("cpu", int | None, "where it was; NA for what has none"),
        col("platform", str, "measured, emulated, modelled, rehearsed"),
        col("machine", str, 'the class of nodes; "" in a study without classes'),
        col("begin_ns", int, "CLOCK_MONOTONIC"),
        col("layer", str, "scope"),
        col("calls", float, "in a step"),
        col("share", float, "of the step"),
        col("operation", str, "with its scopes"),
        col("layer_kind", str, "convolution, pooling, attention …"),
        col("loss_pct", float, "100 × (1 - 1/slowdown)"),
        col(
            "held",
            str,
            'what the processor held: as asked, otherwise, beyond, uncertain, not read, shared; "" without one',
        ),
    )
}
