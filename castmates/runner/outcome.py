"""What a launch comes to, collected while it runs; the record of its kind writes it down."""

import json
import os
import socket
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

from castmates.machine import prepare
from castmates.protocols import Say
from castmates.runner.processes.launch import Running, Start
from castmates.runner.rounds.lead_in import LeadIn
from castmates.runner.rounds.pace import Pace
from castmates.runner.rounds.settling import Settling
from castmates.runner.rounds.stage import Emptied
from castmates.runner.rounds.window import Window
from castmates.runner.staging import LiveStage
from castmates.study.reasons import Reason, ReasonKind
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


# What a launch shows while it runs: short notes to a listener, sent between rounds and never inside them.
#
# They go to the socket that an environment variable names, as services notify systemd. No listener is needed: a note
# that cannot be delivered at once is dropped. Each note holds everything so far, so that nothing depends on the one
# before.

VARIABLE = "CASTMATES_PROGRESS"  # the name of an abstract socket of Linux: it needs no file and is gone with its owner
MOST_NAMED = 5
PATIENCE = 0.5  # seconds that the last note of a launch may take to be delivered


def waiting(launch: "Launch", words: str) -> None:
    """Another sweep measures on this machine."""
    _send(launch, {"state": "waiting", "reason": words})


def launching(launch: "Launch") -> None:
    """Programs are being started."""
    _send(launch, {"state": "launching"})


def rounds_begin(outcome: "Outcome") -> None:
    """Programs are ready; from here on nothing should run beside them."""
    _send(outcome.launch, {"state": "measuring", "rounds": outcome.launch.design.rounds})


def round_ended(outcome: "Measured", number: int) -> None:
    """A round is over; the next one begins at once."""
    if VARIABLE in os.environ:
        numbers = {"round": number, "rounds": outcome.launch.design.rounds}
        _send(outcome.launch, {"state": "measuring"} | numbers | _so_far(outcome))


def ended(outcome: "Outcome") -> None:
    """The launch is over and recorded."""
    if VARIABLE in os.environ:
        facts = {"status": outcome.status, "reason": outcome.reason, "seconds": outcome.total_seconds}
        counted = _so_far(cast("Measured", outcome)) if hasattr(outcome, "windows") else {}
        _send(outcome.launch, {"state": "ended"} | facts | counted, PATIENCE)


def _so_far(outcome: "Measured") -> dict[str, object]:
    because, who = grouped(outcome.windows)
    rejected = sum(bool(window.reasons) for window in outcome.windows)
    return {
        "clean": outcome.rounds,
        "kept": len(outcome.windows) - rejected,
        "rejected": rejected,
        "because": dict(because),
        "who": dict(who.most_common(MOST_NAMED)),
    }


def grouped(windows: Iterable["Window"]) -> tuple[Counter[str], Counter[str]]:
    """Of the rejected windows: how many had each kind of reason, and how many each program that took time."""
    because: Counter[str] = Counter()
    who: Counter[str] = Counter()
    for window in windows:
        reasons = _proper(window)
        because.update({reason.kind for reason in reasons})
        who.update({reason.blamed for reason in reasons if reason.blamed})
    return because, who


def summary(windows: Sequence["Window"]) -> str:
    """How many windows were rejected and for what, in a few words; "" where none was."""
    because, who = grouped(windows)
    if not because:
        return ""
    rejected = sum(bool(window.reasons) for window in windows)
    names = f"; {_counted(who.most_common(MOST_NAMED))}" if who else ""
    return f"{rejected} rejected ({_counted(because.most_common())}{names})"


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts)


def _proper(window: "Window") -> list[Reason]:
    """The reasons of a window; where too few of its slices count, those of its slices."""
    few = [reason for reason in window.reasons if reason.kind == ReasonKind.TOO_FEW_CYCLES]
    others = [reason for reason in window.reasons if reason not in few]
    return [*others, *([reason for each in window.slices for reason in each.reasons] or few)] if few else others


def _send(launch: "Launch", facts: dict[str, object], patience: float = 0.0) -> None:
    name = os.environ.get(VARIABLE)
    if not name:
        return
    note = json.dumps({"study": launch.study, "launch": launch.path} | facts)
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(patience)
        sender.sendto(note.encode(), f"\0{name}")
