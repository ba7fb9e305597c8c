"""The critical path of the lead's steps, and what threads did along it: `paths.parquet` of a trace.

It is that of the schedule where the lead has a graph, and else that of who woke whom.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from castmates.analysis.dataflow.path_states import (
    NOBODY,
    UNKNOWN,
    Recording,
    Stretch,
    ThreadStates,
    TracedSteps,
    path_states,
)
from castmates.analysis.dataflow.wake_path import OTHERS, OWN, runs_until, wake_path
from castmates.files import replace
from castmates.linux.tracing_rights import SCHEDULER
from castmates.results.columns.dataflow import LAUNCH_GRAPH_TABLES
from castmates.results.columns.parquet import write_rows
from castmates.results.columns.trace import PATHS, PATHS_FILE
from castmates.runner.profiles import graphs
from castmates.runner.profiles.tables import Aligned
from castmates.runner.tracing.recorded import Recorded, Span, Traced
from castmates.timeline.model import Timeline

Facts = Mapping[str, Any]
MOST_STEPS = 200  # of a recording, evenly chosen: short ones have little to follow, and thousands in a second
UNWOKEN = "its wake-up was not seen"
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


def write(outcome: Traced, traced: Sequence[TracedSteps], timeline: Timeline, folder: Path) -> dict[str, Any]:
    """Write the graph of the lead's step and the paths through it; what the record has of both."""
    about, lead = graphs.write(outcome, folder), outcome.launch.cohort.lead.name
    recorded = _Recorded.of(timeline, lead)
    if about["reason"]:
        rows, without = woken(timeline, lead, recorded.whole)
        without = {
            each: recorded.never or str(recorded.perf.get(each, {}).get("reason") or "") or why
            for each, why in without.items()
        }
    else:
        nodes, edges = (pd.read_parquet(folder / f"{name}.parquet") for name in LAUNCH_GRAPH_TABLES)
        states, main = _states(timeline), _main_track(timeline, lead)
        rows, without = path_states(traced, nodes, edges, states, main, partial(_why_unknown, recorded))
    replace(folder / PATHS_FILE, partial(write_rows, rows, PATHS))
    recordings = [_about(scene, rows, without) for scene in timeline.about["scenes"]]
    reasons = dict.fromkeys(each["reason"] for each in recordings if each["reason"])
    steps = sum(each["steps"] for each in recordings)
    return {"graph": about, "paths": {"steps": steps, "reason": "; ".join(reasons), "recordings": recordings}}


def woken(
    timeline: Timeline, lead: str, whole: npt.NDArray[np.int64]
) -> tuple[list[dict[str, object]], dict[Recording, str]]:
    """The paths of steps by who woke whom: rows, and why recordings have none; of some steps where there are many.

    A step lasts from a heartbeat to the next one, and lies in a stretch in which nothing was lost. Where no stretch of
    the trace has two heartbeats, each is a step itself.
    """
    states, tracks, instants = _states(timeline, of_all=True), timeline.tracks, timeline.instants
    ours = [each for each in tracks.loc[tracks["member"] == lead, "track"] if each in states]
    main = _main_track(timeline, lead)
    of_tid = dict(zip(tracks["tid"], tracks["track"], strict=True))
    wakes = instants[(instants["kind"] == "wakeup") & instants["value"].notna()]
    wakers = {
        (track, moment): of_tid.get(int(tid), NOBODY)
        for track, moment, tid in zip(wakes["track"], wakes["t_ns"], wakes["value"], strict=True)
    }
    own = tracks.loc[(tracks["kind"] == "member") & (tracks["name"] == lead), "track"]
    beats = instants[(instants["kind"] == "heartbeat") & instants["track"].isin(own)]
    rows: list[dict[str, object]] = []
    without: dict[Recording, str] = {}
    scenes = timeline.about["scenes"]
    stretches = [whole[(whole[:, 0] < scene["t1_ns"]) & (whole[:, 1] > scene["t0_ns"])].tolist() for scene in scenes]
    found = [[step for stretch in each for step in _steps(beats, *stretch)] for each in stretches]
    if not any(found):
        found = [[(*stretch, number) for number, stretch in enumerate(each)] for each in stretches]
    for scene, steps in zip(scenes, found, strict=True):
        if not ours or not steps:
            why = "no whole step was recorded" if ours and any(found) else "no state of its threads was recorded"
            without[scene["scene"], scene["round"]] = why
            continue
        many = min(len(steps), MOST_STEPS)
        for begin, end, number in (steps[at * len(steps) // many] for at in range(many)):
            last = next((each for each in (main, *ours) if runs_until(states.get(each), end)), main)
            common = {"scene": scene["scene"], "recording": scene["round"], "step": int(number)}
            for place, each in enumerate(wake_path(states, wakers, last, begin, end)):
                part = OWN if each.track == last else OTHERS
                about = {"place": place, "part": part, "operation": "", "type": "", "track": each.track}
                times = {"t0_ns": each.begin, "t1_ns": each.end, "ns": each.end - each.begin}
                rows.append(common | about | times | {"state": each.state, "reason": each.reason})
    return rows, without


def _steps(beats: pd.DataFrame, begin: int, end: int) -> list[tuple[int, int, float]]:
    """The steps that lie in a stretch: begin, end, and the count at the end."""
    inside = beats[(beats["t_ns"] >= begin) & (beats["t_ns"] <= end)]
    times = inside["t_ns"].tolist()
    return [*zip(times, times[1:], inside["value"].tolist()[1:], strict=False)]


def _about(scene: Facts, rows: Sequence[Mapping[str, object]], without: Mapping[Recording, str]) -> Facts:
    """Of how many steps of a recording there are paths, or why of none."""
    recording = scene["scene"], scene["round"]
    steps = {row["step"] for row in rows if (row["scene"], row["recording"]) == recording}
    why = "" if steps else without.get(recording) or _source(scene, "profile").get("reason") or "no step was profiled"
    return {"scene": scene["scene"], "recording": scene["round"], "steps": len(steps), "reason": why}


def _source(scene: Facts, name: str) -> Facts:
    """What a recording has of a source."""
    return next((each for each in scene["sources"] if each["name"] == name), {})


@dataclass(frozen=True)
class _Recorded:
    """What perf recorded of the lead's threads."""

    threads: Collection[int]  # tracks of threads of the system
    never: str  # why no state was recorded at all; "" where some were to be
    perf: Mapping[Recording, Facts]
    whole: npt.NDArray[np.int64]  # spans in which all events were on, and none was lost

    @classmethod
    def of(cls, timeline: Timeline, lead: str) -> "_Recorded":
        tracks, intervals, filters = timeline.tracks, timeline.intervals, timeline.about["filters"]
        never = "" if SCHEDULER in filters["events"] else "the scheduler's events were not asked for"
        never = never or ("" if lead in filters["members"] else "the lead's events were not asked for")
        scenes = timeline.about["scenes"]
        return cls(
            frozenset(tracks.loc[tracks["tid"].notna(), "track"].tolist()),
            never,
            {(scene["scene"], scene["round"]): _source(scene, "perf") for scene in scenes},
            intervals.loc[intervals["kind"] == "whole", ["t0_ns", "t1_ns"]].to_numpy(np.int64),
        )


def _why_unknown(recorded: _Recorded, recording: Recording, stretch: Stretch) -> str:
    """Why no state of a thread is known in a stretch of a step, as far as that is known."""
    perf = recorded.perf.get(recording, {})
    if stretch.track == NOBODY:
        return "the main thread is not known"
    if stretch.track not in recorded.threads:
        return "the thread was not found among the system's"
    if why := recorded.never or str(perf.get("reason") or ""):
        return why
    if ((recorded.whole[:, 0] <= stretch.begin) & (stretch.end <= recorded.whole[:, 1])).any():
        return ""
    return "perf lost events" if perf.get("lost") else str(perf.get("ended early") or "perf was not on all the time")


def _main_track(timeline: Timeline, lead: str) -> int:
    """The track of the lead's main thread: what makes its steps."""
    tracks = timeline.tracks
    mine = tracks[(tracks["kind"] == "thread") & (tracks["member"] == lead) & (tracks["tid"] == tracks["pid"])]
    return int(mine["track"].iloc[0]) if len(mine) else NOBODY


def _states(timeline: Timeline, of_all: bool = False) -> dict[int, ThreadStates]:
    """By track; `of_all`: who ran instead is a reason, too, and what a thread waited in whose wake-up was not seen."""
    states = timeline.intervals[timeline.intervals["kind"] == "state"]
    tracks = states["track"].to_numpy(np.int64)
    return {
        int(track): ThreadStates(
            own["t0_ns"].to_numpy(np.int64),
            own["t1_ns"].to_numpy(np.int64),
            own["name"].astype("str").tolist(),
            _reasons(own, of_all),
        )
        for track in np.unique(tracks)
        for own in [states[tracks == track]]
    }


def _reasons(states: pd.DataFrame, of_all: bool) -> list[str]:
    detail = states["detail"].astype("str")
    unwoken = (states["name"] == UNKNOWN) & (detail != "")
    return (
        detail.where((states["name"] == "blocked") | of_all, "")
        .mask(unwoken, detail + f": {UNWOKEN}" if of_all else UNWOKEN)
        .tolist()
    )


# How fast members went while they were recorded, and right before and after; and what their clocks agree on.

Beats = Sequence[tuple[int, int]]
FEWEST = 2  # heartbeats in a span, or no rate is known


def rate(beats: Beats, *spans: Span) -> float | None:
    """Units per second between the first and the last heartbeat of each span, all spans together."""
    units, seconds = 0, 0.0
    for begin, end in spans:
        inside = [beat for beat in beats if begin <= beat[0] <= end]
        if len(inside) >= FEWEST:
            units += inside[-1][1] - inside[0][1]
            seconds += (inside[-1][0] - inside[0][0]) / 1e9
    return units / seconds if seconds else None


def rates(recorded: Recorded, profiled: Span | None) -> dict[str, dict[str, float | None]]:
    """By member: its rate while recorded, without its framework's profiler, under that, and while not recorded.

    The two rates without are means of before and after: a drift of the member's speed then cancels.
    """
    begin, end = recorded.span
    plain = [(begin, end)] if profiled is None else [(begin, profiled[0]), (min(max(profiled[1], begin), end), end)]
    found = {}
    for member, beats in recorded.beats.items():
        on, off = rate(beats, recorded.span), rate(beats, recorded.before, recorded.after)
        found[member] = {
            "on": on,
            "off": off,
            "without_profiler": rate(beats, *plain),
            "profiled": rate(beats, profiled) if profiled else None,
            "slower": off / on if on and off else None,
        }
    return found


def checked(aligned: Aligned, beats: Beats) -> Mapping[str, Any]:
    """Hold the framework's steps against the heartbeats that the same program wrote, on the other clock.

    A job writes a step's heartbeat at the step's end, some microseconds before its profiler closes the step or after:
    it has to lie nearer to its own step's end than to any other's, but for what the clocks may be apart.
    """
    trace, taken, apart = aligned.trace, aligned.taken, aligned.alignment_ns
    begins, ends = aligned.steady_ns(trace.step_begin_ps), aligned.steady_ns(trace.step_end_ps)
    at = {units: t_ns for t_ns, units in beats}
    lags, fits = [], 0
    nexts = np.append((begins[1:] + ends[1:]) // 2, np.iinfo(np.int64).max)  # the middle of the next step
    for step, (begin, end, following) in enumerate(zip(begins.tolist(), ends.tolist(), nexts.tolist(), strict=True)):
        moment = at.get(taken.first_step + step + 1)
        if moment is not None:
            lags.append(moment - end)
            fits += (begin + end) // 2 - apart <= moment <= following + apart
    found: dict[str, Any] = {"steps": trace.steps, "with_heartbeat": len(lags), "in_order": fits}
    if lags:
        found |= {"lag_ns": {"least": min(lags), "median": int(median(lags)), "most": max(lags)}}
    return found
