"""How a task is counted: by the project's own counters, and by perf stat as a second method."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from castmates.counters.events.budget import Rota, probe
from castmates.counters.events.counting import Counters
from castmates.counters.events.resolving import resolve
from castmates.counters.topdown.perf_reading import parse
from castmates.errors import CastmatesError
from castmates.inside import papi
from castmates.inside.papi import PapiCounters
from castmates.inside.readings import Reading, difference
from castmates.linux.processes import threads_of
from castmates.protocols import Count, Held, Status
from castmates.runner.processes.freezer import choose_freezer
from castmates.trials.counters.program import (
    PATIENCE_S,
    CannotHere,
    Judged,
    Portion,
    Scope,
    Trial,
    account_of,
    judge,
    known,
    words,
)

MEMBER = "known"
RUNS = 3  # of perf stat, for each length


class Edges(Protocol):
    """What counts a member between two edges, as the project's counters do."""

    def attach(self, members: dict[str, Held]) -> None:
        """Open the counters."""

    def start(self, active: Sequence[str]) -> None:
        """Read the opening edge."""

    def stop(self) -> object:
        """Read the closing edge."""

    def counts(self) -> list[Count]:
        """Return the counts between the edges."""

    def close(self) -> None:
        """Let go."""


Engine = Callable[[str, Sequence[int], Scope], Edges]  # event, CPUs, whom it counts -> what counts it


def own_engine(event: str, cpus: Sequence[int], scope: Scope) -> Edges:
    """Return the counters of a study, for one event."""
    events = resolve([("verify", (event,))])
    return Counters(events, probe(events, cpus), Rota(), how=scope)


def why_not_countable(event: str, cpus: Sequence[int]) -> str:
    """Explain why no counter can be had for an event; "" where one can."""
    resolved = resolve([("verify", (event,))])
    refused = probe(resolved, cpus).refused
    return next((str(why) for tried in resolved if (why := tried.refusal or refused.get(tried.name))), "")


@contextmanager
def group_of(pid: int, scope: Scope) -> Iterator[str | None]:
    """A control group for the process, where it is to be counted by one; as members of a launch have it."""
    if scope != "cgroup":
        yield None
        return
    freezer = choose_freezer("verify-counters")
    try:
        freezer.adopt(MEMBER, pid)
        group = freezer.group_of(MEMBER)
        if group is None:
            raise CannotHere("no control group can be had here")
        yield str(group)
    finally:
        freezer.close()


def by_engine(
    trial: Trial, program: Path, directory: Path, cpu: int | None, engine: Engine = own_engine
) -> tuple[list[Portion], list[Portion]]:
    """Count short and long portions in turns; each list holds those of one length."""
    cpus = sorted(os.sched_getaffinity(0)) if cpu is None else [cpu]
    portions: dict[int, list[Portion]] = {trial.short: [], trial.long: []}
    with known(words(program, trial, cpu, directory)) as process, ExitStack() as grouped:
        process.go(trial.short)  # what is only done once is done now
        counters = engine(trial.event, cpus, trial.scope)
        try:
            counters.attach(
                {MEMBER: Held(process.pid, cpus, grouped.enter_context(group_of(process.pid, trial.scope)))}
            )
            for _ in range(trial.pairs):
                for units in portions:
                    counters.start([MEMBER])
                    own = process.go(units)
                    counters.stop()
                    counts = counters.counts()
                    if len(counts) != 1:
                        raise CastmatesError(f"{len(counts)} counts came for {trial.event}, where one was expected")
                    count = counts[0]
                    portions[units].append(Portion(units, count.value, count.status, count.note, own.of(trial.account)))
        finally:
            counters.close()
    return portions[trial.short], portions[trial.long]


def by_perf_stat(
    trial: Trial, program: Path, directory: Path, cpu: int | None
) -> tuple[list[Portion], list[Portion]] | None:
    """Have perf count whole runs of the program; None where there is no perf."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    command = [perf, "stat", "-j", "-e", trial.event, *words(program, trial, cpu, directory)]
    portions: dict[int, list[Portion]] = {trial.short: [], trial.long: []}
    for _ in range(RUNS):
        for units in portions:
            portions[units].append(_one_run([*command, f"units={units}"], units, trial))
    return portions[trial.short], portions[trial.long]


def _one_run(command: Sequence[str], units: int, trial: Trial) -> Portion:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise CastmatesError(
            f"known did not get on within {PATIENCE_S:g} s under perf stat: is this machine busy?"
        ) from None
    output = done.stdout.strip()
    if output.startswith("cannot: "):
        raise CannotHere(output.removeprefix("cannot: "))
    if done.returncode != 0:
        return Portion(units, None, "not counted", f"perf stat: {next(iter(done.stderr.splitlines()), 'it failed')}")
    lines = parse(done.stderr).lines
    whole = [line.value * (1e6 if line.unit == "msec" else 1.0) for line in lines if line.value is not None]
    if len(whole) < len(lines) or not whole:
        lost: Status = next((line.status for line in lines if line.value is None), "not counted")
        return Portion(units, None, lost, "perf stat")
    status: Status = "scaled" if any(line.status == "scaled" for line in lines) else "counted"
    user_only = trial.event != lines[0].event and lines[0].event.endswith(":u")
    note = "user mode only" if user_only else ""
    return Portion(units, sum(whole), status, note, account_of(output).of(trial.account))


# PAPI as a further way to count a task: put on the program's threads, and inherited by those that these start.
#
# Phases may be counted by PAPI (docs/phases.md), so whether it counts right on this machine is judged as well.

SOURCE = "PAPI"


class PapiEdges:
    """PAPI's counter of one event of one member, between two edges."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._counters: PapiCounters | None = None
        self._edges: list[tuple[Reading, ...]] = []

    def attach(self, members: dict[str, Held]) -> None:
        """Open the counter on every thread of the member."""
        pid = members[MEMBER].pid
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
            return [Count(MEMBER, self._event, None, refusal.status, SOURCE, note=refusal.why)]
        before, after = (edge[0] for edge in self._edges)
        value = difference(self._event, before, after, self._opened.notes.get(self._event, ""))
        return [Count(MEMBER, self._event, value.value, value.status, SOURCE, note=value.note)]

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
        return judge(trial, *by_engine(trial, program, directory, cpu, engine))
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
