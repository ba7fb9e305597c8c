"""The data contract of a launch: the files that it leaves, and the columns of its tables."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from castmates.results.columns.contract import Table, by_name, col, usual

RECORD = "launch.json"  # what the launch records of itself, written last: a launch without it is not measured
DIGESTS = "sha256"  # its first key, alone in the first line: of the launch's tables, and of all other lines

WINDOWS = Table(
    "windows",
    "launches/<cohort>/<n>/windows.parquet: a row per round, scene and active member: all slices of that scene in "
    "the round. A rejected window stays, with its reasons.",
    *usual("study cohort launch"),
    col("round", int, "1, 2, …; spare rounds go on counting"),
    col("position", int, "place of its first slice among the round's windows, from 1"),
    *usual("window"),
    col(
        "scene",
        str,
        "alone, alone-again, placebo:1, corun:<mix>, antagonist-alone:<member>; with @<partition> under one",
    ),
    *usual("kind"),
    col("mix", str, '"" where the scene serves several mixes'),
    *usual("partition"),
    col("member", str, "stream@1"),
    *usual("workload role unit"),
    col("open_ns", int, "opening edge of its first slice and closing edge of its last, CLOCK_MONOTONIC"),
    *usual("close_ns"),
    col("first_ns", int | None, "first and last heartbeat inside its slices"),
    *usual("last_ns beats"),
    col("units", float, "done between the first and the last heartbeat of each slice"),
    col("rate", float, "units per second; NaN where the member beat fewer than twice; of a service 1 / p99_s"),
    col("valid", bool, "the ledger of the whole window is clean"),
    col("reasons", str, 'why not, in words, separated by "; "'),
    col("reason_kinds", str, 'the kinds of these reasons, each once, separated by "; "'),
    col("blamed", str, 'the programs that took what was others\', separated by "; "'),
    *usual("platform"),
    col("switch_ns", int | None, "when the scene was set for its first slice, CLOCK_MONOTONIC"),
    col("schemata", str, 'what the kernel reported of the member\'s group at the closing edge; "" where it has none'),
    col("ways", int | None, "that it may fill there, with code or data, where fewest; NA where it has no mask"),
    col("slices", int, "that were measured for this member in the round"),
    col("slices_rejected", int, "for reasons that lie in them"),
    col("slices_dropped", int, "with a rejected one of their cycle"),
    col("open_s", float, "that the slices that count were open: what counters and CPU times refer to"),
    col("progress_s", float, "from first to last heartbeat inside each of them: what the rate refers to"),
    # In its slices that count; NaN where one of them was not read.
    col("cpu_s", float, "CPU time of all its processes"),
    col("waited_s", float, "that its threads were ready to run and had no CPU, all together"),
    col("read_s", float, "between the readings of both, just outside open_s"),
    col("later", float, "rate in the later halves of its slices over that in the earlier ones"),
    col("lead_in_passes", int, "unmeasured cycles before its stretch"),
    col("not_steady", bool, "caches were emptied, and rates or occupancy still changed at last, or are not known"),
    col("host", str, 'the node; "" where a model was played, and in launches from before this was written'),
    col("processor", str, 'its model; "" where nothing was measured'),
    *usual("machine"),
    col("started", float, "when the launch began, in seconds since 1970; NaN where host is empty"),
    # Of an open-loop service, in its slices that count; NaN for all other members.
    col("requests", float, "that were due"),
    col("offered", float, "of these, per second"),
    col("answered", float, "answers per second in the same time"),
    col("unanswered", float, "share of the requests that were not answered when their slice ended"),
    col("p50_s", float, "latency from when it was due, by Kaplan and Meier; NaN where too many were unanswered"),
    col("p95_s", float, "the same of another quantile"),
    col("p99_s", float, "what the member is judged by"),
    rule="analyse",
)
OF_SERVICES = ("requests", "offered", "answered", "unanswered", "p50_s", "p95_s", "p99_s")
OF_CPUS = ("cpu_s", "waited_s", "read_s")
# Columns of windows that launches lack which were measured before: empty there.
LATER = (*OF_SERVICES, *OF_CPUS, "started")

SLICES = Table(
    "slices",
    "launches/<cohort>/<n>/slices.parquet: a row per slice and active member.",
    *usual("study cohort launch round"),
    col("stretch", int, "of the round, from 1: the scenes under one partition"),
    col("cycle", int, "of its stretch, from 1; the last one is watched"),
    col("slice", int, "number within the launch, in order of time, from 1"),
    col("window", int, "that it belongs to"),
    *usual("scene kind member role"),
    col("switch_ns", int, "when the scene was set, CLOCK_MONOTONIC"),
    col("open_ns", int, "after the settle time that was known by then; evidence and counts begin here"),
    *usual("close_ns"),
    col("first_ns", int | None, "first and last heartbeat inside, after the settle time"),
    *usual("last_ns beats"),
    col("units", float, "of progress that were done"),
    col("rate", float, "units per second; of a service one over the p99 of its latency"),
    col("watched", bool, "everything was read, not only what is cheap"),
    col("counted", bool, "it is part of its window's rate"),
    col("reasons", str, 'why it does not count; "" too where it was dropped with another of its cycle'),
    col("reason_kinds", str, "as in windows"),
    col("blamed", str, "as in windows"),
    *usual("platform"),
    col("length_s", float, "nominal length, from switch_ns on: the step that ends a slice comes after it"),
    col("steady_s", float, "from switch_ns on, left out of this member's progress"),
)

STEPS = Table(
    "steps",
    "launches/<cohort>/<n>/steps.parquet: a row per heartbeat inside a window. After these columns comes "
    "`<phase>_s`, the seconds that the step spent in it, for each phase that a member of the launch reports.",
    *usual("study cohort launch window member t_ns"),
    col("units", int, "since the member's start"),
    *usual("platform"),
    col("begin_ns", int | None, "of the step, where its phases are reported"),
    col("slice", int, "a step lies between two heartbeats of one slice"),
)

COUNTERS = Table(
    "counters",
    "launches/<cohort>/<n>/counters.parquet: a row per window, member and event, and per phase where phases are "
    "counted.",
    *usual("study cohort launch window round scene member"),
    col("event", str, "perf's name of it"),
    col("set", str, "the group of events that it was asked for with"),
    col("value", float, "NaN unless the status is counted or scaled; a zero was counted"),
    *usual("status"),
    col("running", float, "share of its time for which it was counted; NaN where it was not wanted"),
    *usual("scope source"),
    col("phase", str, '"" for the whole window'),
    *usual("note platform"),
    col(
        "seconds", float, "of a phase: how long it lasted in all the stays that the value is of; NaN for whole windows"
    ),
)

TOPDOWN = Table(
    "topdown",
    "launches/<cohort>/<n>/topdown.parquet: a row per window, member and Top-Down metric.",
    *usual("study cohort launch window round scene member"),
    col("level", int, "of Top-Down, from 1"),
    col("metric", str, "in TMA's words: Frontend_Bound …"),
    col("value", float, "a share of all slots, from 0 to 1"),
    *usual("status"),
    col("running", float, "of the least counted event behind it"),
    *usual("scope source"),
    col("phase", str, "of a step; empty for the whole window"),
    *usual("note platform"),
)

LAYERS = Table(
    "layers",
    "launches/<cohort>/<n>/layers.parquet: where a lead's steps spend their time; from profiled windows only.",
    *usual("study cohort launch scene mix partition member layer"),
    col("kind", str, "convolution, pooling, attention …"),
    col("direction", str, "forward, backward, optimizer, input"),
    *usual("calls"),
    col("ms_per_step", float, "milliseconds of a step"),
    *usual("share"),
    col("steps", int, "that were profiled"),
    *usual("platform"),
)

SAMPLES = Table(
    "samples",
    "launches/<cohort>/<n>/samples.parquet: a row per reading of a collector or monitor.",
    *usual("study cohort launch window t_ns source"),
    col("subject", str, 'a member, or "cpu0", "host" …'),
    col("metric", str, "which quantity the row is of"),
    col("value", float, "NaN where there was none; `note` has the reason"),
    *usual("note platform"),
)

LAUNCH_TABLES = by_name(WINDOWS, SLICES, STEPS, SAMPLES, COUNTERS, TOPDOWN, LAYERS)


def table_file(name: str) -> str:
    """The name of the file with this table."""
    return f"{name}.parquet"


def record_text(record: Mapping[str, Any], tables: Mapping[str, str]) -> str:
    """The record of a launch as its file has it; `tables` are the digests of its tables, by their files."""
    rest = json.dumps(record, indent=1, sort_keys=True).removeprefix("{") + "\n"
    digests = {**tables, RECORD: hashlib.sha256(rest.encode()).hexdigest()}
    return f'{{"{DIGESTS}": {json.dumps(digests)},{rest}'
