"""One `perf stat` that stands by, counts between two edges, and is always ended.

It starts disabled (-D -1) and obeys its control pipe: `enable` and `disable` come back acknowledged. Its print goes
into a file without a name, so that nothing is left, whichever process is killed.
"""

import io
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO

from castmates.counters.topdown.perf_csv import WHOLE, Line, Metric, Report, pmu_of
from castmates.counters.topdown.perf_reading import parse
from castmates.errors import CastmatesError
from castmates.linux.end_with_parent import end_with_parent
from castmates.protocols import Count, Sample, Status
from castmates.study.counter_keys import BY_NAME, category, remainders

ACKNOWLEDGED = b"ack\n"
ENDS_WITHIN_S = 2.0


@dataclass(frozen=True)
class Answer:
    """What perf printed; `why` explains what went wrong, "" where nothing did."""

    text: str
    errors: str
    why: str = ""


class PerfProcess:
    """Drives one perf. Whatever fails is remembered in `why`, in words; nothing raises."""

    def __init__(self, program: str, words: Sequence[str]) -> None:
        """Start it: `words` are all its options but those of the control pipe and the output."""
        self.why = ""
        self.ended_by_itself = False  # it would not run; else it was slow
        self.ended = False
        self.heard_ns = 0  # when it last acknowledged, CLOCK_MONOTONIC
        self._heard = b""
        self._output: IO[bytes] = io.BytesIO()
        self._errors: IO[bytes] = io.BytesIO()
        self._orders = self.hears = orders = answers = -1
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._output = tempfile.TemporaryFile()  # noqa: SIM115 – closed by `end`
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115
            orders, self._orders = os.pipe()
            self.hears, answers = os.pipe()
            os.set_blocking(self._orders, False)
            pipes = ["--control", f"fd:{orders},{answers}", "--log-fd", str(self._output.fileno())]
            self._process = subprocess.Popen(
                [program, "stat", "-D", "-1", *pipes, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=(orders, answers, self._output.fileno()),
                process_group=0,
                preexec_fn=end_with_parent(),
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.why = f"{program} cannot be started: {getattr(error, 'strerror', None) or error}"
        finally:
            for fd in (orders, answers):
                if fd >= 0:
                    os.close(fd)

    @property
    def pid(self) -> int | None:
        """Its number, for those that watch."""
        return self._process.pid if self._process else None

    def order(self, word: str) -> None:
        """Send `enable` or `disable`; the acknowledgement is awaited apart, so that several perfs go at once."""
        if self.why:
            return
        try:
            os.write(self._orders, word.encode() + b"\n")
        except OSError:
            self.fail(f"it did not take the command '{word}'")

    def obeyed(self, word: str, deadline: float) -> bool:
        """Wait for the acknowledgement of an order, until this time of the monotonic clock."""
        hear_all([self], word, deadline)
        return not self.why

    def listen(self, word: str) -> bool:
        """Read what it has printed; True where that was the acknowledgement, or nothing more can come."""
        more = os.read(self.hears, 64)
        self._heard = (self._heard + more).rstrip(b"\0")
        if self._heard.endswith(ACKNOWLEDGED):
            self._heard, self.heard_ns = b"", time.monotonic_ns()
        elif not more:
            self.fail(f"it closed its pipe before '{word}' was acknowledged")
        else:
            return False
        return True

    def fail(self, why: str) -> None:
        """Give it up, with its own last words where it has ended."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):  # it may be about to end
                self._process.wait(0.2)
            self.ended_by_itself = self._process.returncode is not None
        self.why = why
        if self._process is not None and self.ended_by_itself:
            self.why = f"it ended with status {self._process.returncode}: {last_words(_text(self._errors)) or why}"

    def end(self) -> Answer:
        """End it, with its print if it will give one, and by force if it will not; safe to call twice."""
        if self._process is not None:
            self._stop(self._process)
        text, errors = (_text(file) for file in (self._output, self._errors))
        for fd in (self._orders, self.hears):
            with suppress(OSError):
                os.close(fd)
        self._orders = self.hears = -1
        self.ended = True
        self._output.close()
        self._errors.close()
        return Answer(text, errors, self.why)

    def _stop(self, process: "subprocess.Popen[bytes]") -> None:
        for number, patience in ((signal.SIGINT, ENDS_WITHIN_S), (signal.SIGKILL, ENDS_WITHIN_S)):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                self.why = self.why or f"it did not end within {ENDS_WITHIN_S:g} s and was killed"
                continue
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def hear_all(perfs: Iterable[PerfProcess], word: str, deadline: float) -> None:
    """Wait until each has acknowledged an order, or has failed, or the time is out."""
    waiting = {perf.hears: perf for perf in perfs if not perf.why}
    ears = select.poll()  # select() is lost where counters hold more than a thousand files
    for fd in waiting:
        ears.register(fd, select.POLLIN)
    while waiting:
        left = max(0.0, deadline - time.monotonic())  # at 0 what was already printed is still read
        for fd, _ in ears.poll(left * 1000):
            if waiting[fd].listen(word):
                ears.unregister(fd)
                del waiting[fd]
        if not left:
            for perf in waiting.values():
                perf.fail(f"it did not acknowledge '{word}' in time")
            return


def last_words(errors: str) -> str:
    """Return the line of perf's complaint that explains most: the first that names an error, else the first."""
    lines = [line.strip() for line in errors.splitlines() if line.strip(" \t\n\\_^'.-")]
    lines = [line for line in lines if not line.startswith(("Events enabled", "Events disabled", "Usage:"))]
    complaints = [line for line in lines if "rror" in line or "annot" in line or "unknown" in line or "ermi" in line]
    useful = [line for line in complaints if line not in ("Error:",)] or lines
    return useful[0][:200] if useful else ""


def _text(file: IO[bytes]) -> str:
    if file.closed:
        return ""
    file.seek(0)
    return file.read().decode(errors="replace")


# What perf calls its Top-Down metrics -> shares in TMA's words; pure.

PER_CENT = ("%", "percent")


@dataclass(frozen=True, slots=True)
class Share:
    """One category's share, as perf gave it."""

    name: str  # in TMA's words
    level: int
    value: float | None  # of one
    status: Status
    running: float | None
    perf_name: str
    note: str = ""
    pmu: str = ""  # the kind of core


def whole_shares(report: Report) -> list[Share]:
    """Return the shares of all that perf counted, without those of its intervals."""
    metrics = shares(metric for metric in report.metrics if metric.place.t_s is None)
    return _as_one_turn(metrics, [line for line in report.lines if line.place.t_s is None])


def shares(metrics: Iterable[Metric]) -> list[Share]:
    """Return each category once, in perf's order; what is no Top-Down metric is left out.

    A hybrid processor gives them for each kind of core, and they add up only where they are of the same kind: the one
    that counted more of them counts.
    """
    kinds: dict[str, list[Share]] = {}
    for metric in metrics:
        if (share := _share(metric)) is not None:
            kinds.setdefault(metric.pmu, []).append(share)
    best = max(kinds.values(), key=lambda kind: sum(_weight(share) for share in kind if share.value), default=[])
    by_name: dict[str, Share] = {}
    for share in best:
        if _weight(share) > _weight(by_name.get(share.name)):
            by_name[share.name] = share
    return list(by_name.values())


def _share(metric: Metric) -> Share | None:
    known = category(metric.name)
    if known is None:
        return None
    if metric.value is None:
        note = "perf could not compute it from what was counted"
        return Share(known.name, known.level, None, "not counted", metric.running, metric.name, note, metric.pmu)
    value = metric.value / 100 if metric.unit.startswith(PER_CENT) else metric.value
    status, note = _of(metric.running)
    return Share(known.name, known.level, value, status, metric.running, metric.name, note, metric.pmu)


def _as_one_turn(category_shares: Sequence[Share], lines: Sequence[Line]) -> list[Share]:
    """Return the shares, each as little counted as the least of all events of its kind of core.

    A metric is made of several events and stands beside one of them; perf does not print of which.
    """
    kinds = {share.pmu for share in category_shares}
    runnings = [share.running for share in category_shares if share.value is not None]
    runnings += [line.running for line in lines if pmu_of(line.event) in kinds]
    least = min((running for running in runnings if running is not None), default=None)
    status, note = _of(least)
    return [
        share if share.value is None else replace(share, running=least, status=status, note=note)
        for share in category_shares
    ]


def _of(running: float | None) -> tuple[Status, str]:
    """Return what a value is worth that was counted for so much of the time."""
    whole = running is None or running >= WHOLE
    return ("counted", "") if whole else ("scaled", f"scaled: counted for {running:.0%} of the time")


def _weight(share: Share | None) -> float:
    """Return how much a share is worth: nothing, no value, or a value that was counted for so much of the time."""
    if share is None:
        return -1.0
    return -0.5 if share.value is None else 1.0 if share.running is None else share.running


# What one perf printed of one member in one window -> counts, and samples of its intervals.

NAME, SOURCE = "topdown", "perf stat"
AMISS = 0.05  # of all slots: a level 1 that misses one by more is noted


@dataclass(frozen=True)
class Asked:
    """What was asked of perf for one member."""

    member: str
    categories: Sequence[str]  # that it should give
    group: str = ""  # in perf's words
    scope: str = ""
    note: str = ""


def counts_of(asked: Asked, answer: Answer) -> list[Count]:
    """Return a count for each category that perf gave for the whole window."""
    try:
        if answer.why:
            raise CastmatesError(answer.why)
        category_shares = whole_shares(parse(answer.text))
    except CastmatesError as problem:
        return without_value(asked, "not counted", f"perf stat: {problem}")
    if not category_shares:
        return without_value(asked, "not counted", last_words(answer.errors) or "perf printed no such metric")
    whole = remainders({share.name: share.value for share in category_shares if share.value is not None}).get("", 0.0)
    amiss = f"level 1 adds up to {1 - whole:.2f}" if abs(whole) > AMISS else ""
    return [_count(asked, share, amiss if share.level == 1 else "") for share in category_shares]


def without_value(asked: Asked, status: Status, why: str) -> list[Count]:
    """Report that this window has nothing of what was asked for, and why."""
    return [
        Count(asked.member, name, None, status, SOURCE, "metric", asked.group, BY_NAME[name].level,
              scope=asked.scope, note=why)
        for name in asked.categories
    ]  # fmt: skip


def series_of(asked: Asked, answer: Answer, began_ns: int, open_ns: int, close_ns: int) -> list[Sample]:
    """Return a sample of each category at the end of each interval that overlaps the window; an empty one has no value.

    An interval begins where the one before it ended. Perf prints the time since it began.
    """
    try:
        metrics = (
            [] if answer.why else [metric for metric in parse(answer.text).metrics if metric.place.t_s is not None]
        )
    except CastmatesError:
        return []
    by_end: dict[int, list[Metric]] = {}
    for metric in metrics:
        by_end.setdefault(began_ns + int((metric.place.t_s or 0.0) * 1e9), []).append(metric)
    samples: list[Sample] = []
    before_ns = began_ns
    for end_ns, of_interval in sorted(by_end.items()):
        if end_ns > open_ns and before_ns < close_ns:
            known = {share.name: share.value for share in shares(of_interval)}
            samples += [Sample(end_ns, NAME, asked.member, name, known.get(name)) for name in asked.categories]
        before_ns = end_ns
    return samples


def _count(asked: Asked, share: Share, amiss: str) -> Count:
    return Count(
        asked.member,
        share.name,
        share.value,
        share.status,
        SOURCE,
        "metric",
        asked.group,
        share.level,
        share.running,
        asked.scope,
        note="; ".join(filter(None, (share.note, asked.note, amiss))),
    )
