"""The one sentence that sums up the numbers of a study, and what must be known to read it."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from castmates.analysis.effects.contrasts import NEGATIVE, own_leads
from castmates.analysis.effects.verdicts import (
    GAIN,
    INSENSITIVE,
    LOSS,
    NO_DATA,
    NO_LOSS,
    TOO_FEW,
    UNCLEAR,
    UNSTABLE,
    effect_level,
)
from castmates.analysis.statistics.power import detectable
from castmates.english import counted, plural, rounded
from castmates.report.answer.cards import ThrownAway, nothing_left, thrown_away
from castmates.report.answer.parts import SUSPECTED, SUSPECTED_GAIN, Curve, Pair, Place, percent
from castmates.report.answer.settling import spread_of, spreads
from castmates.report.results import Results, records
from castmates.report.text.services import SPEED
from castmates.report.text.step_summary import step_summaries
from castmates.report.text.words import as_loss, listed, number, plain
from castmates.results.named import study_argument
from castmates.study.class_names import without_class, workload_of

NAMED = 3  # losses that the headline names one by one
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
Pairs = Sequence[Pair]
Under = Mapping[Place, Curve]


def headline(results: Results, found: Pairs, under: Under) -> str:
    """What came out, in one sentence; `under` has what partitions leave of the losses."""
    if results.only_traced:
        return " ".join(f"A step of {each.lead} takes {each.length}: {each.parts}." for each in step_summaries(results))
    if not (results.launches["status"] == "measured").any():
        return "Nothing was measured: every launch failed." if len(results.launches) else "Nothing was measured yet."
    if nothing_left(results):
        return _nothing_left(thrown_away(results))
    if losses := of_state(found, LOSS):
        if all(pair.is_service for pair in losses):
            return _later(worth_naming(losses, results.margin) or losses, found)
        return _losses(worth_naming(losses, results.margin) or losses, found, under)
    if suspected := of_state(found, SUSPECTED):
        return _suspected(suspected, "loss")
    if gains := of_state(found, GAIN):
        return f"{_many(len(gains), 'mix').capitalize()} gained speed; no loss is proven."
    if suspected := of_state(found, SUSPECTED_GAIN):
        return _suspected(suspected, "change")
    return _without_change(results, found) if found else _alone(results)


def _alone(results: Results) -> str:
    """How fast leads are that nobody ran beside."""
    windows, ours = results.windows, own_leads(results.plan)
    kept = windows[windows["valid"] & (windows["scene"] == "alone") & windows["member"].isin(ours)]
    of_launch = kept.groupby(["member", "unit", "cohort", "launch"])["rate"].mean().groupby(["member", "unit"])
    each = [_own_speed(results, str(member), str(unit), list(rates)) for (member, unit), rates in of_launch]
    return f"{listed(each)}." if each else "No mix has any numbers."


def _own_speed(results: Results, member: str, unit: str, rates: list[float]) -> str:
    """What its launches gave: of a service the p99 of its latency, which is one over its rate."""
    program, is_service = workload_of(member), without_class(workload_of(member)) in results.service_workloads
    values = [1000 / rate for rate in rates] if is_service else rates
    ends = (fmean(values), min(values), max(values))
    mean, low, high = (f"{each:,.0f}" if each >= 100 else f"{each:.3g}" for each in ends)
    span = f" ({low} to {high} in {len(rates)} launches)" if len(rates) > 1 else ", in one launch"
    what = f"has a p99 of {mean} ms" if is_service else f"makes {mean} {plural(unit)} a second"
    return f"{plain(program)} {what} alone{span}"


def mentioned(found: Pairs) -> tuple[str, ...]:
    """The states that the headline accounts for: the sentence below it has the others."""
    first = next((state for state in (LOSS, SUSPECTED, GAIN, SUSPECTED_GAIN) if of_state(found, state)), "")
    return (first,) if first else (TOO_FEW,) if _only_few(found) else (NO_LOSS, UNCLEAR)


def of_state(found: Pairs, state: str) -> list[Pair]:
    """The pairs that came out so."""
    return [pair for pair in found if pair.state == state]


def worth_naming(losses: Pairs, margin: float | None) -> list[Pair]:
    """The proven losses that are larger than what the study counts as none."""
    return [pair for pair in losses if pair.loss >= 100 * (margin or 0.0)]


def below(results: Results, found: Pairs) -> str:
    """What the headline leaves out: the other pairs, the noise, and why the numbers may mean nothing."""
    if results.only_traced:
        study = study_argument(results.study_file) if results.study_file else " STUDY.yaml"
        beside = any(mix.antagonists for mix in results.plan.mixes)
        return "This is a profile: no losses were measured." + f" `castmates sweep{study}` measures them." * beside
    sentences = [SPEED] if any(pair.is_service for pair in found) else []
    sentences += [*_distrust(results), _smaller(results, found), _the_others(results, found), _noise(results, found)]
    sentences += [_extended(results) if len(results.effects) else "", _failures(results)]
    return " ".join(filter(None, sentences))


def count_word(count: int) -> str:
    """One, two … twelve, 13."""
    return WORDS[count] if count < len(WORDS) else str(count)


def _losses(losses: Pairs, found: Pairs, under: Under) -> str:
    worst = sorted(losses, key=lambda pair: -pair.loss)
    top, given_back = worst[0], _given_back(worst, under)
    if len(losses) == 1:
        return f"{top.program} loses {percent(top.loss)} of its speed beside {top.antagonists}{given_back}."
    if len(losses) > NAMED:
        which = "All" if len(losses) == len(found) else f"{len(losses)} of"
        return (
            f"{which} {len(found)} mixes lose speed; most of all {top.program} beside {top.antagonists}: "
            f"{percent(top.loss)}{given_back}."
        )
    if same := _same(losses):
        each = listed([f"{pair.program} {percent(pair.loss)}" for pair in worst])
        return f"{count_word(len(losses)).capitalize()} leads lose speed beside {same}: {each}{given_back}."
    if len({pair.program for pair in losses}) == 1:
        each = listed([f"{percent(pair.loss)} beside {pair.antagonists}" for pair in worst])
        return f"{top.program} loses {each}{given_back}."
    each = listed([f"{pair.program} beside {pair.antagonists} ({percent(pair.loss)})" for pair in worst])
    return f"{_many(len(losses), 'mix').capitalize()} lose speed: {each}{given_back}."


def _later(losses: Pairs, found: Pairs) -> str:
    """How much later services answer: a service has no speed, and its rate is that of the load while it keeps up."""
    worst = sorted(losses, key=lambda pair: -pair.loss)
    each = [f"{times_as_long(pair)} beside {pair.antagonists}" for pair in worst]
    if len(losses) <= NAMED and len({pair.program for pair in losses}) == 1:
        return f"{worst[0].program} answers its slowest requests later: its p99 is {listed(each)}."
    if len(losses) <= NAMED:
        named = [f"{pair.program} beside {pair.antagonists} ({times_as_long(pair)})" for pair in worst]
        return f"{_many(len(losses), 'mix').capitalize()} answer their slowest requests later, by p99: {listed(named)}."
    which = "All" if len(losses) == len(found) else f"{len(losses)} of"
    return (
        f"{which} {len(found)} mixes answer their slowest requests later; most of all {worst[0].program}, whose p99 is "
        f"{each[0]}."
    )


def times_as_long(pair: Pair) -> str:
    """1.8 times as long; a slowdown of a service is a ratio of latencies."""
    return f"{rounded(math.exp(pair.log))} times as long"


def _nothing_left(lost: ThrownAway) -> str:
    """The count is the card's; an antagonist's own measurement alone may be left."""
    if lost.windows_lost == lost.windows:
        return f"No window is left: {f'all {lost.windows} were' if lost.windows > 1 else 'it was'} thrown away."
    return f"No lead has a window left: {lost.windows_lost} of {lost.windows} were thrown away."


def _given_back(worst: Pairs, under: Under) -> str:
    """How many ways are advised for these losses, or else what the largest share leaves of the only one."""
    named = worst if len(worst) <= NAMED else worst[:1]
    tried = [under[pair.place] for pair in named if pair.place in under]
    known = [curve for curve in tried if curve.enough]
    if known and len(known) == len(named) and len({(curve.program, curve.enough) for curve in known}) == 1:
        return f"; {known[0].keeps('it' if len(named) == 1 else 'each')}"
    if known and len(known) == len([curve for curve in tried if curve.needed]):
        each = listed([f"{curve.enough} for {curve.program} beside {curve.antagonists}" for curve in known])
        seem = "" if all(curve.confirmed for curve in known) else "seem to "
        return f"; cache ways that {seem}keep {'the loss ' if known[0].limit > 0 else ''}{known[0].aim}: {each}"
    return f"; {tried[0].with_most}" if len(named) == 1 and tried and tried[0].needed else ""


def _suspected(pairs: Pairs, unproven: str) -> str:
    """What is suspected of losses, or of gains where it is any change that is unproven."""
    count, gains = count_word(len(pairs)), "" if unproven == "loss" else " gain" if len(pairs) == 1 else " gains"
    what = f"{count}{gains} {'is' if len(pairs) == 1 else 'are'}"
    if len(pairs) == 1:
        where = f", of {pairs[0].program} beside {pairs[0].antagonists}"
    elif same := _same(pairs):
        where = f", {'both' if len(pairs) == 2 else 'all'} beside {same}"
    else:
        where = ""
    return f"No {unproven} is proven yet; {what} suspected{where}."


def _only_few(found: Pairs) -> bool:
    few = of_state(found, TOO_FEW)
    return bool(few) and len(few) == sum(pair.state != NO_DATA for pair in found)


def _without_change(results: Results, found: Pairs) -> str:
    none, unknown = of_state(found, NO_LOSS), of_state(found, UNCLEAR)
    if _only_few(found):
        return "Too few launches for an answer: these numbers describe the launches that were measured, no others."
    within = _margin(results)
    if none and not unknown:
        missed = results.sensitivity_stamp[0] == INSENSITIVE
        start = "No loss was seen, but nor was one that must be there" if missed else "No loss"
        if len(none) == len(found):
            return f"{start}: {_all_of(len(none))} within {within} of the speed alone."
        stay = "it stays" if len(none) == 1 else "they stay"
        return f"{start} in {len(none)} of {len(found)} mixes: {stay} within {within} of the speed alone."
    if none:
        whole = len(none) + len(unknown) == len(found)
        if len(none) == 1:
            stay = "the other stays" if whole else "one stays"
        else:
            stay = f"{'the other ' if whole else ''}{len(none)} stay"
        are = "is" if len(unknown) == 1 else "are"
        return f"{len(unknown)} of {len(found)} mixes {are} unclear; {stay} within {within}."
    if unknown:
        return "Unclear: these launches differ more than the losses that they are to show."
    return "No mix has any numbers."


def _smaller(results: Results, found: Pairs) -> str:
    """How many losses are proven, and so small that the headline leaves them out."""
    proven = of_state(found, LOSS)
    named = worth_naming(proven, results.margin)
    count = len(proven) - len(named)
    if not named or not count or results.margin is None:
        return ""
    what = "1 more loss is proven, and is" if count == 1 else f"{count} more losses are proven, and are"
    return f"{what} below {100 * results.margin:.3g} %."


def _the_others(results: Results, found: Pairs) -> str:
    """How the pairs came out that the headline does not account for."""
    within, said = _margin(results), mentioned(found)
    phrases = {
        SUSPECTED: ("is suspected of a loss", "are suspected of a loss"),
        GAIN: ("gained speed", "gained speed"),
        SUSPECTED_GAIN: ("is suspected of a gain", "are suspected of a gain"),
        NO_LOSS: (f"stays within {within}", f"stay within {within}"),
        UNCLEAR: ("is unclear", "are unclear"),
        TOO_FEW: ("has too few launches", "have too few launches"),
        NO_DATA: ("has no data", "have no data"),
    }
    counts = {state: len(of_state(found, state)) for state in phrases if state not in said}
    if sum(counts.values()) == 1 and len(found) > 1:
        return f"The other mix {next(phrases[state][0] for state, count in counts.items() if count)}."
    if sum(counts.values()) == len(found):
        return ""
    parts = [f"{count} {phrases[state][count > 1]}" for state, count in counts.items() if count]
    return f"Of the other mixes, {listed(parts)}." if parts else ""


def _noise(results: Results, found: Pairs) -> str:
    """How far launches differ, where it keeps pairs unclear, and which losses may hide in that."""
    open_ = [pair for pair in found if pair.state in (SUSPECTED, SUSPECTED_GAIN, UNCLEAR)]
    known = spreads(open_)
    if not known:
        return ""
    low, high = (number(end, 0 if end >= 9.95 else 1) for end in known)
    by = f"{low} %" if low == high else f"{low} to {high} %"
    where = " on this machine" if results.platforms == ["measured"] else ""
    return f"Losses differ from launch to launch by {by}{where}. {_hidden(results, found, open_)}"


def _hidden(results: Results, found: Pairs, open_: Pairs) -> str:
    """The loss that so many launches find four times in five, of the pair that differs most."""
    tried = sum(not math.isnan(spread_of(pair)) for pair in found)
    level = effect_level(results.extended) / max(1, tried)
    counted = [pair for pair in open_ if not math.isnan(spread_of(pair))]
    most = max(math.exp(detectable(spread_of(pair) ** 2, pair.launches, level)) for pair in counted)
    launches = max(pair.launches for pair in counted)
    return f"With {launches} launches, losses below about {percent(as_loss(most))} often stay unclear."


def _extended(results: Results) -> str:
    """That launches were added to results that had been looked at, and what follows from it."""
    if not results.extended:
        return ""
    *before, last = results.extended
    looks = listed([*map(str, before), str(last)])
    return (
        f"Launches were added after a look at the results with {looks} launches, so a loss counts as proven below "
        f"p = {effect_level(results.extended):g} (instead of {effect_level(()):g})."
    )


def _distrust(results: Results) -> list[str]:
    controls = records(results.controls)
    sentences = []
    unstable = [row for row in controls if row["verdict"] == UNSTABLE]
    again = dict.fromkeys(plain(row["lead"]) for row in unstable if row["control"] != NEGATIVE)
    negative = dict.fromkeys(_with_beside(row["mix"]) for row in unstable if row["control"] == NEGATIVE)
    if again:
        sentences.append(
            f"Do not rely on these numbers: {listed([*again])} measured twice differed (see the cards below)."
        )
    if negative:
        sentences.append(
            f"Do not rely on these numbers: {listed([*negative])}, which must not change, did (see the cards below)."
        )
    missed = dict.fromkeys(_with_beside(row["mix"]) for row in controls if row["verdict"] == INSENSITIVE)
    if missed:
        sentences.append(
            f"The loss of {listed([*missed])} must be there and was not found: other losses may be missed too."
        )
    return sentences


def _with_beside(mix: str) -> str:
    lead, _, beside = mix.partition("+")
    return f"{plain(lead)} beside {plain(beside)}"


def _failures(results: Results) -> str:
    status = results.launches.assign(failed=results.launches["status"] == "failed").groupby("lead", sort=False)[
        "failed"
    ]
    failed, all_ = int(status.sum().sum()), len(results.launches)
    if not failed:
        return ""
    whole = [plain(str(lead)) for lead, every in status.all().items() if every]
    all_of = f": {listed(whole)} failed in every launch" if whole else ""
    return f"{failed} of {all_} launches failed{all_of}."


def _margin(results: Results) -> str:
    return f"{100 * results.margin:.3g} %" if results.margin is not None else "the margin"


def _same(pairs: Pairs) -> str:
    """The antagonists that all of them have."""
    names = {pair.antagonists for pair in pairs}
    return names.pop() if len(names) == 1 else ""


def _many(count: int, thing: str) -> str:
    return counted(count, thing).replace(str(count), count_word(count), 1)


def _all_of(count: int) -> str:
    return {1: "the mix stays", 2: "both mixes stay"}.get(count, f"all {count_word(count)} mixes stay")
