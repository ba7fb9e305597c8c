"""The answer of a study: headline, one line a pair, what settles the rest, and what counts for and against it."""

from dataclasses import dataclass

from castmates.report.answer.cards import Card, cards
from castmates.report.answer.headline import below, headline
from castmates.report.answer.pairs import SUSPECTED, Pair, most_important, pairs
from castmates.report.answer.settling import MOST, ToSettle, retry_command, sweep_command, to_settle
from castmates.report.answer.thrown_away import nothing_left, remedy, thrown_away
from castmates.report.answer.ways import Curve, curves
from castmates.report.results import Results
from castmates.report.text.stamps import first_words

SHOWN = 12  # pairs in the first table


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
    settle: ToSettle | None
    settling: str  # in words: what settles what is open, or what to do where nothing is left; "" for neither
    aim: str  # what the command is for; "" where there is none
    command: str
    cards: list[Card]


def answer(results: Results) -> Answer:
    """All of it, from the tables of the study."""
    found = pairs(results)
    settle, under = to_settle(results, found), curves(results, found)
    settling, aim, command = _settling(settle, found), "To settle it", settle.command if settle else ""
    if nothing_left(results):
        aim = "To get a result"
        settling = f"{remedy(thrown_away(results))}, then discard these launches and measure them again."
        command = f"{retry_command(results)} && {sweep_command(results)}"
    return Answer(
        origin=first_words(results).strip(),
        question=(results.study.question if results.study else "") or "",
        headline=headline(results, found, {(curve.lead, curve.mix): curve.with_most for curve in under}),
        below=below(results, found),
        pairs=most_important(found, SHOWN),
        all_pairs=len(found),
        curves=under,
        settle=settle,
        settling=settling,
        aim=aim if command else "",
        command=command,
        cards=cards(results),
    )


def _settling(settle: ToSettle | None, found: list[Pair]) -> str:
    if settle is None:
        return ""
    what = "them" if settle.pairs > 1 else "it"
    if not settle.feasible:
        return (
            f"More launches hardly settle {what}: if the losses are as small as they look, more than {MOST} launches "
            "of each program would be needed. The intervals show how large they can be at most."
        )
    suspected = any(pair.state == SUSPECTED for pair in found)
    size = "if the losses are as large as they look" if suspected else "if the losses are as they look"
    return (
        f"about {settle.more} more {'launch' if settle.more == 1 else 'launches'} of each program "
        f"({duration(settle.seconds)}), {size}. Nothing that is measured is lost."
    )


def duration(seconds: float) -> str:
    """40 s, 9 min, 2 h 10 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
