"""The Top-Down analysis of each member in each window of its turns, by a perf for each member.

It is perf that knows the metrics of a processor and computes them; here it is started while the scene settles, asked to
count at the opening edge and to stop at the closing one, and read afterwards.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castmates.counters.events.budget import Rota
from castmates.counters.topdown.probe import Offer, probe
from castmates.counters.topdown.process import (
    NAME,
    Answer,
    Asked,
    PerfProcess,
    counts_of,
    hear_all,
    series_of,
    without_value,
)
from castmates.errors import CastmatesError
from castmates.linux.cgroups import memberships
from castmates.linux.perf_event import PERF_DEVICES
from castmates.linux.processes import Family
from castmates.protocols import Count, Counter, Held, Sample, Say
from castmates.study.counter_keys import LEVEL_ONE, category
from castmates.study.cpus import format_cpu_list, parse

# How perf is made to count one member: its control group, its processes, or its CPUs.

How = Literal["auto", "cgroup", "thread", "cpu"]
HIERARCHIES = ("perf_event", "")  # of v1, else the unified one; perf itself looks for them in this order
DEVICES = Path("/", PERF_DEVICES)
KINDS = ("core", "atom")


@dataclass(frozen=True)
class Scope:
    """Perf's words for one member."""

    name: str  # cgroup, thread, cpu
    words: tuple[str, ...]
    note: str = ""


def scope_of(held: Held, family: Family, how: How, devices: Path = DEVICES) -> Scope | str:
    """Return perf's words for this member, or a sentence that explains why there are none."""
    on = ("-a", "-C", format_cpu_list(held.cpus))
    kind = ("--cputype", core_kind) if (core_kind := kind_of(held.cpus, devices)) else ()
    if how == "cpu":
        return Scope("cpu", (*on, *kind), "everything that ran on the member's CPUs")
    if how != "thread" and (group := group_for_perf(held)):
        return Scope("cgroup", (*on, "--for-each-cgroup", group, *kind))
    if how == "cgroup":
        return "the member has no control group that perf counts by (it needs cgroup v2, or v1's perf_event)"
    living = [str(process.pid) for process in family.living()]
    return Scope("thread", ("-p", ",".join(living), *kind)) if living else "the member ended before perf was started"


def group_for_perf(held: Held, root: Path = Path("/")) -> str:
    """Return perf's name for the member's own group; "" where it is in a hierarchy that perf does not count by."""
    groups = memberships(held.pid, root)
    name = next((groups[hierarchy] for hierarchy in HIERARCHIES if hierarchy in groups), "").strip("/")
    return name if name and held.cgroup and held.cgroup.rstrip("/").endswith(f"/{name}") else ""


def kind_of(cpus: Sequence[int], devices: Path = DEVICES) -> str:
    """Which of a hybrid processor's kinds of core all these CPUs are; "" where they are mixed, and elsewhere."""
    for kind in KINDS:
        with suppress(OSError, ValueError, CastmatesError):
            file = devices / f"cpu_{kind}" / "cpus"
            if set(cpus) <= set(parse(file.read_text().strip(), str(file))):
                return kind
    return ""


READY_WITHIN_S = 5.0
OBEYS_WITHIN_S = 1.0
FASTEST_MS = 10  # that perf prints at
UNCLOSED = Answer("", "", "the window was not closed")


@dataclass
class Watch:
    """A perf that counts one member in one window, and when it was heard to obey."""

    perf: PerfProcess
    scope: Scope
    stands_by_ns: int = 0
    open_ns: int = 0
    close_ns: int = 0
    answer: Answer = UNCLOSED


class Topdown:
    """Counts the metrics that perf offers, one turn of them in each of its rounds."""

    name = NAME
    inside_windows = True

    def __init__(self, offer: Offer, rota: Rota, how: How = "auto", rate: float = 0.0) -> None:
        self._offer, self._how, self._rota = offer, how, rota
        self.worth_waiting = True
        self.series_rate = rate if offer.in_series else 0.0  # prints in a second; 0 for the whole window alone
        self._turns = rota.join(len(offer.turns))
        self._members: dict[str, tuple[Held, Family]] = {}
        self._watches: dict[str, Watch] = {}
        self._refused: dict[str, str] = {}
        self._turn: tuple[str, ...] = ()
        self._scopes: set[str] = set()
        self._not_by_cgroup = ""

    @property
    def own_rounds(self) -> list[int]:
        """The first rounds in which each of its turns comes."""
        return [self._rota.first_round(turn) for turn in self._turns]

    def attach(self, members: Mapping[str, Held]) -> None:
        """Know the members; perf is started for each window."""
        self._members = {member: (held, Family(held.pid)) for member, held in members.items()}

    def get_ready(self, active: Sequence[str], round_number: int) -> None:
        """Start a perf for each active member, where this round is one of ours, and wait until they stand by."""
        self.close()
        turn = self._rota.turn(round_number)
        self._turn = self._offer.turns[self._turns.index(turn)] if turn in self._turns else ()
        members = [member for member in active if member in self._members] if self._turn else []
        self._begin(members)
        watches = self._watches.values()
        failed = [watch.perf.why for watch in watches if watch.perf.ended_by_itself and watch.scope.name == "cgroup"]
        if failed and self._how == "auto":
            self._how, self._not_by_cgroup = "thread", failed[0]
            self.close()
            self._begin(members)

    def start(self, active: Sequence[str]) -> None:  # noqa: ARG002 – they were chosen when it got ready
        """Have them count from here on."""
        for watch in self._order("enable", OBEYS_WITHIN_S):
            watch.open_ns = watch.perf.heard_ns

    def stop(self) -> list[Sample]:
        """Have them count no longer; what they print is asked for after the edges."""
        for watch in self._order("disable", OBEYS_WITHIN_S):
            watch.close_ns = watch.perf.heard_ns
        return []

    def late_samples(self) -> list[Sample]:
        """End them, and return the shares of the intervals that they printed."""
        self._end()
        return [
            sample
            for member, watch in self._watches.items()
            for sample in series_of(
                self._asked(member, watch.scope), watch.answer, watch.stands_by_ns, watch.open_ns, watch.close_ns
            )
        ]

    def counts(self) -> list[Count]:
        """Return what they printed of the whole window."""
        self._end()
        counts = [
            count
            for member, why in self._refused.items()
            for count in without_value(self._asked(member), "not counted", why)
        ]
        for member, watch in self._watches.items():
            self._scopes.add(watch.scope.name)
            counts += counts_of(self._asked(member, watch.scope), watch.answer)
        self._watches, self._refused = {}, {}
        return counts

    def close(self) -> None:
        """End them all; safe to call twice."""
        self._end()
        self._watches, self._refused = {}, {}

    def about(self) -> dict[str, str]:
        """Describe which metrics were asked for, what they are, and how."""
        offer = self._offer
        turns = zip(offer.turns, self._turns, strict=True)
        facts = {
            "metrics": "; ".join(f"{', '.join(names)} {self._rota.when(turn)}" for names, turn in turns),
            "how": f"{offer.program} stat, one for each member and window, enabled and disabled at its edges",
            "perf": offer.version,
            "scope": ", ".join(sorted(self._scopes)) or self._how,
        }
        facts |= {f"{name} is": known.expression for name, known in offer.metrics.items() if known.expression}
        facts |= {"not by cgroup": self._not_by_cgroup} if self._not_by_cgroup else {}
        return facts | {f"note {number}": note for number, note in enumerate(offer.notes, start=1)}

    def _begin(self, members: Sequence[str]) -> None:
        """Start a perf for each of these, and wait until they stand by."""
        milliseconds = max(FASTEST_MS, round(1000 / self.series_rate)) if self.series_rate else 0
        series = ["-I", str(milliseconds), "--summary"] if milliseconds else []
        for member in members:
            scope = scope_of(*self._members[member], self._how)
            if isinstance(scope, str):
                self._refused[member] = scope
            else:
                words = [*self._offer.format, *series, "-M", ",".join(self._turn), *scope.words]
                self._watches[member] = Watch(PerfProcess(self._offer.program, words), scope)
        # They count nothing yet: the answer shows that they listen, which is when their own time begins.
        for watch in self._order("disable", READY_WITHIN_S):
            watch.stands_by_ns = watch.perf.heard_ns

    def _order(self, word: str, within_s: float) -> list[Watch]:
        """Order all, then hear all, so that their edges lie close together; return who obeyed."""
        watches = list(self._watches.values())
        for watch in watches:
            watch.perf.order(word)
        hear_all([watch.perf for watch in watches], word, time.monotonic() + within_s)
        return [watch for watch in watches if not watch.perf.why]

    def _end(self) -> None:
        for watch in self._watches.values():
            if not watch.perf.ended:
                watch.answer = watch.perf.end()

    def _asked(self, member: str, scope: Scope | None = None) -> Asked:
        asked, metrics = set(self._turn), self._offer.metrics
        known = [category(name) for name, metric in metrics.items() if name in asked or asked & set(metric.groups)]
        names = tuple(dict.fromkeys(known_category.name for known_category in known if known_category)) or LEVEL_ONE
        return Asked(member, names, ",".join(self._turn), scope.name if scope else "", scope.note if scope else "")


class NoTopdown:
    """Stands in where there are no Top-Down metrics: it reports that for each member, and costs nothing."""

    name = NAME
    inside_windows = False

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._active: tuple[str, ...] = ()

    def attach(self, members: Mapping[str, Held]) -> None:
        """Watch nothing."""

    def get_ready(self, active: Sequence[str], round_number: int) -> None:  # noqa: ARG002 – no round has any
        """Note who is active."""
        self._active = tuple(active)

    def start(self, active: Sequence[str]) -> None:
        """Mark no edge."""

    def stop(self) -> list[Sample]:
        """Return no samples."""
        return []

    def counts(self) -> list[Count]:
        """Report for each active member that its processor has no Top-Down metrics."""
        asked = [Asked(member, LEVEL_ONE) for member in self._active]
        return [count for member in asked for count in without_value(member, "not supported", self._offer.why_not)]

    def close(self) -> None:
        """Let go of nothing."""

    def about(self) -> dict[str, str]:
        """Explain why nothing is counted."""
        return {"metrics": f"none: {self._offer.why_not}", "perf": self._offer.version or "none"}


def choose_topdown(level: int, how: How, rate: float, rota: Rota, say: Say) -> list[Counter]:
    """Return what gives Top-Down metrics up to this level here; nothing where none are wanted."""
    if not level:
        return []
    offer = probe(level)
    if offer.why_not:
        say(f"no Top-Down metrics: {offer.why_not}")
        return [NoTopdown(offer)]
    return [Topdown(offer, rota, how, rate)]
