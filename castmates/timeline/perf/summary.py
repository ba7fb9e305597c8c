"""What is known of a recording as a whole: how much it holds, what was lost, what it cannot show."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from castmates.analysis.timeline.families import SCHEDULER, SYSCALLS
from castmates.timeline.perf.people import People
from castmates.timeline.perf.reading import Recording
from castmates.timeline.perf.spans import Spans
from castmates.timeline.perf.wakes import EVENTS


def summary(recording: Recording, people: People, spans: Spans) -> dict[str, Any]:
    """The source's entry in the record of a trace."""
    counts = dict(recording.counts)
    states = {name.removeprefix("states "): counts.pop(name) for name in list(counts) if name.startswith("states ")}
    lost = max(int(recording.losses["count"].sum()), recording.lost_samples)
    return {
        "name": "perf",
        "events": {name: count for name, count in sorted(counts.items()) if count},
        "lost": lost,
        "bytes": recording.header.file.stat().st_size,
        "first_ns": recording.first_ns,
        "last_ns": recording.last_ns,
        "whole_s": float((spans.ends - spans.begins).sum()) / 1e9,
        "threads": len(people),
        "threads_of": dict(Counter(people.members)),
        "switches": states,
        "version": recording.header.about.get("perf", ""),
        "reason": "" if len(people) else "none of its threads belongs to a member",
    }


def missing(recording: Recording, people: People) -> dict[str, list[str]]:
    """What a reader of the timeline has to know that it lacks: sentences, and the families that each is about."""
    return dict(_missing(recording, people))


def _missing(recording: Recording, people: People) -> Iterator[tuple[str, list[str]]]:
    samples = recording.samples
    leaves = samples.get("sched:sched_switch")
    if leaves is None:
        yield (
            "The scheduler's own events were not recorded: who ran instead of a thread is not known, and a thread that "
            "is blocked counts as blocked until it runs again.",
            [SCHEDULER],
        )
    elif not any(len(samples[name]["time"]) for name in EVENTS if name in samples):
        words = "Wake-ups were not recorded: a thread that is blocked counts as blocked until it runs again."
        yield words, [SCHEDULER]
    elif (recording.switches["other"] >= 0).any() and (people.number(leaves["tid"]) >= 0).all():
        yield (
            "Recorded by control groups: wake-ups of members by other programs are not in it, and a thread that they "
            "woke counts as blocked until it runs again.",
            [SCHEDULER],
        )
    if "raw_syscalls:sys_enter" not in samples:
        yield "System calls were not recorded: in what a blocked thread waits is not known.", [SCHEDULER, SYSCALLS]
    if (lost := int(recording.losses["count"].sum())) or recording.lost_samples:
        many = max(lost, recording.lost_samples)
        if lost:
            yield f"{many:,} events were lost: no state is shown for the times in which they were.", []
        else:
            yield f"{many:,} events were lost, and when is not known: states and sums around them may be wrong.", []
    if recording.counts["throttled"]:
        yield f"The kernel held events back {recording.counts['throttled']:,} times, because there were too many.", []
