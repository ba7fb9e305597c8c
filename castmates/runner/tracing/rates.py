"""How fast members went while they were recorded, and right before and after; and what their clocks agree on."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from castmates.runner.profiles.tables import Aligned
from castmates.runner.tracing.recorded import Recorded, Span

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
