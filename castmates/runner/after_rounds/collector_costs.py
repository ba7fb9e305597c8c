"""What each collector costs the lead: pairs of the lead's short windows alone after the rounds, with and without it.

A collector that works inside a window is really off in the windows without it: its counters are closed and opened
again, because inherited counters cost time at each context switch, read or not. A round of windows has one with
everything on and one without each collector, in random order. A collector that works at the edges alone costs a window
nothing; the time of its reads is recorded.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

from castmates.protocols import Collector, Counter, Held, Sample, Say
from castmates.rdt.choose import NoMonitor
from castmates.runner.outcome import Measured
from castmates.runner.rounds.hardware import Hardware, HasSeries
from castmates.runner.rounds.ledger import Ledger
from castmates.runner.rounds.slices import measure_watched
from castmates.runner.rounds.stage import Stage
from castmates.study.profile_launches import LONGEST_COST_WINDOW
from castmates.study.spec import UNMANAGED, Scene

STEPS = 10  # of the lead in a window
RATE = "rate of the lead"
READS = "seconds that its two reads take, outside the window"

Off = Callable[[], AbstractContextManager[Hardware]]
Rate = Callable[[Hardware, int], float | None]  # of a window in the round of this number; None: it does not count


@dataclass
class Part:
    """Something that works inside windows, the hardware without it, and the round in which it counts."""

    name: str
    off: Off
    round: int = 1
    logs: list[float] = field(default_factory=list)  # of the lead's rate with it over the rate without it
    rejected: int = 0  # pairs with a window that does not count


class Timed:
    """A collector whose reads are timed."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.name = collector.name
        self.attach, self.close, self.about = collector.attach, collector.close, collector.about
        self.seconds: list[float] = []  # of the two reads of each window

    def start(self, active: Sequence[str]) -> None:
        """Read the opening edge."""
        begin = time.perf_counter()
        self.collector.start(active)
        self.seconds.append(time.perf_counter() - begin)

    def stop(self) -> list[Sample]:
        """Read the closing edge."""
        begin = time.perf_counter()
        samples = self.collector.stop()
        self.seconds[-1] += time.perf_counter() - begin
        return samples


def measure_costs(outcome: Measured, stage: Stage, say: Say) -> None:
    """Measure what each collector costs, and note it in the outcome."""
    launch = outcome.launch
    if not (pairs := launch.design.counters.cost_pairs):
        return
    whole = stage.hardware
    edges = [Timed(collector) for collector in whole.collectors if not works_inside(collector)]
    timed: dict[int, Collector] = {id(edge.collector): edge for edge in edges}
    watched = replace(whole, collectors=[timed.get(id(collector), collector) for collector in whole.collectors])
    members = [member.name for member in launch.cohort.members]
    parts = parts_of(watched, stage.held(), members, lambda: stage.switch([]))
    rate = _alone_rate(outcome, stage, say)
    try:
        for number in range(pairs):
            for round_number in sorted({part.round for part in parts} or {1}):
                now = [part for part in parts if part.round == round_number]
                dice = random.Random(f"{launch.seed}/costs/{number}/{round_number}")
                measure_round(now, watched, rate, round_number, dice)
    finally:
        stage.hardware = whole
    outcome.costs |= {part.name: pairs_about(part.logs, part.rejected) for part in parts}
    outcome.costs |= {edge.name: _reads_about(edge) for edge in edges}
    say(f"measuring overhead: {_summary(outcome.costs)}")


def works_inside(source: Collector | Counter) -> bool:
    """Check whether it does something while a window is open, so that it can cost the lead something there."""
    return bool(getattr(source, "inside_windows", False))


def parts_of(
    hardware: Hardware, held: Mapping[str, Held], members: Sequence[str], still: Callable[[], None]
) -> list[Part]:
    """Return everything that works inside windows, with the way to be without it."""
    pids = {name: each.pid for name, each in held.items()}
    served = {name: each for name, each in held.items() if name in members}
    parts = []
    for collector in filter(works_inside, hardware.collectors):
        rest = replace(hardware, collectors=[other for other in hardware.collectors if other is not collector])
        parts.append(Part(collector.name, _without(rest, collector.close, partial(collector.attach, pids), still)))
    for counter in filter(works_inside, hardware.counters):
        rest = replace(hardware, counters=[other for other in hardware.counters if other is not counter])
        own = getattr(counter, "own_rounds", None) or [1]
        off = _without(rest, counter.close, partial(counter.attach, served), still)
        parts.append(Part(counter.name, off, own[0]))
        if isinstance(counter, HasSeries) and counter.series_rate:
            parts.append(Part(f"{counter.name} series", _without_series(hardware, counter), own[0]))
    if not isinstance(hardware.monitor, NoMonitor):
        silent = replace(hardware, monitor=NoMonitor("none: its cost is measured"))
        parts.append(Part(hardware.monitor.name, lambda: nullcontext(silent)))
    return parts


def pairs_about(logs: Sequence[float], rejected: int = 0, of: str = RATE) -> dict[str, Any]:
    """Return the change in per cent that pairs show, with its interval, and the pairs themselves, for launch.json."""
    note = f"{rejected} pairs left out: a window of theirs was rejected" if rejected else ""
    about: dict[str, Any] = {"pairs": len(logs), "change_pct": None, "low": None, "high": None, "of": of, "note": note}
    if logs:
        about |= {name: _number(value) for name, value in _change(logs).items()}
    return about | {"logs": [round(log, 6) for log in logs]}


def _change(logs: Sequence[float]) -> Mapping[str, float]:
    """Return the change and its interval; a single pair, which is the rule, has none and needs no statistics."""
    if len(logs) == 1:
        return {"change_pct": 100.0 * math.expm1(logs[0]), "low": math.nan, "high": math.nan}
    import pandas as pd

    from castmates.analysis.design.pilot import costs

    table = pd.DataFrame({"collector": "it", "cohort": "", "launch": 1, "difference": list(logs)})
    row = costs(table).iloc[0]
    return {name: float(row[name]) for name in ("change_pct", "low", "high")}


def measure_round(parts: Sequence[Part], watched: Hardware, rate: Rate, round_number: int, dice: random.Random) -> None:
    """Measure one window with everything on, and one without each part, in random order."""
    order: list[Part | None] = [None, *parts]
    dice.shuffle(order)
    rates: dict[str, float | None] = {}
    for part in order:
        if part is None:
            rates[""] = rate(watched, round_number)
        else:
            with part.off() as hardware:
                rates[part.name] = rate(hardware, round_number)
    for part in parts:
        on, off = rates[""], rates[part.name]
        if on and off:
            part.logs.append(math.log(on / off))
        else:
            part.rejected += 1


def _alone_rate(outcome: Measured, stage: Stage, say: Say) -> Rate:
    """Return a function that measures the lead alone for a short window."""
    cohort, design = outcome.launch.cohort, outcome.launch.design
    lead = cohort.lead.name
    length = min(design.window, LONGEST_COST_WINDOW)
    assert outcome.pace is not None
    measured_s = max(length, STEPS * outcome.pace.steps.of_member[lead])
    pace = outcome.pace.of_length(measured_s, outcome.settle_seconds)
    members = {member.name: member for member in cohort.members}
    scene = Scene(name="alone", kind="alone", mix="", active=(lead,), placebos=(), partition=UNMANAGED)
    ledger = Ledger(stage, members, design, frozenset(outcome.runner_cpus))

    def rate(hardware: Hardware, round_number: int) -> float | None:
        stage.hardware = hardware
        each = measure_watched(stage, scene, pace, members, design, round_number)
        if reasons := [*ledger.judge(each), *ledger.proofs(each)]:
            say(f"a window that shows costs is rejected: {'; '.join(map(str, reasons))}")
            return None
        return each.progress(lead).rate

    return rate


def _without(rest: Hardware, close: Callable[[], None], attach: Callable[[], None], still: Callable[[], None]) -> Off:
    """Take a collector off; it attaches again while everybody stands `still`, or a thread born meanwhile is missed."""

    @contextmanager
    def off() -> Iterator[Hardware]:
        close()
        try:
            yield rest
        finally:
            still()
            attach()

    return off


def _without_series(hardware: Hardware, counter: HasSeries) -> Off:
    @contextmanager
    def off() -> Iterator[Hardware]:
        usual, counter.series_rate = counter.series_rate, 0.0
        try:
            yield hardware
        finally:
            counter.series_rate = usual

    return off


def _reads_about(edge: Timed) -> dict[str, Any]:
    """Return what launch.json has of a collector that works at the edges alone."""
    seconds = median(edge.seconds) if edge.seconds else None
    nothing = {"pairs": 0, "change_pct": None, "low": None, "high": None, "note": "works at the edges alone"}
    return nothing | {"of": READS, "seconds": None if seconds is None else round(seconds, 6)}


def _summary(costs: Mapping[str, Mapping[str, Any]]) -> str:
    parts = [
        f"{name} {cost['change_pct']:+.2f} % of the rate in {cost['pairs']} pairs"
        for name, cost in costs.items()
        if cost["change_pct"] is not None
    ]
    return ", ".join(parts) or "none inside windows"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)
