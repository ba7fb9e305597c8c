"""What a profile launch comes to: traces, before they are read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castmates.runner.outcome import Outcome
from castmates.study.spec import Scene
from castmates.workloads.tfmodels.profile_page import Input


@dataclass(frozen=True)
class Taken:
    """What is known of a trace, or why there is none."""

    scene: Scene
    round: int  # of the scene in its launch, from 1
    pair: int = 0  # of the launch, from 1: from storage and from the page cache; 0 where it has none
    input: Input = Input.GOES_ON  # where its steps have their input from
    folder: Path | None = None  # where it lies; None where there is none
    reason: str = ""
    first_step: int = 0  # of the lead since its start, before which it has made so many
    clocks: list[tuple[int, int, int]] = field(default_factory=list)  # monotonic, real, and how sure, in nanoseconds
    threads: tuple[int, int] = (0, 0)  # of an operation, and of operations side by side
    write_seconds: float = 0.0
    storage_bytes: int | None = None  # that were read while it was taken; None where that is not known
    versions: dict[str, str] = field(default_factory=dict)  # of the frameworks of a program that is not ours
    before: list[int] = field(default_factory=list)  # heartbeats of usual steps, CLOCK_MONOTONIC
    after: list[int] = field(default_factory=list)


@dataclass
class Profiled(Outcome):
    """What a profile launch comes to."""

    taken: list[Taken] = field(default_factory=list)
    graph: bytes | None = None  # that the lead left of its step
    roofs: dict[str, Any] = field(default_factory=dict)  # of the lead's CPUs, where oneDNN logs

    def fail(self, reason: str) -> None:
        """Note that a workload failed."""
        super().fail(reason)
        self.taken.clear()
