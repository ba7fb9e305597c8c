"""Asks the lead for a profile of its next steps, and watches usual steps right before and after."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from castmates.protocols import Say
from castmates.runner.outcome import Outcome
from castmates.runner.processes.launch import Start
from castmates.runner.rounds.stage import Stage
from castmates.study.spec import Scene
from castmates.workloads.tfmodels import primitive_log
from castmates.workloads.tfmodels.profile_page import FOLDER, VARIABLE, Input, Page, PageError

LOOK = 0.1  # seconds between two looks at the page
PATIENCE = 60.0  # seconds, and …
SLOWER = 10.0  # … so many times the usual length of the steps
SPOILT = "its page was removed, replaced or cut"
Awaited = TypeVar("Awaited")


class NoAnswer(Exception):
    """A scene was not profiled; the message gives the reason."""


def offer(lead: Start, channels: Path, traces: Path | None = None, *, primitives: bool = False) -> None:
    """Give the lead, before its start, the page on which it can be asked, and a folder where it is to leave traces.

    With `primitives` oneDNN's log is switched on, which can be done at its start alone.
    """
    path = channels / f"{lead.name}.profile"
    Page.create(path).close()
    lead.environment[VARIABLE] = str(path)
    if traces is not None:
        lead.environment[FOLDER] = str(traces.absolute())
    if primitives:
        lead.environment.update(primitive_log.SETTINGS, **{primitive_log.VARIABLE: "1"})


@contextmanager
def page_of(stage: Stage, lead: str, say: Say) -> Iterator[Page | None]:
    """Open the page that the lead was given; None where it was given none, or cannot be asked."""
    path = stage.cast[lead].start.environment.get(VARIABLE)
    if path is None:
        yield None
        return
    try:
        page = Page(Path(path))
    except PageError:
        say(f"{lead} cannot be profiled: {SPOILT}")
        yield None
        return
    try:
        if not page.sound:
            say(f"{lead} cannot be profiled: {SPOILT}")
        elif not page.able:
            say(
                f"{lead} cannot be profiled: it does not look at the page that {VARIABLE} names (castmates help layers)"
            )
        yield page if page.sound and page.able else None
    finally:
        page.close()


def patience(steps: int, step_seconds: float) -> float:
    """How many seconds an answer may take."""
    return PATIENCE + SLOWER * steps * step_seconds


def answer_of(
    stage: Stage, page: Page, lead: str, steps: int, seconds: float, source: Input = Input.GOES_ON
) -> dict[str, Any]:
    """Ask for a profile of so many steps, and wait for it."""
    if not page.sound:
        raise NoAnswer(SPOILT)
    if source is not Input.GOES_ON and not page.begins_anew:
        raise NoAnswer(f"{lead} cannot begin its input anew")
    number = page.ask(steps, source)
    answer = _awaited(stage, lambda: page.answered(number), seconds)
    if "error" in answer:
        raise NoAnswer(f"the profiler of {lead} failed: {answer['error']}")
    return answer


def usual_beats(stage: Stage, lead: str, steps: int, seconds: float) -> list[int]:
    """The times of the next heartbeats, which enclose so many steps at least."""
    stage.forget_beats()

    def enough() -> list[tuple[int, int]] | None:
        records = stage.cast[lead].records
        return list(records) if len(records) > steps else None

    return [t_ns for t_ns, _ in _awaited(stage, enough, seconds)]


def mean_step(beats: list[int]) -> float:
    """The mean seconds of the steps between these heartbeats."""
    return (beats[-1] - beats[0]) / 1e9 / (len(beats) - 1)


def _awaited(stage: Stage, look: Callable[[], Awaited | None], seconds: float) -> Awaited:
    """Return what `look` returns when the lead has gone on for a while."""
    deadline = time.monotonic() + seconds
    while (awaited := look()) is None:
        if time.monotonic() > deadline:
            raise NoAnswer(f"nothing came for {seconds:.0f} s")
        stage.sleep_until(stage.now_ns() + int(LOOK * 1e9))
    return awaited


# What a profile launch comes to: traces, before they are read.


@dataclass(frozen=True)
class Taken:
    """What is known of a trace, or why there is none."""

    scene: Scene
    round: int  # of the scene in its launch, from 1
    pair: int = 0  # of the launch, from 1: from storage and from the page cache; 0 where it has none
    input: Input = Input.GOES_ON  # where its steps have their input from
    folder: Path | None = None  # where it lies; None where there is none
    reason: str = ""
    first_step: int = 0  # of the lead since its start, before which it has made so many
    clocks: list[tuple[int, int, int]] = field(default_factory=list)  # monotonic, real, and how sure, in nanoseconds
    threads: tuple[int, int] = (0, 0)  # of an operation, and of operations side by side
    write_seconds: float = 0.0
    storage_bytes: int | None = None  # that were read while it was taken; None where that is not known
    versions: dict[str, str] = field(default_factory=dict)  # of the frameworks of a program that is not ours
    before: list[int] = field(default_factory=list)  # heartbeats of usual steps, CLOCK_MONOTONIC
    after: list[int] = field(default_factory=list)


@dataclass
class Profiled(Outcome):
    """What a profile launch comes to."""

    taken: list[Taken] = field(default_factory=list)
    graph: bytes | None = None  # that the lead left of its step
    roofs: dict[str, Any] = field(default_factory=dict)  # of the lead's CPUs, where oneDNN logs

    def fail(self, reason: str) -> None:
        """Note that a workload failed."""
        super().fail(reason)
        self.taken.clear()
