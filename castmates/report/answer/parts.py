"""What an answer consists of, and its lines for a terminal: the standard library alone, so that it is there at once."""

import math
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from castmates.english import counted, number, rounded

SUSPECTED, SUSPECTED_GAIN = "suspected loss", "suspected gain"  # unclear, though the interval excludes zero
GOOD, DOUBT, BAD = "good", "doubt", "bad"
MARKS = {GOOD: "✓", DOUBT: "?", BAD: "!"}
Place = tuple[str, str, str]  # lead, mix, platform


def percent(value: float) -> str:
    """A loss without more digits than matter: 46 %, 5.6 %, 5.0 %."""
    return f"{rounded(value)} %"


@dataclass(frozen=True)
class Pair:
    """A program beside its antagonists; losses in per cent of its rate alone."""

    lead: str
    mix: str
    program: str
    antagonists: str
    state: str  # the verdict, or what is suspected
    loss: float
    low: float
    high: float
    launches: int
    log: float  # the slowdown's logarithm, and the ends of its interval
    log_low: float
    log_high: float
    verdict: str
    note: str = ""
    platform: str = ""
    is_service: bool = False  # it is judged by the latency of its requests
    over_launches: bool = True  # its interval is over these, and not over nodes or sessions

    @property
    def place(self) -> tuple[str, str, str]:
        """What finds its curve under partitions."""
        return self.lead, self.mix, self.platform

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.loss)


@dataclass(frozen=True)
class Point:
    """The loss with so many ways."""

    ways: int
    loss: float
    low: float  # NaN below three launches
    high: float
    partition: str


@dataclass(frozen=True)
class Curve:
    """Losses of one program beside its antagonists under one kind of partition."""

    program: str
    antagonists: str
    kind: str  # of partition
    points: tuple[Point, ...]  # fewest ways first
    shared: float  # the loss without a partition
    shared_low: float
    shared_high: float
    all_ways: int  # of the cache; 0 where that is not known
    limit: float  # the loss that the study accepts, per cent; NaN where it names none
    aim: str  # under 10 %, or 95 % of its speed; "" without advice
    enough: int  # ways that are advised; 0 where none are
    chosen: str  # the partition that gives so many; "" where none is advised
    confirmed: bool  # by fresh launches
    needed: bool  # a partition: not where the loss without one keeps the limit
    knee: tuple[int, int | None, int | None] | None  # ways from which on its speed is kept, and their interval
    place: Place
    sentence: str

    @property
    def with_most(self) -> str:
        """With 11 of the 12 cache ways, 8 %: what the largest share that was tried leaves of the loss."""
        most = self.points[-1]  # one with fewer that looks better may do so by luck
        return f"with {self._share(most.ways)}, {percent(most.loss)}"

    def keeps(self, what: str) -> str:
        """7 of the 12 cache ways keep it under 10 %; 10 of the 12 cache ways keep 95 % of its speed."""
        one = self.enough == 1
        seem = "" if self.confirmed else "seems to " if one else "seem to "
        kept = self.aim if math.isnan(self.limit) else f"{what} {self.aim}"
        return f"{self._share(self.enough)} {seem}keep{'s' if one and not seem else ''} {kept}"

    def _share(self, ways: int) -> str:
        """7 of the 12 cache ways."""
        return f"{ways} of the {self.all_ways} cache ways" if self.all_ways else counted(ways, "cache way")


@dataclass(frozen=True)
class ToSettle:
    """What would settle the pairs of some kind."""

    pairs: int  # that are unclear
    settled: int  # of these, with so many launches
    launches: int  # of each program, all together; beyond MOST that is how many do not do
    more: int
    seconds: float
    command: str  # "" where there is none: too many launches, or the study file is not known
    kind: str = SUSPECTED  # SUSPECTED, SUSPECTED_GAIN, UNCLEAR or TOO_FEW
    planned: bool = False  # launches that the study has asked for already, and that were not measured
    hopeless: tuple[Pair, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether so many launches as can be had in a reasonable time settle any; planned ones are measured anyway."""
        return self.planned or self.settled > 0


@dataclass(frozen=True)
class Card:
    """One thing that counts for or against the result."""

    state: str
    title: str
    text: str
    part: str  # of the page, where it is shown in full

    @property
    def mark(self) -> str:
        """A character that shows the state without any colour."""
        return MARKS[self.state]


@dataclass(frozen=True)
class Answer:
    """What the first screen shows."""

    origin: str  # "" where all is measured: then it needs no remark
    question: str
    headline: str
    below: str
    hours: list[str]  # within what time it was measured, or what was lost in each session and in another one
    pairs: list[Pair]  # the most important ones
    all_pairs: int
    curves: list[Curve]
    operations: list[str]  # which operations the losses come from, where steps were traced
    to_try: str  # the first finding that is proven, and what tries its advice; "" where there is none
    settle: ToSettle | None
    settling: str  # in words: what settles what is open, or what to do where nothing is left; "" for neither
    aim: str  # what the command is for; "" where there is none
    command: str
    cards: list[Card]
    traced: list[str] = field(default_factory=list)  # what is known of the steps, line by line, where no loss is


# The answer for a terminal: the same rows and sentences as on the page.

WIDTH = 100  # of sentences, where no terminal has another one
NARROWEST = 40
NOTE = " " * 13  # before what is to be known of a row, on a line below it
NAME = 24  # letters of a name that a column gives room for, however narrow the terminal is
NUMBERS = 24  # letters of a loss with its interval
SHARED = 3  # so many rows with one note have it once, below the table


def answer_lines(answer: Answer, width: int = WIDTH) -> Iterator[str]:
    """Headline, pairs, ways, what settles the rest and what counts against the result, line by line."""
    width = max(width, NARROWEST)
    if answer.origin:
        yield answer.origin
    if answer.traced:  # they begin with what the headline says
        yield from answer.traced
        return
    yield from _wrapped(width, answer.headline)
    if answer.below:
        yield from _wrapped(width, answer.below)
    for sentence in answer.hours:
        yield from _wrapped(width, sentence.replace("`", ""))
    if answer.pairs:
        yield ""
        yield "Loss of speed against running alone, 95 % interval"
        yield from _table(answer, width)
    for curve in answer.curves:
        yield ""
        yield from _wrapped(width, curve.sentence)
    for sentence in answer.operations:
        yield ""
        yield from _wrapped(width, sentence)
    if answer.to_try:
        yield ""
        yield from _wrapped(width, answer.to_try.replace("`", ""))
    if answer.settling:
        yield ""
        yield from _wrapped(width, f"{answer.aim}: {answer.settling}" if answer.aim else answer.settling)
        if answer.command:
            yield f"  {answer.command}"
    doubts = [card for card in answer.cards if card.state != GOOD]
    if doubts:
        yield ""
    for card in doubts:
        yield from _wrapped(width, f"{card.mark} {card.title}. {card.text}".replace("`", ""), hang=2)


def _table(answer: Answer, width: int) -> Iterator[str]:
    beside = min(NAME, max(len(pair.antagonists) for pair in answer.pairs))
    rest = len("    beside ") + beside + 2 + NUMBERS + 2 + max(len(pair.verdict) for pair in answer.pairs)
    program = min(max(NAME, width - rest), max(len(pair.program) for pair in answer.pairs))
    shared = _shared_notes(answer)
    before = ""
    for pair in answer.pairs:
        name = "" if pair.program == before else _cut(pair.program, program)
        who = f"  {name:<{program}}  beside {_cut(pair.antagonists, beside):<{beside}}"
        row = f"{who}  {_numbers(pair)}  {pair.verdict}".rstrip()
        together = f"{row} ({pair.note})"
        if not pair.note or (pair.verdict, pair.note) in shared:
            yield row
        elif len(together) <= width:
            yield together
        else:
            yield row
            yield from _wrapped(width, f"{NOTE}{pair.note}", hang=len(NOTE))
        before = pair.program
    if answer.all_pairs > len(answer.pairs):
        yield f"  … and {answer.all_pairs - len(answer.pairs)} more mixes in the report"
    for words, note in shared:
        yield from _wrapped(width, f"  {words} ({note})", hang=2)


def _shared_notes(answer: Answer) -> list[tuple[str, str]]:
    """Words and notes that many rows have in common."""
    count = Counter((pair.verdict, pair.note) for pair in answer.pairs if pair.note)
    return [both for both, rows in count.items() if rows >= SHARED]


def _numbers(pair: Pair) -> str:
    if not pair.known:
        return " " * NUMBERS
    interval = f"[{number(pair.low):>5}, {number(pair.high):>5}]"
    return f"{number(pair.loss):>5} %  {interval:<15}"


def _cut(name: str, width: int) -> str:
    """Without letters of its middle: variants of a lead begin alike, and end with what they are."""
    if len(name) <= width:
        return name
    end = width // 2
    return f"{name[: width - 1 - end]}…{name[-end:]}"


def _wrapped(width: int, text: str, hang: int = 0) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)
