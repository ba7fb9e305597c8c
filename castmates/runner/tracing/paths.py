"""The critical path of the lead's traced steps, and what its threads did along it: `paths.parquet` of a trace."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.dataflow.path_states import NOBODY, ThreadStates, TracedSteps, path_states
from castmates.files import replace
from castmates.results.columns.dataflow import LAUNCH_GRAPH_TABLES
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.trace import PATHS, PATHS_FILE
from castmates.runner.outcome import Outcome
from castmates.runner.profiles import graphs
from castmates.runner.profiles.tables import Aligned
from castmates.runner.tracing.recorded import Recorded
from castmates.timeline.model import Timeline

CALLED = ("operation", "type", "layer", "layer_kind", "direction")


def traced_steps(aligned: Aligned, tracks: Sequence[int], recorded: Recorded) -> TracedSteps:
    """The calls and the steps of one recording, as tables of a profile launch have them, with tracks for threads."""
    trace, calls = aligned.trace, aligned.trace.calls
    begin, end = aligned.steady_ns(calls.begin_ps), aligned.steady_ns(calls.end_ps)
    names = [(one.name, one.type, one.place.layer, one.place.kind, one.place.direction) for one in trace.operations]
    columns = zip(*names, strict=True) if names else [()] * len(CALLED)
    called = {name: np.array(each, dtype=object)[calls.operation] for name, each in zip(CALLED, columns, strict=True)}
    times = {"step": calls.step, "begin_ns": begin, "duration_ns": end - begin}
    threads = {"thread": np.array(tracks, np.int64)[calls.thread] if len(tracks) else np.empty(0, np.int64)}
    first, last = aligned.steady_ns(trace.step_begin_ps), aligned.steady_ns(trace.step_end_ps)
    numbers = np.arange(trace.steps)
    steps = {
        "step": numbers,
        "heartbeat": aligned.taken.first_step + 1 + numbers,
        "begin_ns": first,
        "duration_ns": last - first,
    }
    return TracedSteps(recorded.scene.name, recorded.round, pd.DataFrame(called | times | threads), pd.DataFrame(steps))


def write(outcome: Outcome, traced: Sequence[TracedSteps], timeline: Timeline, folder: Path) -> dict[str, Any]:
    """Write the graph of the lead's step and the paths through it; what the record has of both."""
    about = graphs.write(outcome, folder)
    if about["reason"]:
        (folder / PATHS_FILE).unlink(missing_ok=True)
        return {"graph": about, "paths": {"reason": about["reason"]}}
    nodes, edges = (pd.read_parquet(folder / f"{name}.parquet") for name in LAUNCH_GRAPH_TABLES)
    lead = outcome.block.company.lead.name
    rows, why = path_states(traced, nodes, edges, _states(timeline), _main_track(timeline, lead))
    replace(folder / PATHS_FILE, partial(write_rows, rows, PATHS))
    steps = {(row["scene"], row["recording"], row["step"]) for row in rows}
    return {"graph": about, "paths": {"steps": len(steps), "reason": why}}


def _main_track(timeline: Timeline, lead: str) -> int:
    """The track of the lead's main thread: what makes its steps."""
    tracks = timeline.tracks
    mine = tracks[(tracks["kind"] == "thread") & (tracks["member"] == lead) & (tracks["tid"] == tracks["pid"])]
    return int(mine["track"].iloc[0]) if len(mine) else NOBODY


def _states(timeline: Timeline) -> dict[int, ThreadStates]:
    """By track."""
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    tracks = states["track"].to_numpy(np.int64)
    return {
        int(track): ThreadStates(
            own["t0_ns"].to_numpy(np.int64),
            own["t1_ns"].to_numpy(np.int64),
            own["name"].astype("str").tolist(),
            own["detail"].astype("str").where(own["name"] == "blocked", "").tolist(),
        )
        for track in np.unique(tracks)
        for own in [states[tracks == track]]
    }
