"""What a launch comes to, collected while it runs; `record` writes it down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from castmates.machine import prepare
from castmates.runner.processes.launch import Running
from castmates.runner.profiles.taken import Taken
from castmates.runner.rounds.eviction import Emptied
from castmates.runner.rounds.lead_in import LeadIn
from castmates.runner.rounds.pace import Pace
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.window import Window
from castmates.runner.tracing.recorded import Recorded
from castmates.study.spec import Launch


@dataclass
class Outcome:
    """What a launch comes to."""

    launch: Launch
    needs: Mapping[str, int] = field(default_factory=dict)  # workload -> the bytes that it takes
    status: str = "measured"
    reason: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    launch_seconds: float | None = None  # None where not everyone got ready
    warm_up_seconds: float = 0.0
    measure_seconds: float = 0.0  # of the rounds alone
    total_seconds: float = 0.0
    rounds: int = 0  # without a rejected window
    windows: list[Window] = field(default_factory=list)
    cast: list[Running] = field(default_factory=list)
    platform: str = "measured"
    truth: dict[str, object] = field(default_factory=dict)  # by scene: what a modelled machine comes to without noise
    freezer: str = ""
    runner_cpus: list[int] = field(default_factory=list)
    prepared: prepare.Record = field(default_factory=dict)
    settling: Settling | None = None
    pace: Pace | None = None  # of the last round
    paces: dict[int, Pace] = field(default_factory=dict)  # by round
    hardware: dict[str, dict[str, str]] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)  # collectors that could read something
    emptied: list[Emptied] = field(default_factory=list)  # caches, before stretches
    led_in: list[LeadIn] = field(default_factory=list)  # to the same stretches
    processor: dict[str, Any] = field(default_factory=dict)  # what its registers held under partitions
    environments: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, object] = field(default_factory=dict)  # the data sets that members read
    layers: list[dict[str, Any]] = field(default_factory=list)  # rows of tables.LAYERS
    taken: list[Taken] = field(default_factory=list)  # the traces of a profile launch
    recorded: list[Recorded] = field(default_factory=list)  # by a trace launch
    pids: set[int] = field(default_factory=set)  # every process of a member that a trace launch has seen
    graph: bytes | None = None  # that the lead of a profile launch left of its step
    roofs: dict[str, Any] = field(default_factory=dict)  # of the lead's CPUs, in one under oneDNN's log
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of each collector, to the lead
    afterwards: str = ""  # why what comes after the rounds was cut short
    without_verdict: list[str] = field(default_factory=list)  # members that did not end within a moment when asked to
    left_behind: list[str] = field(default_factory=list)  # by killed runs, and not to be put right: in sentences

    @property
    def settle_seconds(self) -> float:
        """How long rates are given to settle after a change of scene, as far as it is known by now."""
        return self.settling.seconds if self.settling else self.launch.design.settle

    def fail(self, reason: str) -> None:
        """Note that a workload failed: nothing that was measured counts."""
        self.status, self.reason, self.rounds = "failed", reason, 0
        self.windows.clear()
        self.layers.clear()
        self.taken.clear()
        self.recorded.clear()
        self.costs.clear()
