"""The data contract of a block: the files that it leaves, and the columns of its tables."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Columns = Mapping[str, str]  # column -> pandas dtype

RECORD = "block.json"  # what the block records of itself, written last: a block without it is not measured
DIGESTS = "sha256"  # its first key, alone in the first line: of the block's tables, and of all other lines

# blocks/<company>/<n>/windows.parquet: a row per round, scene and active member: all slices of that scene in the round.
# A rejected window stays, with its reasons.
WINDOWS: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "round": "int64",  # 1, 2, …; spare rounds go on counting
    "position": "int64",  # place of its first slice among the round's windows, from 1
    "window": "int64",  # number within the block, from 1
    "scene": "str",  # solo, solo-again, placebo:1, corun:<mix>, alone:<member>; with @<partition> under one
    "kind": "str",  # solo, solo-again, placebo, corun, alone
    "mix": "str",  # "" where the scene serves several mixes
    "partition": "str",
    "member": "str",  # stream@1
    "workload": "str",
    "role": "str",  # lead, antagonist
    "unit": "str",
    "open_ns": "int64",  # opening edge of its first slice and closing edge of its last, CLOCK_MONOTONIC
    "close_ns": "int64",
    "first_ns": "Int64",  # first and last heartbeat inside its slices
    "last_ns": "Int64",
    "beats": "int64",
    "units": "float64",  # done between the first and the last heartbeat of each slice
    "rate": "float64",  # units per second; NaN where the member beat fewer than twice; of a service 1 / p99_s
    "valid": "bool",  # the ledger of the whole window is clean
    "reasons": "str",  # why not, in words, separated by "; "
    "reason_kinds": "str",  # the kinds of these reasons, each once, separated by "; "
    "blamed": "str",  # the programs that took what was others', separated by "; "
    "platform": "str",
    "switch_ns": "Int64",  # when the scene was set for its first slice, CLOCK_MONOTONIC
    "schemata": "str",  # what the kernel reported of the member's group at the closing edge; "" where it has none
    "ways": "Int64",  # that it may fill there, with code or data, where fewest; NA where it has no mask
    "slices": "int64",  # that were measured for this member in the round
    "slices_rejected": "int64",  # for reasons that lie in them
    "slices_dropped": "int64",  # with a rejected one of their cycle
    "open_s": "float64",  # that the slices that count were open: what counters and CPU times refer to
    "progress_s": "float64",  # from first to last heartbeat inside each of them: what the rate refers to
    "later": "float64",  # rate in the later halves of its slices over that in the earlier ones
    "lead_in_passes": "int64",  # unmeasured cycles before its stretch
    "not_steady": "bool",  # caches were emptied, and rates or occupancy still changed at last, or are not known
    "host": "str",  # the node; "" where a model was played
    "processor": "str",  # its model; "" where nothing was measured
    "machine": "str",  # the class of nodes; "" in a study without classes
    # Of an open-loop service, in its slices that count; NaN for all other members.
    "requests": "float64",  # that were due
    "offered": "float64",  # of these, per second
    "answered": "float64",  # answers per second in the same time
    "unanswered": "float64",  # share of the requests that were not answered when their slice ended
    "p50_s": "float64",  # latency from when it was due, by Kaplan and Meier; NaN where too many were unanswered
    "p95_s": "float64",  # the same of another quantile
    "p99_s": "float64",  # what the member is judged by
}
OF_SERVICES = ("requests", "offered", "answered", "unanswered", "p50_s", "p95_s", "p99_s")

# blocks/<company>/<n>/slices.parquet: a row per slice and active member.
SLICES: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "round": "int64",
    "stretch": "int64",  # of the round, from 1: the scenes under one partition
    "cycle": "int64",  # of its stretch, from 1; the last one is watched
    "slice": "int64",  # number within the block, in order of time, from 1
    "window": "int64",  # that it belongs to
    "scene": "str",
    "kind": "str",
    "member": "str",
    "role": "str",
    "switch_ns": "int64",  # when the scene was set, CLOCK_MONOTONIC
    "open_ns": "int64",  # after the settle time that was known by then; evidence and counts begin here
    "close_ns": "int64",
    "first_ns": "Int64",  # first and last heartbeat inside, after the settle time
    "last_ns": "Int64",
    "beats": "int64",
    "units": "float64",
    "rate": "float64",  # units per second; of a service one over the p99 of its latency
    "watched": "bool",  # everything was read, not only what is cheap
    "counted": "bool",  # it is part of its window's rate
    "reasons": "str",  # why it does not count; "" too where it was dropped with another of its cycle
    "reason_kinds": "str",  # as in windows
    "blamed": "str",
    "platform": "str",
    "length_s": "float64",  # nominal length, from switch_ns on: the step that ends a slice comes after it
    "steady_s": "float64",  # from switch_ns on, left out of this member's progress
}

# blocks/<company>/<n>/steps.parquet: a row per heartbeat inside a window. After these columns comes `<phase>_s`, the
# seconds that the step spent in it, for each phase that a member of the block reports.
STEPS: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "window": "int64",
    "member": "str",
    "t_ns": "int64",
    "units": "int64",  # since the member's start
    "platform": "str",
    "begin_ns": "Int64",  # of the step, where its phases are reported
    "slice": "int64",  # a step lies between two heartbeats of one slice
}

# blocks/<company>/<n>/counters.parquet: a row per window, member and event, and per phase where phases are counted.
COUNTERS: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "window": "int64",
    "round": "int64",
    "scene": "str",
    "member": "str",
    "event": "str",
    "set": "str",
    "value": "float64",  # NaN unless the status is counted or scaled; a zero was counted
    "status": "str",  # counted, scaled, not supported, not counted
    "running": "float64",  # share of its time for which it was counted; NaN where it was not wanted
    "scope": "str",  # cgroup, thread, cpu, process
    "source": "str",
    "phase": "str",  # "" for the whole window
    "note": "str",
    "platform": "str",
    "seconds": "float64",  # of a phase: how long it lasted in all the stays that the value is of; NaN for whole windows
}

# blocks/<company>/<n>/topdown.parquet: a row per window, member and Top-Down metric.
TOPDOWN: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "window": "int64",
    "round": "int64",
    "scene": "str",
    "member": "str",
    "level": "int64",
    "metric": "str",  # in TMA's words: Frontend_Bound …
    "value": "float64",  # a share of all slots, from 0 to 1
    "status": "str",
    "running": "float64",  # of the least counted event behind it
    "scope": "str",
    "source": "str",
    "phase": "str",
    "note": "str",
    "platform": "str",
}

# blocks/<company>/<n>/layers.parquet: where a lead's steps spend their time; from profiled windows only.
LAYERS: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "scene": "str",
    "mix": "str",
    "partition": "str",
    "member": "str",
    "layer": "str",  # scope
    "kind": "str",  # convolution, pooling, attention …
    "direction": "str",  # forward, backward, optimizer, input
    "calls": "float64",  # in a step
    "ms_per_step": "float64",
    "share": "float64",  # of the step
    "steps": "int64",  # that were profiled
    "platform": "str",
}

# blocks/<company>/<n>/samples.parquet: a row per reading of a collector or monitor.
SAMPLES: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "window": "int64",
    "t_ns": "int64",
    "source": "str",
    "subject": "str",  # a member, or "cpu0", "host" …
    "metric": "str",
    "value": "float64",  # NaN where there was none; `note` has the reason
    "note": "str",
    "platform": "str",
}

BLOCK_TABLES: Mapping[str, Columns] = {
    "windows": WINDOWS,
    "slices": SLICES,
    "steps": STEPS,
    "samples": SAMPLES,
    "counters": COUNTERS,
    "topdown": TOPDOWN,
    "layers": LAYERS,
}


def table_file(name: str) -> str:
    """The name of the file with this table."""
    return f"{name}.parquet"


def record_text(record: Mapping[str, Any], tables: Mapping[str, str]) -> str:
    """The record of a block as its file has it; `tables` are the digests of its tables, by their files."""
    rest = json.dumps(record, indent=1, sort_keys=True).removeprefix("{") + "\n"
    digests = {**tables, RECORD: hashlib.sha256(rest.encode()).hexdigest()}
    return f'{{"{DIGESTS}": {json.dumps(digests)},{rest}'
