"""How the runner reaches hardware: four small protocols, each with a real and a "nothing here" implementation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:  # the keys of a study are heavy to load, and every module loads this
    from castmates.study.cache import Cache
    from castmates.study.spec import Share

Say = Callable[[str], object]  # shows the user a line of progress


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of one collector or monitor; `value` is None where the machine did not give one."""

    t_ns: int  # CLOCK_MONOTONIC
    source: str  # the collector's name
    subject: str  # a member's name, or "cpu0", "node0", "l3:0" …
    metric: str
    value: float | None
    note: str = ""  # why the value is missing, or how it was scaled


Status = Literal["counted", "scaled", "not supported", "not counted"]


class Refusal(NamedTuple):
    """Why an event has no count."""

    status: Status
    why: str

    def __str__(self) -> str:
        """Both in words."""
        return f"{self.status}: {self.why}"


@dataclass(frozen=True, slots=True)
class Count:
    """What an event, or a metric made of events, came to for a member between the edges of a window."""

    subject: str  # a member's name
    name: str  # "instructions", "Backend_Bound"
    value: float | None  # None unless it was counted or scaled; a zero that was counted is 0.0
    status: Status
    source: str  # "perf_event_open", "perf stat", "in-process", "PAPI", "toplev", "by time"
    kind: Literal["event", "metric"] = "event"
    group: str = ""  # the set that it belongs to: basic, cache …; TopdownL1 …
    level: int = 0  # of a Top-Down metric
    running: float | None = None  # the share of its time for which it was counted
    scope: str = ""  # how it was counted: cgroup, thread, cpu, process
    phase: str = ""  # of the member's steps; "" for the whole window
    note: str = ""  # why there is no value, or what it lacks
    seconds: float | None = None  # of a phase: how long it lasted in all


@dataclass(frozen=True, slots=True)
class Held:
    """A process that is to have, or be watched in, its own group."""

    pid: int  # its children and threads come with it
    cpus: Sequence[int]
    cgroup: str | None = None  # the folder of the control group that holds it alone


@dataclass(frozen=True, slots=True)
class HeldOtherwise:
    """A setting of a member's group that the processor holds otherwise than the kernel was asked to set it."""

    member: str
    line: str  # of the kernel's schemata: L3, L3CODE, L3DATA, MB
    domain: int
    asked: int  # a way mask, or a throttle in the machine's unit
    held: int


@dataclass(frozen=True, slots=True)
class ProcessorReadings:
    """What the processor's registers held, as far as they were read."""

    how: str  # how they were read; "" where they were not, or where there are none
    lacking: str  # why they were not
    under: Mapping[tuple["Share", ...], Sequence[HeldOtherwise]]  # by shares: what differs; those not read are absent
    caches: Mapping[str, Sequence[int]] = field(default_factory=dict)  # that each member uses
    shared: Mapping[tuple["Share", ...], Sequence[str]] = field(default_factory=dict)  # who else has ways of members
    cache: "Cache | None" = None  # whose ways are given


class Edges(Protocol):
    """What is read at the two edges of a window.

    One that also works in between, and may cost a member something there, has `inside_windows = True`. One that is
    cheap enough to be read at the edges of every slice, and not of watched ones alone, has `every_slice = True`.
    """

    name: str

    def start(self, active: Sequence[str]) -> None:
        """Mark the opening edge of a window in which these members run."""

    def stop(self) -> list[Sample]:
        """Mark the closing edge and return what was counted since `start`."""

    def close(self) -> None:
        """Let go of everything; safe to call twice."""

    def about(self) -> dict[str, str]:
        """Describe what is collected and how."""


class Collector(Edges, Protocol):
    """Counts something between the two edges of a window."""

    def attach(self, members: Mapping[str, int]) -> None:
        """Begin to watch these members (name -> pid) after their launch, or again after `close`."""


class Counter(Edges, Protocol):
    """A collector of counts, which come with their status; what `stop` returns are series."""

    def attach(self, members: Mapping[str, Held]) -> None:
        """Begin to watch these members after their launch, or again after `close`."""

    def get_ready(self, active: Sequence[str], round_number: int) -> None:
        """Choose what this round counts, and start what takes time; the scene is set and settles."""

    def counts(self) -> list[Count]:
        """Return what the window that was closed last came to."""


class Monitor(Protocol):
    """Reads cache occupancy and bandwidth by member while a window runs."""

    name: str
    rate: float  # looks a second while a series runs

    def attach(self, members: Mapping[str, Held]) -> None:
        """Begin to watch these members, once, after their launch and after the allocator made its groups."""

    def start(self) -> None:
        """Begin a series."""

    def stop(self) -> list[Sample]:
        """End the series and return it."""

    def close(self) -> None:
        """Let go of everything; safe to call twice."""

    def about(self) -> dict[str, str]:
        """Describe what is read and how."""


class Allocator(Protocol):
    """Gives each member its cache ways and memory bandwidth."""

    name: str

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Make a group for each member, with everything for everybody, and move its processes there; once a launch."""

    def apply(self, shares: Sequence["Share"]) -> bool:
        """Give out these shares, and everything to those not named, and prove that they were taken.

        True where a member has lost ways: nothing evicts what lies in them.
        """

    def read_back(self) -> dict[str, str]:
        """Read the schemata now in force, by member, in one line of the kernel's words."""

    def misplaced(self) -> list[str]:
        """Describe which threads are not in their member's group."""

    def restore(self) -> None:
        """Put everything back as it was found; safe to call twice."""

    def about(self) -> dict[str, str]:
        """Describe what is driven and how."""


@runtime_checkable
class ServesHelpers(Protocol):
    """An allocator that can also have those who empty the caches reach all that members may fill."""

    def serve(self, helpers: Sequence[Held]) -> None:
        """Let them reach it, once, after `prepare`."""


@runtime_checkable
class ReadsProcessor(Protocol):
    """An allocator that can also read what the processor holds, and not only what the kernel was asked."""

    def processor(self) -> ProcessorReadings:
        """Return what the registers held under each set of shares so far."""
