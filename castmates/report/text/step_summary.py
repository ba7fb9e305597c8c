"""What a step of a lead alone is made of, in a few rows: for the screen that ends a profile, and for the page."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.explanations.layers import RUNTIME
from castmates.analysis.operations.per_trace import COMPUTE, INPUT, WAITING, lead_alone
from castmates.analysis.tables.memory_use import ALL, MB
from castmates.english import counted, listed, number
from castmates.report.findings import findings_of
from castmates.report.results import Results, records
from castmates.report.text.findings import InWords, in_words
from castmates.report.text.operations import operation_words, told_apart
from castmates.report.text.words import plain
from castmates.study.class_names import workload_of

SHOWN = 6  # operations of a step
NAMED = 4  # scopes, kinds and pools of threads
LEAST = 0.005  # of a step: less is not named
LITTLE_MB = 0.1  # in a step: for what it is, and when, is not looked into
MUCH = 0.05  # of a step: what slow ones take less in addition is not looked into
DIRECTIONS = ("forward", "backward", "optimizer", "input")
BARS = "▁▂▃▄▅▆▇█"
MOMENTS = 32  # of a step, at which memory is drawn
OF_SCENE = ["scene", "member", "partition"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Taken:
    """An operation, or what is left, and what it takes of a step."""

    share: float
    ms: float
    name: str


@dataclass(frozen=True)
class StepSummary:
    """A step of a lead alone."""

    member: str
    lead: str
    length: str  # of a step that is not traced
    traced: str  # how long traced ones are, and how many
    directions: list[Taken]  # what belongs to no operation is `idle`
    operations: list[Taken]  # the longest, then all others
    rows: list[tuple[str, str]]  # of what, and what is known of it
    found: list[InWords]  # or suspected, of the lead itself: the surest first

    @property
    def parts(self) -> str:
        """Forward 53 %, backward 36 %, idle 12 %: those that there are."""
        shown = [f"{each.name} {number(100 * each.share, 0)} %" for each in self.directions]
        return ", ".join(shown)


def step_summaries(results: Results) -> Iterator[StepSummary]:
    """One for each lead that was traced alone."""
    for row in records(results.iterations[lead_alone(results.iterations)]):
        own = in_scene(results.operation_summary, row).sort_values("shared_ms", ascending=False)
        found = own_findings(results, str(row["member"]))
        yield StepSummary(
            member=str(row["member"]),
            lead=plain(row["member"]),
            length=f"{number(row['usual_ms'], 2)} ms",
            traced=f"{number(row['mean_ms'], 2)} ms while it is traced ({counted(row['steps'], 'step')} in "
            f"{counted(row['traces'], 'trace')})",
            directions=_directions(own),
            operations=_operations(own),
            rows=[(what, words) for what, words in _rows(results, row, own) if words],
            found=found,
        )


def in_scene(table: pd.DataFrame, scene: Row) -> pd.DataFrame:
    """The rows of a table that are of this scene and member."""
    return table[(table[OF_SCENE] == [scene[name] for name in OF_SCENE]).all(axis=1)]


def own_findings(results: Results, member: str) -> list[InWords]:
    """What is found or suspected of the lead itself."""
    workload = workload_of(member)
    every = [one for one in findings_of(results) if one.subject.lead == workload and not one.subject.mix]
    return [in_words(results, one) for one in every if one.found or one.suspected]


def _directions(own: pd.DataFrame) -> list[Taken]:
    """What the directions take of a step, those that there are; `idle` is what is in no operation."""
    works = own["operation"] != ""
    parts = {name: own[works & (own["direction"] == name)] for name in DIRECTIONS}
    parts |= {"copies": own[works & (own["direction"] == "")], "idle": own[~works]}
    taken = [Taken(rows["share"].sum(), rows["shared_ms"].sum(), name) for name, rows in parts.items()]
    return [each for each in taken if each.share >= LEAST or each.name == "idle"]


def _operations(own: pd.DataFrame) -> list[Taken]:
    """The longest, and the rest together."""
    words = told_apart(own["operation"] + ":" + own["type"])
    names = [_name(row, words) for row in records(own)]
    rows = zip(records(own.head(SHOWN)), names, strict=False)
    # What differs in its scope alone, as one instruction of XLA that stands for several scopes.
    apart = [(row, f"{name} [{row['layer']}]" if names.count(name) > 1 else name) for row, name in rows]
    taken = [Taken(row["share"], row["shared_ms"], name) for row, name in apart]
    left = own.iloc[SHOWN:]
    if len(left):
        taken.append(Taken(left["share"].sum(), left["shared_ms"].sum(), counted(len(left), "other")))
    return taken


def _name(row: Row, words: Mapping[str, str]) -> str:
    if not row["operation"]:
        return "between operations" if row["type"] == RUNTIME else "outside of operations"
    if row["layer"] == WAITING:
        return WAITING
    return words[f"{row['operation']}:{row['type']}"] + (", input" if row["direction"] == "input" else "")


def _rows(results: Results, row: Row, own: pd.DataFrame) -> Iterator[tuple[str, str]]:
    model = own[(own["operation"] != "") & (own["direction"] != "input")]
    scope = model["layer"].str.split("/").str[:2].str.join("/")
    yield "scopes", _largest(model.groupby(scope)["share"].sum())
    yield "kinds", _largest(model.groupby("layer_kind")["share"].sum())
    yield "steps", _steps(row)
    yield "input", _input(in_scene(results.input_pipeline, row), in_scene(results.input_stages, row))
    yield "threads", _threads(in_scene(results.thread_pools, row))
    yield "memory", _memory(results, row)
    yield "instructions", _instructions(in_scene(results.isa_use, row))


def _largest(shares: "pd.Series[float]") -> str:
    """Adam 20 %, Net/conv1 12 % and 5 others 8 %."""
    shares = shares[shares >= LEAST].sort_values(ascending=False)
    named = [f"{name} {number(100 * share, 0)} %" for name, share in shares.head(NAMED).items()]
    rest = shares.iloc[NAMED:]
    return ", ".join(
        [*named, *([f"{counted(len(rest), 'other')} {number(100 * rest.sum(), 0)} %"] if len(rest) else [])]
    )


def _steps(row: Row) -> str:
    """How far steps differ, and in what those are longer that stand out."""
    spread = (
        f"{number(row['shortest_ms'], 2)} … {number(row['longest_ms'], 2)} ms, median {number(row['median_ms'], 2)} ms"
    )
    if not row["slow_steps"]:
        return f"{spread}; none stands out as slow"
    if not row["slow_ms"] >= MUCH * row["median_ms"]:
        return spread
    stand = "stands" if row["slow_steps"] == 1 else "stand"
    slow = f"{spread}; {row['slow_steps']} of {row['steps']} {stand} out by {number(row['slow_ms'], 2)} ms"
    # No share: where other operations are shorter in slow steps, one alone may be longer by more than the whole step.
    return f"{slow} ({operation_words(row['slow_in'])} +{number(row['slow_in_ms'], 2)} ms)"


def _input(pipeline: pd.DataFrame, stages: pd.DataFrame) -> str:
    """How long steps wait for it, where that can be seen, and which of its stages works longest."""
    words = ""
    for row in records(pipeline[(pipeline["waiting_ms"] > 0) | (pipeline["input_own_ms"] > 0)]):
        known = f" ({row['verdict']})" if row["verdict"] in (INPUT, COMPUTE) else ""
        waits = f"{number(100 * row['waiting_share'], 0)} % of a step waits for it{known}; "
        words = f"{waits if row['waiting_ms'] > 0 else ''}it works for {number(row['input_own_ms'], 2)} ms of each step"
    for row in records(stages.sort_values("work_ms", ascending=False).head(1) if words else stages.head(0)):
        words += f", most of all in {str(row['stage']).rpartition('/')[2]} ({number(row['work_ms'], 2)} ms)"
    return words


def _threads(pools: pd.DataFrame) -> str:
    """Each pool: how many of its threads work, and how busy they are."""
    rows = records(pools.sort_values("busy_ms", ascending=False))
    named = [
        f"{row['pool']}: {counted(round(row['threads']), 'thread')} busy for {number(100 * row['busy_share'], 0)} %"
        for row in rows[:NAMED]
    ]
    return "; ".join([*named, *([f"{len(rows) - NAMED} more pools"] if len(rows) > NAMED else [])])


def _memory(results: Results, row: Row) -> str:
    """What the busiest allocator gives out in a step, for which operations, and what is in use as the step goes on."""
    table = in_scene(results.memory_use, row).sort_values("allocated_mb", ascending=False)
    whole = records(table[table["operation"] == ALL].head(1))
    if not whole:
        return ""
    words = f"{number(whole[0]['allocated_mb'], 2)} MB given out in a step ({whole[0]['allocator']})"
    if whole[0]["allocated_mb"] < LITTLE_MB:
        return words
    own = table[(table["operation"] != ALL) & (table["allocator"] == whole[0]["allocator"])]
    most = [
        f"{number(each['allocated_mb'], 2)} MB for {each['operation'] or 'what is not known'}"
        for each in records(own[own["allocated_mb"] >= 0.1 * whole[0]["allocated_mb"]].head(2))
    ]
    words += f", {listed(most)}" if most else ""
    drawn = _drawn(_in_use(results, row, whole[0]["allocator"]))
    return f"{words}; in use over a step {drawn}" if drawn else words


def _in_use(results: Results, row: Row, allocator: str) -> pd.DataFrame:
    """What is in use as the key step begins, whenever memory is given out or taken back in it, and as it ends."""
    folder = results.folder.profile(row["key_launch"])
    files = [folder / f"{name}.parquet" for name in ("profiled_steps", "memory")]
    if not all(file.is_file() for file in files):
        return pd.DataFrame({"at_ns": [], "in_use": []})
    asked = {"round": row["key_round"], "step": row["key_step"]} | {name: row[name] for name in OF_SCENE}
    wanted = [{"part": "traced"}, {"allocator": allocator}]
    step, moments = (
        pd.read_parquet(file, filters=[(name, "==", value) for name, value in (asked | own).items()])
        for file, own in zip(files, wanted, strict=True)
    )
    if moments.empty:
        return moments
    moments = moments.sort_values("at_ns")
    begin, used = int(step["begin_ns"].iloc[0]), moments["in_use"].tolist()
    end = begin + int(step["duration_ns"].iloc[0])
    at = [begin, *moments["at_ns"].clip(begin, end), end]  # the clocks of both agree to a microsecond or so
    return pd.DataFrame({"at_ns": at, "in_use": [used[0] - moments["change"].iloc[0], *used, used[-1]]})


def _drawn(moments: pd.DataFrame) -> str:
    """▁▃█▁ 1.2 … 5.4 MB: the most that is in use in each part of the step."""
    if moments.empty:
        return ""
    at, used = moments["at_ns"].to_numpy(dtype=float), moments["in_use"].to_numpy(dtype=float) / MB
    edges = np.linspace(at[0], at[-1], MOMENTS + 1)
    before = np.maximum(np.searchsorted(at, edges, side="right") - 1, 0)  # what is in use when a part begins
    most = [used[first : last + 1].max() for first, last in pairwise(before)]
    low, high = float(used.min()), float(used.max())
    if not high > low:
        return ""
    bars = "".join(BARS[int((len(BARS) - 1) * (each - low) / (high - low) + 0.5)] for each in most)
    since = " since the trace began" if low < 0 else ""  # as PyTorch counts
    return f"{bars} {number(low, 2)} … {number(high, 2)} MB{since}"


def _instructions(use: pd.DataFrame) -> str:
    """Which extensions could be used in how much of a step, and are."""
    rows = [row for row in records(use[use["type"] == "all operations"]) if row["eligible_share"] >= LEAST]
    return "; ".join(
        f"{row['extension']}: could be used in {number(100 * row['eligible_share'], 0)} % of a step, "
        + (
            f"is in {number(100 * row['used_share'], 0)} % of this"
            if not math.isnan(row["used_share"])
            else "not known"
        )
        for row in rows
    )
