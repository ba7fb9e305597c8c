"""What each column of each table means, read from the data contract itself: the comments beside its columns."""

import ast
import inspect
import io
import tokenize
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from castmates.errors import CastmatesError
from castmates.results.columns import (
    block,
    dataflow,
    findings,
    mixes,
    nodes,
    operations,
    partitions,
    placing,
    prediction,
    primitives,
    ranges,
    scenes,
    services,
    study,
    trace,
    trace_summary,
    variants,
)

CONTRACTS: Mapping[str, ModuleType] = {  # name of a table -> where its columns stand, under its name in capitals
    **dict.fromkeys(partitions.PARTITION_TABLES, partitions),
    **dict.fromkeys(study.STUDY_TABLES, study),
    "nodes": nodes,
    "system_over_mixes": mixes,
    **dict.fromkeys(("services", "loads"), services),
    "predictions": prediction,
    "profiles": prediction,
    "variant_effects": variants,
    **dict.fromkeys(placing.PLACING_TABLES, placing),
    **dict.fromkeys(operations.OPERATION_TABLES, operations),
    **dict.fromkeys(operations.PROFILE_TABLES, operations),
    **dict.fromkeys((*primitives.LOGGED_TABLES, *primitives.PRIMITIVE_TABLES), primitives),
    **dict.fromkeys(block.BLOCK_TABLES, block),
    **dict.fromkeys(ranges.RANGE_TABLES, ranges),
    **dict.fromkeys(findings.TRIAL_TABLES, findings),
    **dict.fromkeys(("tracks", "intervals", "instants", "trace_samples", "stacks"), trace),
    **dict.fromkeys(trace_summary.TRACE_SUMMARY_TABLES, trace_summary),
    **dict.fromkeys((*dataflow.LAUNCH_GRAPH_TABLES, *dataflow.DATAFLOW_TABLES), dataflow),
}
# What is the same in all tables, and so stands beside none of them.
EVERYWHERE = {
    "study": "name of the study",
    "company": "the mixes of one lead that share a launch",
    "block": "number of the launch within its company, from 1",
    "round": "of the block, from 1",
    "window": "number within the block, from 1",
    "slice": "number within the block, from 1",
    "mix": "lead and antagonists, joined by +",
    "lead": "the workload whose loss is studied",
    "antagonists": "the workloads beside it, joined by +",
    "member": "a workload on its CPUs: stream@1",
    "workload": "of the catalogue",
    "role": "lead, antagonist",
    "partition": "how the cache was shared out; unmanaged where it was not",
    "lead_ways": "ways that the lead may fill; NA where no mask was set",
    "cache_ways": "ways that the cache has",
    "scene": "solo, solo-again, placebo:<CPU>, corun:<mix>, alone:<member>; with @<partition> under one",
    "kind": "solo, solo-again, placebo, corun, alone",
    "baseline": "what the scene is compared with",
    "unit": "of progress: step, run …",
    "blocks": "launches that estimate",
    "rounds": "complete rounds, over all launches",
    "windows": "that were measured",
    "windows_rejected": "that do not count",
    "beats": "heartbeats",
    "units": "of progress that were done",
    "rate": "units per second",
    "event": "perf's name of it",
    "set": "the group of events that it was asked for with",
    "source": "who read or counted it",
    "metric": "which quantity the row is of",
    "value": "what it came to",
    "note": "why a value is missing, or a remark on it",
    "status": "counted, scaled, not supported, not counted",
    "level": "of Top-Down, from 1",
    "running": "share of its time for which it was counted",
    "scope": "cgroup, thread, cpu, process",
    "phase": "of a step; empty for the whole window",
    "launches": "profile launches that estimate",
    "traces": "that it is the mean of",
    "type": "of the operation: MatMul",
    "direction": "forward, backward, optimizer, input; empty for none",
    "thread": "that ran it, as the framework names it",
    "allocator": "as the framework names it",
    "duration_ns": "nanoseconds that it took",
    "difference_ms": "of a step beside others and one alone",
    "step_ms": "milliseconds of a step",
    "mean_ms": "of a traced step",
    "median_ms": "of a traced step",
    "shortest_ms": "of a traced step",
    "longest_ms": "of a traced step",
    "key_round": "of its trace",
    "key_step": "of its trace, from 0",
    "t_ns": "CLOCK_MONOTONIC, in nanoseconds",
    "close_ns": "closing edge, CLOCK_MONOTONIC",
    "last_ns": "last heartbeat inside",
    "launch_seconds": "from the start until all members were ready",
    "total_seconds": "that the launch took",
    "windows_after_frozen": "of these, after one in which the member was frozen",
    "baseline_windows_valid": "of the baseline",
    "baseline_windows_rejected": "of the baseline",
    "baseline_rejection_rate": "share of the baseline's windows",
    "log": "natural logarithm of the ratio of rates",
    "who": "the lead, or the antagonist",
    "baseline_value": "what it came to in the baseline",
    "ms_per_step": "milliseconds of a step",
    "curve": "the kind of partition: its name without the lead's ways",
    "most_ways": "that were measured",
    "lead_bytes": "what the lead's ways hold in one cache; NaN where the machine does not show it",
    "why_refused": "in a sentence",
    "limit_pct": "what the lead may lose",
    "loss_pct": "of the lead against solo",
    "without_pct": "of the lead against solo, without a partition",
    "faster": "how many times as fast the lead is as without a partition",
    "kept_pct": "mean over the antagonists of their rate against being alone",
    "stp": "system throughput: sum of all members' rates over their own alone",
    "confirmed_loss_pct": "the same in the confirming study",
    "confirmed_kept_pct": "the same in the confirming study",
    "confirmed_stp": "the same in the confirming study",
    "confirmed_blocks": "launches of the confirming study",
    "p_value": "two-sided",
    "verdict": "what the numbers allow to conclude",
    "sentence": "in words",
    "word": "in a word",
    "track": "number of the track in tracks.parquet",
    "t0_ns": "begin, CLOCK_MONOTONIC, in nanoseconds",
    "t1_ns": "end, CLOCK_MONOTONIC, in nanoseconds",
    "cpu": "where it was; NA for what has none",
    "pid": "the system's number of the process",
    "tid": "the system's number of the thread",
    "weight": "how much of the event it stands for",
    "members": "that the mix has",
    "platform": "measured, emulated, modelled",
}
ENDS = (("low", "lower end of the interval of"), ("high", "upper end of the interval of"))


class Column(NamedTuple):
    """A column of a table."""

    column: str
    type: str  # pandas' name of it
    meaning: str


def tables() -> list[str]:
    """The names of all tables that a study may leave."""
    return list(CONTRACTS)


@cache
def meanings(table: str) -> list[Column]:
    """The columns of a table in their order."""
    if table not in CONTRACTS:
        raise CastmatesError(f"there is no table '{table}'; there are: {', '.join(tables())}.")
    contract, comments = getattr(CONTRACTS[table], table.upper()), _comments(CONTRACTS[table].__name__)[table.upper()]
    return [Column(name, kind, comments.get(name) or _usual(name, contract)) for name, kind in contract.items()]


def _usual(name: str, contract: Mapping[str, str]) -> str:
    """The meaning of a column that has no comment."""
    for end, words in ENDS:
        if name == end:
            return f"{words} value"
        if (of := name.removesuffix(f"_{end}")) != name:
            return f"{words} {next((each for each in (of, f'{of}_pct') if each in contract), of)}"
    return EVERYWHERE.get(name, "")


@cache
def _comments(module: str) -> dict[str, dict[str, str]]:
    """By name of the contract, and by column, the comment in the column's line."""
    source = inspect.getsource(import_module(module))
    lines = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module == scenes.__name__:
            found |= _comments(node.module)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Dict):
            own = found[node.target.id] = {}
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if key is None and isinstance(value, ast.Name):  # the columns of another contract: **SCENE
                    own |= found.get(value.id, {})
                elif isinstance(key, ast.Constant) and key.lineno in lines:
                    own[str(key.value)] = lines[key.lineno]
    return found
