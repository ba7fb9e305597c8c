"""The answer for a terminal: the same rows and sentences as on the page."""

import textwrap
from collections.abc import Iterator

from castmates.report.answer.answer import Answer
from castmates.report.answer.pairs import MISSING, Pair
from castmates.report.text.words import number

WIDTH = 100  # of sentences
NAME = 24  # letters of a name that a column gives room for


def answer_lines(answer: Answer) -> Iterator[str]:
    """Headline, pairs, ways, what settles the rest and what counts against the result, line by line."""
    if answer.origin:
        yield answer.origin
    yield from _sentence(answer.headline)
    if answer.below:
        yield from _sentence(answer.below)
    if answer.pairs:
        yield ""
        yield "Loss of speed against running alone, 95 % interval"
        yield from _table(answer)
    for curve in answer.curves:
        yield ""
        yield from _sentence(curve.sentence)
    if answer.settling:
        yield ""
        yield from _sentence(f"{answer.aim}: {answer.settling}" if answer.aim else answer.settling)
        if answer.command:
            yield f"  {answer.command}"
    doubts = [card for card in answer.cards if card.state != "good"]
    if doubts:
        yield ""
    for card in doubts:
        yield from _sentence(f"{card.mark} {card.title}. {card.text}".replace("`", ""), hang=2)


def _table(answer: Answer) -> Iterator[str]:
    program = min(NAME, max(len(pair.program) for pair in answer.pairs))
    beside = min(NAME, max(len(pair.neighbours) for pair in answer.pairs))
    before = ""
    for pair in answer.pairs:
        name = "" if pair.program == before else _cut(pair.program, program)
        who = f"  {name:<{program}}  beside {_cut(pair.neighbours, beside):<{beside}}"
        yield f"{who}  {_numbers(pair)}  {_verdict(pair)}".rstrip()
        before = pair.program
    if answer.all_pairs > len(answer.pairs):
        yield f"  … and {answer.all_pairs - len(answer.pairs)} more pairs in the report"


def _numbers(pair: Pair) -> str:
    if pair.state == MISSING or not pair.known:
        return " " * 24
    interval = f"[{number(pair.low):>5}, {number(pair.high):>5}]"
    return f"{number(pair.loss):>5} %  {interval:<15}"


def _verdict(pair: Pair) -> str:
    return f"{pair.words} ({pair.note})" if pair.note else pair.words


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _sentence(text: str, hang: int = 0) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False)
