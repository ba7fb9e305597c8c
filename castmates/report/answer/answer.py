"""The answer of a study: headline, one line a pair, what settles the rest, and what counts for and against it."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from castmates.analysis.effects.verdicts import NO_DATA, TOO_FEW, UNCLEAR
from castmates.report.answer.cards import Card, cards, nothing_left, remedy, thrown_away
from castmates.report.answer.headline import below, headline
from castmates.report.answer.pairs import SUSPECTED_GAIN, Curve, Pair, curves, most_important, pairs
from castmates.report.answer.settling import MOST, ToSettle, has_looks, to_settle
from castmates.report.results import Results
from castmates.report.text.findings import first_proven
from castmates.report.text.operations import loss_words
from castmates.report.text.stamps import first_words
from castmates.report.text.words import counted, listed, number
from castmates.results.named import retry_command

SHOWN = 12  # pairs in the first table
NAMED = 3  # pairs that no sweep settles
MOST_OPERATIONS = 3  # sentences on operations; the section of the page has all


@dataclass(frozen=True)
class Answer:
    """What the first screen shows."""

    origin: str  # "" where all is measured: then it needs no remark
    question: str
    headline: str
    below: str
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


def answer(results: Results) -> Answer:
    """All of it, from the tables of the study."""
    found = pairs(results)
    settle, under = to_settle(results, found), curves(results, found)
    settling, aim, command = _settling(results, settle), "To settle it", settle.command if settle else ""
    if nothing_left(results):
        aim = "To get a result"
        settling = f"{remedy(thrown_away(results))}, then measure these launches again."
        command = retry_command(results.study_file) if results.study_file else ""
    return Answer(
        origin=first_words(results).strip(),
        question=(results.study.question if results.study else "") or "",
        headline=headline(results, found, {curve.place: curve for curve in under}),
        below=below(results, found),
        pairs=most_important(found, SHOWN),
        all_pairs=len(found),
        curves=under,
        operations=list(islice(loss_words(results), MOST_OPERATIONS)),
        to_try=first_proven(results),
        settle=settle,
        settling=settling,
        aim=aim if command else "",
        command=command,
        cards=cards(results),
    )


def _settling(results: Results, settle: ToSettle | None) -> str:
    if settle is None:
        return ""
    if not settle.feasible:
        return (
            f"More launches hardly settle {'them' if settle.pairs > 1 else 'it'}: if the losses are as small "
            f"as they look, more than {MOST} launches of each lead would be needed. The intervals show how large "
            "they can be at most."
        )
    launches = f"{settle.more} more {'launch' if settle.more == 1 else 'launches'} of each lead"
    if settle.planned:
        missing = f"{counted(settle.more, 'launch')} of each lead"
        first = f"{missing} that the study has planned did not count yet ({duration(settle.seconds)})"
    elif settle.kind == TOO_FEW:
        first = f"{launches} ({duration(settle.seconds)}); an interval that covers future launches takes at least three"
    else:
        first = f"about {launches} ({duration(settle.seconds)}){_of_them(settle)}, {_if(settle.kind)}"
    return f"{first}. {_how(results, settle)}Nothing that is measured is lost."


def _if(kind: str) -> str:
    if kind == UNCLEAR:
        return "if the losses are as they look"
    return f"if the {'gains' if kind == SUSPECTED_GAIN else 'losses'} are as large as they look"


def _of_them(settle: ToSettle) -> str:
    """Which of several pairs so many launches settle, and which no sweep would."""
    if not settle.hopeless:
        return ""
    names = [f"{pair.program} beside {pair.antagonists}" for pair in settle.hopeless[:NAMED]]
    rest = len(settle.hopeless) - len(names)
    names += [f"{rest} others"] if rest else []
    return f" for {settle.settled} of {settle.pairs} mixes ({listed(names)} would take more than {MOST} launches)"


def _how(results: Results, settle: ToSettle) -> str:
    """What to do before the command, or instead of it."""
    if settle.planned:
        return ""
    if results.study is not None and results.study.budget.adaptive:
        return f"The study is `adaptive`: set `most_launches` to at least {settle.launches} under `budget` first. "
    if has_looks(results):
        return (
            f"The study's `precision` decides how many there are: make it smaller and set `most_launches` to at least "
            f"{settle.launches} under `budget` first. "
        )
    return "" if settle.command else "The study file is not known here: `castmates sweep` takes it. "


def duration(seconds: float) -> str:
    """40 s, 9 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


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
    yield from _wrapped(width, answer.headline)
    if answer.below:
        yield from _wrapped(width, answer.below)
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
    doubts = [card for card in answer.cards if card.state != "good"]
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
    if pair.state == NO_DATA or not pair.known:
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
