"""The answer of a study: headline, one line a pair, what settles the rest, and what counts for and against it."""

from itertools import islice

from castmates.analysis.effects.verdicts import TOO_FEW, UNCLEAR
from castmates.report.answer.cards import cards, nothing_left, remedy, thrown_away
from castmates.report.answer.headline import below, headline
from castmates.report.answer.hours import hours
from castmates.report.answer.operation_lines import operation_lines
from castmates.report.answer.pairs import curves, most_important, pairs
from castmates.report.answer.parts import SUSPECTED_GAIN, Answer, ToSettle
from castmates.report.answer.settling import MOST, has_looks, to_settle
from castmates.report.results import Results
from castmates.report.text.findings import first_proven
from castmates.report.text.operations import loss_words
from castmates.report.text.stamps import first_words
from castmates.report.text.words import counted, listed
from castmates.results.named import retry_command

SHOWN = 12  # pairs in the first table
NAMED = 3  # pairs that no sweep settles
MOST_OPERATIONS = 3  # sentences on operations; the section of the page has all


def answer(results: Results) -> Answer:
    """All of it, from the tables of the study."""
    found = pairs(results)
    settle, under = to_settle(results, found), curves(results, found)
    shown = most_important(found, SHOWN)
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
        hours=hours(results, shown),
        pairs=shown,
        all_pairs=len(found),
        curves=under,
        operations=list(islice(loss_words(results), MOST_OPERATIONS)),
        to_try=first_proven(results),
        settle=settle,
        settling=settling,
        aim=aim if command else "",
        command=command,
        cards=cards(results),
        traced=list(operation_lines(results)) if results.only_traced else [],
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
