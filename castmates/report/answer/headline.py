"""The one sentence that the numbers of a study come to, and what must be known to read it."""

from collections.abc import Mapping, Sequence

from castmates.analysis.effects.verdicts import UNSTABLE
from castmates.report.answer.pairs import FEW, GAIN, LOSS, MISSING, NONE, OPEN, SUSPECTED, Pair
from castmates.report.answer.percent import percent
from castmates.report.answer.settling import spreads
from castmates.report.answer.thrown_away import ThrownAway, nothing_left, thrown_away
from castmates.report.results import Results
from castmates.report.text.words import listed, number

NAMED = 3  # losses that the headline names one by one
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
Pairs = Sequence[Pair]


def headline(results: Results, found: Pairs, under: Mapping[tuple[str, str], str]) -> str:
    """What came out, in one sentence; `under` has what partitions leave of the loss, by lead and mix."""
    if not (results.blocks["status"] == "measured").any():
        return "Nothing was measured: every launch failed." if len(results.blocks) else "Nothing was measured yet."
    if nothing_left(results):
        return _nothing_left(thrown_away(results))
    by_state = {state: [pair for pair in found if pair.state == state] for state in (LOSS, SUSPECTED, GAIN, NONE, OPEN)}
    if losses := by_state[LOSS]:
        return _losses(worth_naming(losses, results.margin) or losses, found, under)
    if suspected := by_state[SUSPECTED]:
        return _suspected(suspected)
    if by_state[GAIN]:
        return f"{_many(len(by_state[GAIN]), 'pair').capitalize()} gained speed; no loss is proven."
    return _without_change(results, found, by_state[NONE], by_state[OPEN])


def worth_naming(losses: Pairs, margin: float | None) -> list[Pair]:
    """The proven losses that are larger than what the study counts as none."""
    return [pair for pair in losses if pair.loss >= 100 * (margin or 0.0)]


def below(results: Results, found: Pairs) -> str:
    """What the headline leaves out: the other pairs, the noise, and why the numbers may mean nothing."""
    sentences = [_distrust(results), _smaller(results, found), _the_others(results, found), _noise(found)]
    sentences.append(_failures(results))
    return " ".join(filter(None, sentences))


def count_word(count: int) -> str:
    """One, two … twelve, 13."""
    return WORDS[count] if count < len(WORDS) else str(count)


def _losses(losses: Pairs, found: Pairs, under: Mapping[tuple[str, str], str]) -> str:
    worst = sorted(losses, key=lambda pair: -pair.loss)
    given_back = f"; {under[place]}" if (place := (worst[0].lead, worst[0].mix)) in under else ""
    if len(losses) == 1:
        return (
            f"{worst[0].program} loses {percent(worst[0].loss)} of its speed beside {worst[0].neighbours}{given_back}."
        )
    if len(losses) > NAMED:
        top = worst[0]
        which = "All" if len(losses) == len(found) else f"{len(losses)} of"
        return (
            f"{which} {len(found)} pairs lose speed; most of all {top.program} beside {top.neighbours}: "
            f"{percent(top.loss)}{given_back}."
        )
    if same := _same(losses):
        each = listed([f"{pair.program} {percent(pair.loss)}" for pair in worst])
        return f"{count_word(len(losses)).capitalize()} programs lose speed beside {same}: {each}."
    programs = {pair.program for pair in losses}
    if len(programs) == 1:
        each = listed([f"{percent(pair.loss)} beside {pair.neighbours}" for pair in worst])
        return f"{programs.pop()} loses {each}."
    each = listed([f"{pair.program} beside {pair.neighbours} ({percent(pair.loss)})" for pair in worst])
    return f"{_many(len(losses), 'pair').capitalize()} lose speed: {each}."


def _nothing_left(lost: ThrownAway) -> str:
    """The count is the card's; a neighbour's own measurement alone may be left."""
    if lost.windows_lost == lost.windows:
        return f"No measurement is left: {f'all {lost.windows} were' if lost.windows > 1 else 'it was'} thrown away."
    return f"No program has a measurement left: {lost.windows_lost} of {lost.windows} were thrown away."


def _suspected(pairs: Pairs) -> str:
    kind = "one is" if len(pairs) == 1 else f"{count_word(len(pairs))} are"
    if len(pairs) == 1:
        where = f", of {pairs[0].program} beside {pairs[0].neighbours}"
    elif same := _same(pairs):
        where = f", {'both' if len(pairs) == 2 else 'all'} beside {same}"
    else:
        where = ""
    return f"No loss is proven yet; {kind} suspected{where}."


def _without_change(results: Results, found: Pairs, none: Pairs, unknown: Pairs) -> str:
    few = [pair for pair in found if pair.state == FEW]
    if few and len(few) == sum(pair.state != MISSING for pair in found):
        return "Too few launches for an answer: these numbers describe the launches that were measured, no others."
    margin = f"{100 * results.margin:.3g} %" if results.margin is not None else "the margin"
    if none and not unknown:
        return f"No loss: {_all_of(len(none))} stay within {margin} of the speed alone."
    if none:
        return f"No answer yet for {len(unknown)} of {len(found)} pairs; the other {len(none)} stay within {margin}."
    if unknown:
        return "No answer yet: these launches differ more than the losses that they are to show."
    return "No pair of programs has any numbers."


def _smaller(results: Results, found: Pairs) -> str:
    """How many losses are proven, and so small that the headline leaves them out."""
    proven = [pair for pair in found if pair.state == LOSS]
    named = worth_naming(proven, results.margin)
    count = len(proven) - len(named)
    if not named or not count or results.margin is None:
        return ""
    what = "1 more loss is proven, and is" if count == 1 else f"{count} more losses are proven, and are"
    return f"{what} below {100 * results.margin:.3g} %."


def _the_others(results: Results, found: Pairs) -> str:
    """How the pairs came out that a headline on losses does not mention."""
    proven = [pair for pair in found if pair.state == LOSS]
    if not proven and not any(pair.state == SUSPECTED for pair in found):
        return ""
    margin = f"{100 * results.margin:.3g} %" if results.margin is not None else "the margin"
    phrases = {
        SUSPECTED: ("is suspected of a loss", "are suspected of a loss") if proven else None,
        NONE: (f"stays within {margin}", f"stay within {margin}"),
        OPEN: ("is open", "are open"),
        GAIN: ("gained speed", "gained speed"),
        FEW: ("has too few launches", "have too few launches"),
        MISSING: ("has no data", "have no data"),
    }
    counts = [
        f"{count} {phrase[count > 1]}"
        for state, phrase in phrases.items()
        if phrase and (count := sum(pair.state == state for pair in found))
    ]
    return f"Of the other pairs, {listed(counts)}." if counts else ""


def _noise(found: Pairs) -> str:
    """How far launches differ, where it keeps pairs open."""
    open_ = [pair for pair in found if pair.state in (SUSPECTED, OPEN)]
    known = spreads(open_)
    if not known:
        return ""
    low, high = (number(end, 0 if end >= 9.95 else 1) for end in known)
    by = f"{low} %" if low == high else f"{low} to {high} %"
    launches = max(pair.launches for pair in open_)
    return f"Losses differ from launch to launch by {by} on this machine, and {launches} launches do not resolve more."


def _distrust(results: Results) -> str:
    if results.stamp[0] == UNSTABLE:
        return "Do not rely on these numbers: the same program measured twice differed (see the cards below)."
    return ""


def _failures(results: Results) -> str:
    failed, all_ = int((results.blocks["status"] == "failed").sum()), len(results.blocks)
    return f"{failed} of {all_} launches failed." if failed else ""


def _same(pairs: Pairs) -> str:
    """The neighbours that all of them have."""
    names = {pair.neighbours for pair in pairs}
    return names.pop() if len(names) == 1 else ""


def _many(count: int, thing: str) -> str:
    return f"{count_word(count)} {thing}{'' if count == 1 else 's'}"


def _all_of(count: int) -> str:
    return "the pair" if count == 1 else f"all {count_word(count)} pairs"
