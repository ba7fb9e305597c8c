"""PAPI as a further way to count a task: put on the program's threads, and inherited by those that these start.

Phases may be counted by PAPI (docs/phases.md), so whether it counts right on this machine is judged as well.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from castmates.errors import CastmatesError
from castmates.inside import papi
from castmates.inside.papi import PapiCounters
from castmates.inside.readings import Reading, difference
from castmates.linux.processes import threads_of
from castmates.protocols import Count, Held
from castmates.trials.counters import methods
from castmates.trials.counters.tasks import Scope, Trial
from castmates.trials.counters.verdict import Judged, judge

SOURCE = "PAPI"


class PapiEdges:
    """PAPI's counter of one event of one member, between two edges."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._counters: PapiCounters | None = None
        self._edges: list[tuple[Reading, ...]] = []

    def attach(self, members: dict[str, Held]) -> None:
        """Open the counter on every thread of the member."""
        pid = members[methods.MEMBER].pid
        self._counters = PapiCounters([self._event], lambda: sorted(threads_of(pid)))

    def start(self, active: Sequence[str]) -> None:  # noqa: ARG002 (there is one)
        """Read the opening edge."""
        self._edges = [self._opened.readings()]

    def stop(self) -> None:
        """Read the closing edge."""
        self._edges.append(self._opened.readings())

    def counts(self) -> list[Count]:
        """Return what was counted between the edges, or why nothing was."""
        if refusal := self._opened.refused.get(self._event):
            return [Count(methods.MEMBER, self._event, None, refusal.status, SOURCE, note=refusal.why)]
        before, after = (edge[0] for edge in self._edges)
        value = difference(self._event, before, after, self._opened.notes.get(self._event, ""))
        return [Count(methods.MEMBER, self._event, value.value, value.status, SOURCE, note=value.note)]

    def close(self) -> None:
        """Let go."""
        if self._counters is not None:
            self._counters.close()

    @property
    def _opened(self) -> PapiCounters:
        if self._counters is None:
            raise CastmatesError("PAPI's counters are read before they were opened")
        return self._counters


def engine(event: str, cpus: Sequence[int], scope: Scope) -> PapiEdges:  # noqa: ARG001 (it counts threads)
    """What counts an event by PAPI."""
    return PapiEdges(event)


def suits(trial: Trial) -> bool:
    """Whether PAPI can be asked for this: it has no modes behind an event's name, and no control groups."""
    return ":" not in trial.event and trial.scope == "thread"


def try_by_papi(trial: Trial, program: Path, directory: Path, cpu: int | None) -> Judged:
    """Count a task by PAPI, and judge it."""
    try:
        return judge(trial, *methods.by_engine(trial, program, directory, cpu, engine))
    except CastmatesError as why:
        return Judged("not checked", why=str(why))


def summary(rows: Sequence[tuple[Trial, Judged]]) -> dict[str, Any]:
    """What a record has of PAPI: the verdict on each event that was tried, or why none was."""
    if why := papi.why_not():
        return {"why": why, "events": {}}
    events: dict[str, str] = {}
    for trial, judged in rows:
        known = events.get(trial.event, "not checked")
        counted = judged.verdict == "verified" and trial.per_unit > 0
        if judged.verdict == "wrong" or (counted and known != "wrong"):
            events[trial.event] = judged.verdict
        else:
            events[trial.event] = known
    return {"why": "", "events": events}
