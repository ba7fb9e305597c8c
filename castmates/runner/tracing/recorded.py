"""What a trace launch comes to: what was recorded of its scenes, before it is put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from castmates.protocols import Count, Sample
from castmates.runner.outcome import Outcome
from castmates.runner.profiles.taken import Taken
from castmates.study.spec import Scene

Span = tuple[int, int]  # CLOCK_MONOTONIC, nanoseconds
Pair = tuple[int, int, int]  # the steady and the real clock at one moment, and how far apart they may have been read
NOTHING: Span = (0, 0)


@dataclass
class Events:
    """What perf recorded, or why it did not."""

    file: Path | None = None
    span: Span = NOTHING  # in which all its events were on
    reason: str = ""  # why there are none
    ended_early: str = ""  # why it recorded for a shorter time than was wanted
    command: Sequence[str] = ()


@dataclass
class Recorded:
    """One recording of a scene; times in nanoseconds of CLOCK_MONOTONIC."""

    scene: Scene
    round: int  # from 1
    switch_ns: int = 0  # when the scene was set
    end_ns: int = 0  # when it was left
    before: Span = NOTHING  # usual steps, with nothing recorded but heartbeats
    span: Span = NOTHING  # the recording
    after: Span = NOTHING  # usual steps again
    events: dict[str, Events] = field(default_factory=dict)  # by recorder: perf, stacks, latencies
    profile: Taken | None = None  # of the lead's framework; None where it was not asked
    threads: Mapping[int, int] = field(default_factory=dict)  # a line of that profile -> the system's thread
    pids: dict[str, list[int]] = field(default_factory=dict)  # by member, at the begin and the end of the recording
    processes: dict[int, int] = field(default_factory=dict)  # members' threads -> their processes, at these moments
    beats: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by member: time and units
    beats_lost: dict[str, int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    totals: list[Sample] = field(default_factory=list)  # read at both edges of the recording
    counts: list[Count] = field(default_factory=list)
    masks: list[tuple[int, str, str]] = field(default_factory=list)  # moment, partition, who has what
    clocks: list[tuple[str, Pair]] = field(default_factory=list)  # at its begin and its end
    reason: str = ""  # why it was given up


@dataclass
class Traced(Outcome):
    """What a trace launch comes to."""

    recorded: list[Recorded] = field(default_factory=list)
    pids: set[int] = field(default_factory=set)  # every process of a member that was seen
    graph: bytes | None = None  # that the lead left of its step

    def fail(self, reason: str) -> None:
        """Note that a workload failed."""
        super().fail(reason)
        self.recorded.clear()
