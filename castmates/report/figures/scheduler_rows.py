"""What the figure `scheduler` shows of each trace: a short window of each scene, thread by thread.

The window is chosen by a rule and not by eye: some steps of the lead from the middle of a scene's first recording.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from castmates.report.once_per_results import once
from castmates.report.results import Results
from castmates.report.traces import Ask, Trace, traces

STEPS, LONGEST, USUAL = (
    3,
    2_000_000_000,
    100_000_000,
)  # steps in a window, and its nanoseconds at most, or without steps
THREADS, OTHERS = 7, 3  # rows of the lead, and of all other members: the busiest
SCENES = 2  # of a trace: alone, and beside others
PARTS = 700  # of a window; each has the colour of the state that fills most of it
STATES = ("running", "runnable", "preempted", "blocked")  # of `unknown` nothing is drawn
SHOWN = ["trace", "scene", "member", "thread", "tid", "begin_ms", "end_ms", "state", "reason", "instead"]
_BEATS = "SELECT scene, t_ns FROM heartbeats h JOIN traces t USING (trace) WHERE h.member = t.lead ORDER BY t_ns"
_STATES = """
SELECT member, thread, tid, t0_ns, t1_ns, state, reason, instead FROM states
WHERE scene = $scene AND t0_ns < $end::BIGINT AND t1_ns > $begin::BIGINT
"""


@dataclass(frozen=True)
class Shown:
    """A scene of a trace: the states of its busiest threads in the window, and where steps of the lead end."""

    trace: Trace
    scene: str
    seconds: float  # that the window lasts
    at_s: float  # where it begins in the trace
    states: pd.DataFrame  # the columns of SHOWN, times from the begin of the window
    steps_ms: Sequence[float]


@once
def shown(results: Results) -> list[Shown]:
    """The windows, those of a trace together, the lead alone first."""
    return [each for trace in traces(results) for each in windows(trace)]


def windows(trace: Trace) -> list[Shown]:
    """The windows of a trace: equally long in every scene."""
    with trace.opened() as ask:
        recordings = ask("SELECT scene, t0_ns, t1_ns FROM recordings ORDER BY scene <> 'alone', recording")
        firsts = recordings.drop_duplicates("scene").head(SCENES)
        beats = ask(_BEATS)
        length = _length(beats, firsts)
        found = [_window(trace, ask, row, beats, length) for row in firsts.itertuples()]
    busiest = _busiest([each.states for each in found], trace.lead)
    return [
        Shown(each.trace, each.scene, each.seconds, each.at_s, _chosen(each.states, busiest), each.steps_ms)
        for each in found
        if len(each.states)
    ]


def _length(beats: pd.DataFrame, recordings: pd.DataFrame) -> int:
    """Some steps of the scene in which they take longest, if they fit into every recording."""
    medians = beats.dropna(subset="scene").groupby("scene")["t_ns"].apply(lambda times: times.diff().median())
    step = medians.max()
    wanted = USUAL if pd.isna(step) else min(LONGEST, int(STEPS * step))
    shortest = int((recordings["t1_ns"] - recordings["t0_ns"]).min()) if len(recordings) else wanted
    return max(1, min(wanted, shortest))


def _window(trace: Trace, ask: Ask, row: object, beats: pd.DataFrame, length: int) -> Shown:
    begin, end, scene = int(row.t0_ns), int(row.t1_ns), str(row.scene)  # type: ignore[attr-defined]
    middle = min((begin + end) // 2, end - length)
    own = beats[(beats["scene"] == scene) & (beats["t_ns"] >= middle) & (beats["t_ns"] <= end - length)]["t_ns"]
    at = int(own.iloc[0]) if len(own) else middle
    states = ask(_STATES, {"scene": scene, "begin": str(at), "end": str(at + length)})
    states["begin_ms"] = (states["t0_ns"].clip(lower=at) - at) / 1e6
    states["end_ms"] = (states["t1_ns"].clip(upper=at + length) - at) / 1e6
    states["trace"], states["scene"] = trace.name, scene
    inside = beats[(beats["t_ns"] >= at) & (beats["t_ns"] <= at + length)]["t_ns"]
    first = int(ask("SELECT origin_ns FROM traces")["origin_ns"].iloc[0])
    return Shown(trace, scene, length / 1e9, (at - first) / 1e9, states[SHOWN], [(t - at) / 1e6 for t in inside])


def _busiest(tables: Sequence[pd.DataFrame], lead: str) -> list[tuple[str, int]]:
    """The threads that ran or wanted to for the longest time in all windows: those of the lead first."""
    every = pd.concat(tables) if tables else pd.DataFrame(columns=SHOWN)
    busy = every[~every["state"].isin(["blocked", "unknown"])]
    took = (busy["end_ms"] - busy["begin_ms"]).groupby([busy["member"], busy["tid"]]).sum().sort_values(ascending=False)
    names = [(str(member), int(tid)) for member, tid in took.index]
    ours, others = [one for one in names if one[0] == lead], [one for one in names if one[0] != lead]
    return [*ours[:THREADS], *others[:OTHERS]]


def _chosen(states: pd.DataFrame, threads: Sequence[tuple[str, int]]) -> pd.DataFrame:
    place = {thread: number for number, thread in enumerate(threads)}
    row = [place.get((member, tid), -1) for member, tid in zip(states["member"], states["tid"], strict=True)]
    own = states.assign(row=row)
    return own[own["row"] >= 0].sort_values(["row", "begin_ms"]).drop(columns="row").reset_index(drop=True)


def coloured(states: pd.DataFrame, length_ms: float) -> list[tuple[float, float, str]]:
    """Begin, length and state of each stretch of one thread, as fine as can be seen."""
    width = length_ms / PARTS
    parts = [dict.fromkeys(STATES, 0.0) for _ in range(PARTS)]
    states = states[states["state"].isin(STATES)]
    for begin, end, state in zip(states["begin_ms"], states["end_ms"], states["state"], strict=True):
        first = min(PARTS - 1, int(begin / width))
        for part in range(first, min(PARTS - 1, int(end / width)) + 1):
            time = min(end, (part + 1) * width) - max(begin, part * width)
            parts[part][state] += time
    found: list[tuple[float, float, str]] = []
    for number, times in enumerate(parts):
        state = max(times, key=lambda name: times[name])
        if times[state] < width - sum(times.values()):
            continue  # of most of this part nothing is known
        if found and found[-1][2] == state and abs(found[-1][0] + found[-1][1] - number * width) < width / 2:
            found[-1] = (found[-1][0], found[-1][1] + width, state)
        else:
            found.append((number * width, width, state))
    return found
