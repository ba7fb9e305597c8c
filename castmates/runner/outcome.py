"""What a launch comes to, collected while it runs; the record of its kind writes it down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from castmates.machine import prepare
from castmates.runner.processes.launch import Running
from castmates.runner.rounds.eviction import Emptied
from castmates.runner.rounds.lead_in import LeadIn
from castmates.runner.rounds.pace import Pace
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.window import Window
from castmates.study.spec import Launch


@dataclass
class Outcome:
    """What a launch of any kind comes to."""

    launch: Launch
    needs: Mapping[str, int] = field(default_factory=dict)  # workload -> the bytes that it takes
    status: str = "measured"
    reason: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    launch_seconds: float | None = None  # None where not everyone got ready
    warm_up_seconds: float = 0.0
    measure_seconds: float = 0.0  # of the rounds alone, or of what is done in their place
    total_seconds: float = 0.0
    cast: list[Running] = field(default_factory=list)
    platform: str = "measured"
    freezer: str = ""
    runner_cpus: list[int] = field(default_factory=list)
    prepared: prepare.Record = field(default_factory=dict)
    hardware: dict[str, dict[str, str]] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)  # collectors that could read something
    environments: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, object] = field(default_factory=dict)  # the data sets that members read
    afterwards: str = ""  # why what comes after the rounds was cut short
    without_verdict: list[str] = field(default_factory=list)  # members that did not end within a moment when asked to
    left_behind: list[str] = field(default_factory=list)  # by killed runs, and not to be put right: in sentences

    def fail(self, reason: str) -> None:
        """Note that a workload failed: nothing that was measured counts."""
        self.status, self.reason = "failed", reason


@dataclass
class Measured(Outcome):
    """What a launch comes to in which rounds are measured."""

    rounds: int = 0  # without a rejected window
    windows: list[Window] = field(default_factory=list)
    truth: dict[str, object] = field(default_factory=dict)  # by scene: what a modelled machine comes to without noise
    settling: Settling | None = None
    pace: Pace | None = None  # of the last round
    paces: dict[int, Pace] = field(default_factory=dict)  # by round
    emptied: list[Emptied] = field(default_factory=list)  # caches, before stretches
    led_in: list[LeadIn] = field(default_factory=list)  # to the same stretches
    processor: dict[str, Any] = field(default_factory=dict)  # what its registers held under partitions
    layers: list[dict[str, Any]] = field(default_factory=list)  # rows of tables.LAYERS
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of each collector, to the lead

    @property
    def settle_seconds(self) -> float:
        """How long rates are given to settle after a change of scene, as far as it is known by now."""
        return self.settling.seconds if self.settling else self.launch.design.settle

    def fail(self, reason: str) -> None:
        """Note that a workload failed."""
        super().fail(reason)
        self.rounds = 0
        for counted in (self.windows, self.layers, self.costs):
            counted.clear()
