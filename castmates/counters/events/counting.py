"""Counts events for each member between the edges of windows, and at a steady rate between them.

Readings between the edges become samples: what was counted since the opening edge, so that any part of a window can be
had by subtraction. The first one is 0 at the opening edge, the last one the count of the window.
"""

import resource
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from castmates.counters.edges import BetweenEdges
from castmates.counters.events import budget as scopes
from castmates.counters.events.budget import ELSEWHERE, Budget, Rota, core_units, counting_on, probe
from castmates.counters.events.groups import Opened, Reading, Value, between, open_groups, without
from castmates.counters.events.resolving import Event, resolve
from castmates.linux.event_names import TABLE
from castmates.linux.perf_event import Target, paranoid
from castmates.linux.processes import Family
from castmates.protocols import Count, Held, Refusal, Sample, Say
from castmates.sampler import Sampler
from castmates.study.counter_keys import LAST_LEVEL
from castmates.study.spec import Counting

MOST_FILES = 65536
SOURCE = "perf_event_open"


@dataclass
class Member:
    """What counts one member: what the kernel counts itself, and the groups of each turn."""

    scope: str
    always: Opened
    turns: list[Opened]
    why_not: dict[str, Refusal] = field(default_factory=dict)  # of scopes that could not be had
    lacks: str = ""  # what may be in no count
    elsewhere: frozenset[str] = frozenset()  # events of other kinds of cores than the member's

    def opened(self, turn: int | None) -> list[Opened]:
        """Return what counts in this turn; None is another's turn."""
        return [self.always, *([] if turn is None else [self.turns[turn]])]

    def read(self, turn: int | None) -> dict[str, Reading]:
        """Read all that counts in this turn."""
        return {name: reading for groups in self.opened(turn) for name, reading in groups.read().items()}


class Counters:
    """Counts the events of a study for every member, in turns where they do not fit the processor at once."""

    name = "counters"
    every_slice = True
    inside_windows = True  # what is inherited costs at each context switch, and the series at each look

    def __init__(self, events: Sequence[Event], budget: Budget, rota: Rota, how: str = "auto", rate: float = 0) -> None:
        self._events, self._budget, self._how = list(events), budget, how
        self.worth_waiting = bool(budget.turns)  # the kernel's own events are rare, and in every slice's counts
        is_counted = bool(budget.turns) or any(event.in_software for event in events)
        self.series_rate = rate if is_counted else 0.0  # readings a second between the edges
        self._rota, self._turns = rota, rota.join(len(budget.turns))
        self._by_name = {event.name: event for event in events}
        self._members: dict[str, Member] = {}
        self._turn: int | None = 0 if budget.turns else None  # of ours that counts now
        self._opening: dict[str, dict[str, Reading]] = {}
        self._counts: list[Count] = []
        self._series: Sampler | None = None
        self._cpu_ns = self._open_ns = self._opened_at = 0
        self._in_series = False  # a slice that is not watched is too short for a series

    @property
    def own_rounds(self) -> list[int]:
        """The first rounds in which each of its turns comes; none where every round is alike."""
        return [self._rota.first_round(turn) for turn in self._turns]

    @classmethod
    def choose(cls, counting: Counting, cpus: Sequence[int], rota: Rota, say: Say) -> "Counters | None":
        """Find out what can be counted on these CPUs; None where nothing is wanted."""
        events = resolve(counting.events)
        if not events:
            return None
        budget = probe(events, cpus)
        unknown = [event.name for event in events if not event.attrs]
        if unknown:
            say(f"not counted, because perf does not know them here: {', '.join(unknown)}")
        if budget.refused:
            which = ", ".join(budget.refused)
            say(f"not counted, because this machine has no counters for them: {which}{_instead(budget, events)}")
        if len(budget.turns) > 1:
            say(f"the events need {len(budget.turns)} turns: no more than {max(map(len, budget.turns))} fit at once")
        return cls(events, budget, rota, counting.how, counting.series)

    def attach(self, members: Mapping[str, Held]) -> None:
        """Open everything, the later turns too; those rest."""
        _allow_many_files()
        always = [event for event in self._events if event.in_software]
        turns, known = [[self._by_name[name] for name in turn] for turn in self._budget.turns], core_units()
        for name, held in members.items():
            own = [counting_on(turn, held.cpus, known) for turn in turns]
            there = {event.name for turn in own for event in turn}
            with scopes.scope_of(held, self._how) as scope:
                self._members[name] = Member(
                    scope.name,
                    open_groups(always, scope.targets),
                    [open_groups(turn, scope.targets, resting=number != self._turn) for number, turn in enumerate(own)],
                    scope.why_not,
                    scope.lacks if scope.name == "thread" else "",
                    frozenset(event.name for turn in turns for event in turn) - there,
                )

    def get_ready(self, active: Sequence[str], round_number: int) -> None:  # noqa: ARG002 (a turn is everybody's)
        """Have the turn of this round, and begin a series at the next opening edge."""
        self._in_series = bool(self.series_rate)
        self.take_turn(round_number)

    def take_turn(self, round_number: int) -> None:
        """Let the events of this round's turn count, and the others rest."""
        turn = self._rota.turn(round_number)
        ours = self._turns.index(turn) if turn in self._turns else None
        if ours != self._turn:
            for number, on in ((self._turn, False), (ours, True)):
                for member in self._members.values():
                    if number is not None:
                        member.turns[number].switch(on)
            self._turn = ours

    def start(self, active: Sequence[str]) -> None:
        """Read the opening edge and begin the series."""
        begin = time.thread_time_ns()
        self._opening = {name: self._members[name].read(self._turn) for name in active if name in self._members}
        self._opened_at = time.monotonic_ns()
        self._cpu_ns += time.thread_time_ns() - begin
        if self._in_series:
            self._in_series = False
            self._series = Sampler("counters", self._look, 1 / self.series_rate)
            self._series.start()

    def stop(self) -> list[Sample]:
        """Read the closing edge and return the series."""
        begin = time.thread_time_ns()
        closing = {name: self._members[name].read(self._turn) for name in self._opening}
        now = time.monotonic_ns()
        self._open_ns += now - self._opened_at if self._opening else 0
        series, self._series = self._series, None
        between_edges = [sample for sample in series.finish() if sample.t_ns < now] if series else []
        self._cpu_ns += time.thread_time_ns() - begin + (series.cpu_ns if series else 0)
        self._counts = [self._count(name, event, closing[name]) for name in self._opening for event in self._events]
        edges = [
            Sample(t_ns, self.name, name, event, 0.0 if t_ns == self._opened_at else value.value, value.note)
            for name, readings in closing.items()
            for event in readings
            for value in [between(self._opening[name].get(event), readings[event])]
            for t_ns in (self._opened_at, now)
            if value.value is not None
        ]
        self._opening = {}
        return sorted([*between_edges, *edges], key=lambda sample: sample.t_ns) if series else []

    def counts(self) -> list[Count]:
        """Return what the window that was closed last came to: every event of every member, whatever its status."""
        return self._counts

    def close(self) -> None:
        """Let go of all counters; safe to call twice."""
        if self._series:
            with suppress(OSError):
                self._series.finish()
            self._series = None
        for member in self._members.values():
            for groups in (member.always, *member.turns):
                groups.close()
        self._members, self._opening = {}, {}

    def about(self) -> dict[str, str]:
        """Describe what each event is on this processor, how the members are counted, and what that cost so far."""
        facts = {"how": self._how} | self._budget.about()
        for event in self._events:
            facts[f"event {event.name}"] = f"{event.group}: {_encoded(event) or event.refusal}"
        for scope in dict.fromkeys(member.scope for member in self._members.values()):
            who = ", ".join(name for name, member in self._members.items() if member.scope == scope)
            facts[f"counted by {scope}" if scope else "not counted"] = f"{who}: {scopes.IN_WORDS[scope]}"
        why_not = {scope: why for member in self._members.values() for scope, why in member.why_not.items()}
        facts |= {f"not by {scope}": refusal.why for scope, refusal in why_not.items()}
        if self._open_ns:
            milliseconds = self._cpu_ns / self._open_ns * 1e3
            facts["cost"] = f"{milliseconds:.3f} ms of the runner's CPU time a second, over {self._open_ns / 1e9:.1f} s"
        return facts

    def _look(self) -> list[Sample]:
        """Return what was counted since the opening edge; who was on no processor yet has no sample."""
        samples = []
        for name, opening in self._opening.items():
            readings = self._members[name].read(self._turn)
            now = time.monotonic_ns()
            for event, reading in readings.items():
                value = between(opening.get(event), reading)
                if value.value is not None:
                    samples.append(Sample(now, self.name, name, event, value.value, value.note))
        return samples

    def _count(self, name: str, event: Event, closing: Mapping[str, Reading]) -> Count:
        member = self._members[name]
        value = self._value(member, event, self._opening[name], closing)
        notes = [groups.notes.get(event.name, "") for groups in member.opened(self._turn)]
        lacks = "; ".join(filter(None, (*notes, member.lacks)))
        return Count(
            subject=name,
            name=event.name,
            value=value.value,
            status=value.status,
            source=SOURCE,
            group=event.group,
            running=value.running,
            scope=member.scope,
            note="; ".join(filter(None, (value.note, lacks if value.value is not None else ""))),
        )

    def _value(
        self, member: Member, event: Event, opening: Mapping[str, Reading], closing: Mapping[str, Reading]
    ) -> Value:
        if refusal := event.refusal or self._budget.refused.get(event.name):
            return without(refusal)
        if not member.scope:
            return _without_a_scope(member.why_not)
        if event.name in member.elsewhere:
            return without(ELSEWHERE)
        if not event.in_software and not self._has_turn(event.name, self._turn):
            return without(Refusal("not counted", f"its turn comes {self._when(event.name)}"))
        for groups in member.opened(self._turn):
            if refusal := groups.refused.get(event.name):
                return without(refusal)
        return between(opening.get(event.name), closing.get(event.name))

    def _has_turn(self, name: str, turn: int | None) -> bool:
        return turn is not None and name in self._budget.turns[turn]

    def _when(self, name: str) -> str:
        own = next(number for number, turn in zip(self._turns, self._budget.turns, strict=True) if name in turn)
        return self._rota.when(own)


def _without_a_scope(why_not: Mapping[str, Refusal]) -> Value:
    """Explain why no member can be counted; where one scope lacks only a permission or a file, the machine could."""
    could = any(refusal.status == "not counted" for refusal in why_not.values())
    whys = "; ".join(f"{scope}: {refusal.why}" for scope, refusal in why_not.items())
    return Value(None, "not counted" if could else "not supported", None, whys)


def _encoded(event: Event) -> str:
    """Return the raw encodings, and where they come from."""
    return f"{', '.join(attr.encoding for attr in event.attrs)} ({event.source})" if event.attrs else ""


def _allow_many_files() -> None:
    """Allow us as many descriptors as we may have: a member needs one for each thread and event."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _instead(budget: Budget, events: Sequence[Event]) -> str:
    """What to count where a processor has no event for the kernel's names of its last cache, as AMD's since Zen."""
    lacking = budget.turns and LAST_LEVEL & budget.refused.keys()
    has_own = any(event.group == "sources" for event in events)
    return "; the set 'sources' has this processor's own events in their place" if lacking and not has_own else ""


# Counts how often each member was moved to another CPU, which /proc does not show.
#
# `perf stat --control` would need a process for each member, and its `enable` and `disable` print no counts (perf 6.1,
# with or without -I). So the counters are opened here and read at both edges of a window: no helper to die or wait for.

METRIC = "cpu_migrations"
CLOSED = Refusal("not counted", "the counters are closed")
_EVENT = Event("cpu-migrations", METRIC, "", (TABLE["cpu-migrations"],))
Readings = dict[str, Reading | None]  # by member


class Migrations(BetweenEdges[Readings]):
    """Counts migrations between two edges; where they cannot be counted its samples have no value."""

    name = "perf"
    inside_windows = True  # what is inherited costs at each context switch

    def __init__(self) -> None:
        self._opened: dict[str, Opened] = {}
        self._late: list[str] = []

    @staticmethod
    def available() -> str | None:
        """Return in one sentence why migrations cannot be counted here; None where they can."""
        opened = _open({0})  # this thread
        opened.close()
        refusal = opened.refused.get(METRIC)
        return str(refusal) if refusal else None

    def attach(self, members: Mapping[str, int]) -> None:
        """Open the counters on every thread the members have so far; later threads and children inherit them."""
        for member, pid in members.items():
            before = Family(pid).threads()
            self._opened[member] = _open(before)
            if Family(pid).threads() - before:
                self._late.append(member)

    def _look(self) -> Readings:
        return {
            member: self._opened[member].read().get(METRIC) if member in self._opened else None
            for member in self._active
        }

    def _between(self, opening: Readings, closing: Readings) -> list[Sample]:
        now = time.monotonic_ns()
        shares, counts = [], []
        for member, before in opening.items():
            refused = self._opened[member].refused.get(METRIC) if member in self._opened else CLOSED
            value = without(refused) if refused else between(before, closing[member])
            if value.running is not None:
                shares.append(Sample(now, self.name, member, "running_share", value.running))
            note = f"{value.status}: {value.note}" if value.note else ""
            counts.append(Sample(now, self.name, member, METRIC, value.value, note))
        return shares + counts

    def close(self) -> None:
        """Close all counters; safe to call twice."""
        for opened in self._opened.values():
            opened.close()
        self._opened = {}
        super().close()

    def about(self) -> dict[str, str]:
        """Describe which event is counted, how, and what may be missing."""
        facts = {
            "events": METRIC,
            "how": "perf_event_open on every thread, inherited, read at both edges",
            "cost": "each context switch of a member takes longer by up to a few microseconds",
            "perf_event_paranoid": paranoid(),
        }
        if self._late:
            facts["started threads while counters were opened"] = ", ".join(self._late)
        refused = {member: opened.refused.get(METRIC) for member, opened in self._opened.items()}
        return facts | {f"{member} {METRIC}": str(refusal) for member, refusal in refused.items() if refusal}


def _open(threads: set[int]) -> Opened:
    return open_groups([_EVENT], [Target(tid, inherit=True) for tid in sorted(threads)])
