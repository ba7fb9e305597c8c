"""The answer for a terminal: the same rows and sentences as on the page."""

import textwrap
from collections import Counter
from collections.abc import Iterator

from castmates.analysis.effects.verdicts import NO_DATA
from castmates.report.answer.answer import Answer
from castmates.report.answer.pairs import Pair
from castmates.report.text.words import number

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
