"""From two readings of an event to what it came to: counted, scaled, not counted and not supported are four things."""

from typing import NamedTuple

from castmates.counters.events.groups import Reading
from castmates.protocols import Refusal, Status

FULL = 0.999  # above it nothing was lost but the moments of switching


class Value(NamedTuple):
    """What an event came to between two readings."""

    value: float | None
    status: Status
    running: float | None = None
    note: str = ""


def between(before: Reading | None, after: Reading | None) -> Value:
    """Subtract two readings; a member that was on no processor was not counted, which is no zero."""
    if before is None or after is None:
        return Value(None, "not counted", None, "the kernel gave no count")
    count, enabled, running = after.count - before.count, after.enabled - before.enabled, after.running - before.running
    if enabled <= 0:
        return Value(None, "not counted", None, "the member was on no processor in this window")
    if running <= 0:
        return Value(None, "not counted", 0.0, "other events held the counters for the whole window")
    share = min(1.0, running / enabled)
    if share < FULL:
        return Value(count * enabled / running, "scaled", share, f"counted for {share:.1%} of the member's time")
    return Value(float(count), "counted", share)


def without(refusal: Refusal) -> Value:
    """No value, and why."""
    return Value(None, refusal.status, None, refusal.why)
