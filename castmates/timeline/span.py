"""When a timeline begins."""

from castmates.timeline.model import Timeline

FIRST = {"intervals": "t0_ns", "instants": "t_ns", "samples": "t_ns", "stacks": "t_ns"}


def start(timeline: Timeline) -> int:
    """The first moment of a timeline, in nanoseconds of its clock."""
    firsts = [int(timeline.table(name)[column].iloc[0]) for name, column in FIRST.items() if len(timeline.table(name))]
    return min(firsts, default=0)
