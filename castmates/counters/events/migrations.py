"""Counts how often each member was moved to another CPU, which /proc does not show.

`perf stat --control` would need a process for each member, and its `enable` and `disable` print no counts (perf 6.1,
with or without -I). So the counters are opened here and read at both edges of a window: no helper to die or wait for.
"""

import time
from collections.abc import Mapping

from castmates.counters.edges import BetweenEdges
from castmates.counters.events.groups import Opened, Reading, between, open_groups, without
from castmates.counters.events.resolving import Event
from castmates.linux.event_names import TABLE
from castmates.linux.perf_event import Target, paranoid
from castmates.linux.processes import Family
from castmates.protocols import Refusal, Sample

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
