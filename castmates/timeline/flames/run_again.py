"""Commands that are run again and again: how much of their CPU time the sampled stacks lack.

perf follows the processes that it finds as it starts, and their later children. A run that is born meanwhile is not
sampled, and one that is shorter than the time between two samples may have none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from castmates.timeline.model import Timeline
from castmates.workloads.environments import KEEPERS

COUNTED = {"cpu-clock": "task-clock", "cycles": "cycles"}  # what is sampled -> the number that counts all of it
UNITS = {"CPUs": 1.0, "/s": 1e-9}  # of such a number -> its share of a sample's weight in each nanosecond
IN_USER_SPACE = ":u"  # ends the name of an event on perf's command line


def is_run_again(about: Mapping[str, Any], member: str) -> bool:
    """Whether a member is a command that is started anew whenever it has ended, by the record of the trace."""
    command = ((about.get("members") or {}).get(member) or {}).get("command") or [""]
    return Path(str(command[0])).name == KEEPERS["runs"]


def unsampled(
    timeline: Timeline, member: str, spans: Sequence[tuple[int, int]], event: str, sampled: float
) -> float | None:
    """The share of a member's CPU time in these spans that no sample stands for; None where that was not counted."""
    if _is_user_space_alone(timeline):
        return None
    tracks, every = timeline.tracks, timeline.samples
    own = tracks.loc[(tracks["member"] == member) & (tracks["kind"] == "member"), "track"]
    counted = every[every["track"].isin(own) & (every["name"] == COUNTED[event]) & every["unit"].isin(UNITS)]
    if counted.empty:
        return None
    times = counted["t_ns"].to_numpy(np.int64)
    rates = counted["value"].to_numpy(float) * counted["unit"].astype(str).map(UNITS).to_numpy(float)
    parts = [_over(span, times, rates) for span in spans]
    whole = sum(part for part in parts if part is not None)
    if None in parts or whole <= 0:
        return None
    return max(0.0, 1.0 - sampled / whole)


def _is_user_space_alone(timeline: Timeline) -> bool:
    """Whether samples leave the kernel out, which the clocks do not."""
    commands = [(scene.get("commands") or {}).get("stacks") or () for scene in timeline.about.get("scenes") or ()]
    return any(str(word).endswith(IN_USER_SPACE) for command in commands for word in command)


def _over(span: tuple[int, int], times: np.ndarray, rates: np.ndarray) -> float | None:
    """What a rate adds up to over a span; each reading is the mean since the one before."""
    begin, end = span
    edges = np.clip(np.concatenate([[begin], times]), begin, end)
    lengths = np.diff(edges)
    covered = lengths.sum()
    return float((lengths * rates).sum() / covered * (end - begin)) if covered > 0 else None
