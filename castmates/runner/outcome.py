"""What a launch comes to, collected while it runs; the record of its kind writes it down."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from castmates.machine import prepare
from castmates.protocols import Say
from castmates.runner.processes.launch import Running, Start
from castmates.runner.rounds.eviction import Emptied
from castmates.runner.rounds.lead_in import LeadIn
from castmates.runner.rounds.pace import Pace
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.window import Window
from castmates.runner.staging import LiveStage
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


# What a kind of launch does besides what every launch does; each has its own outcome and its own record.

Kept = TypeVar("Kept", bound=Outcome)


class LaunchKind(ABC, Generic[Kept]):
    """One launch of a kind, from its members' start to its end."""

    Outcome: ClassVar[type[Outcome]]
    reading = ""  # what is said while what was recorded is read, which may take long
    keeps_logs = True  # where the launch failed

    @staticmethod
    def name_of(launch: Launch) -> str:
        """What the lines of the launch begin with."""
        return f"launch {launch.path}"

    def __init__(self, outcome: Kept, folder: Path) -> None:
        self.outcome, self.launch, self.folder = outcome, outcome.launch, folder

    def helpers(self, scratch: Path, cache: Path) -> list[Start]:  # noqa: ARG002
        """Programs that stand beside the members; they are known before the members start."""
        return []

    def needed_bytes(self) -> int:
        """How much memory the helpers take."""
        return 0

    def prepare(self, members: Sequence[Start], channels: Path) -> None:
        """Give members, before they start, what this kind asks of them; the lead is the first."""

    def ranges_of(self, start: Start) -> int:  # noqa: ARG002
        """How many annotations of a member are kept one by one."""
        return self.launch.design.counters.ranges

    def started(self, stage: LiveStage, name: str) -> None:
        """A member or a helper has been started."""

    @abstractmethod
    def observe(self, stage: LiveStage, say: Say) -> None:
        """Do what the launch is for; all are ready, and frozen."""

    @contextmanager
    def guarded(self, stage: LiveStage) -> Iterator[None]:  # noqa: ARG002
        """Whatever happens, what members leave is found in the end."""
        yield

    def abandon(self) -> None:
        """Nothing will be written: remove what members left for it."""

    @staticmethod
    @abstractmethod
    def write(outcome: Kept, folder: Path) -> None:
        """Write what the launch leaves into its folder."""

    @staticmethod
    @abstractmethod
    def words(outcome: Kept) -> str:
        """Say in a line what a launch that did not fail came to."""
