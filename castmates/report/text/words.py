"""Numbers -> plain sentences; pure, so that what the page claims can be tested."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.core import LAUNCHES
from castmates.analysis.effects.verdicts import GAIN, LOSS, TOO_FEW, UNCLEAR

# What all of the report takes from here.
from castmates.english import counted as counted
from castmates.english import listed as listed
from castmates.english import number as number
from castmates.report.findings import Tried, loss_of
from castmates.report.quantity import Quantity as Quantity
from castmates.report.quantity import as_loss as as_loss
from castmates.report.results import records
from castmates.study.mitigations import BETWEEN
from castmates.study.reasons import listed_in
from castmates.study.rehearsing import NO_EFFECT, PLATFORM
from castmates.study.spec import UNMANAGED

PLATFORMS = {
    "measured": "Measured: every number comes from real runs.",
    "emulated": "Emulated: a real kernel, but its processor is a model, times included. This is not a measurement.",
    "modelled": "Modelled: the numbers come from a model. This is not a measurement.",
    PLATFORM: f"Rehearsed: {NO_EFFECT[0].lower()}{NO_EFFECT[1:]} This is not a measurement of any partition.",
}
NO_PLATFORM = "No numbers: nothing was measured."
BIASED = " (possibly biased by rejected windows)"
AS_FAST = "\N{MULTIPLICATION SIGN} as fast"  # what a gain is called
READ_ALOUD = 12  # values that an alternative text names; the table has them all
Row = Mapping[str, Any]


def plain(name: str) -> str:
    """A member's name without its CPUs: stream@1 is stream; with a place, in words: 2 streams (on its siblings)."""
    name = re.sub(r"@[\d.-]+(#\d+)?", "", name)
    together, _, place = name.partition(BETWEEN)
    if not place or place not in WORDS:
        return name
    counts = Counter(together.split("+"))
    once = (who if count == 1 else f"{count} \N{MULTIPLICATION SIGN} {who}" for who, count in counts.items())
    return f"{'+'.join(once)} ({WORDS[place]})"


def percent_of(share: float) -> str:
    """A share in per cent without needless decimals: 0.02 is 2 %."""
    return f"{100 * share:.3g} %"


def chance(p: float) -> str:
    """A p-value: 0.023."""
    return "< 0.001" if p < 0.001 else number(p, 3)


def platform_words(platforms: Iterable[str]) -> str:
    """Where the numbers come from, in whole sentences."""
    return " ".join(PLATFORMS.get(name, f"Platform: {name}.") for name in platforms) or NO_PLATFORM


def effect(row: Row) -> Quantity:
    """A loss in per cent, with the interval within launch where there are too few; a gain as how many times as fast."""
    shown = loss_seen(row)
    if row["verdict"] != GAIN:
        return shown
    value, slow, fast = (1 / (1 - loss / 100) for loss in (shown.value, shown.high, shown.low))
    return Quantity(value, slow, fast, AS_FAST, 2)


def loss_seen(row: Row, unit: str = "") -> Quantity:
    """A loss in per cent, with the interval within launch where there are too few launches for another one."""
    if row["verdict"] != TOO_FEW:
        return Quantity.of(row, "loss_pct", unit)
    return Quantity(row["loss_pct"], as_loss(row["within_low"]), as_loss(row["within_high"]), unit)


def between(effects: pd.DataFrame) -> str:
    """What intervals of these effects are between: launches, or sessions or nodes where several measured."""
    over = effects.loc[effects["loss_low"].notna(), "over"].dropna()
    return f"between {' or '.join(dict.fromkeys(over)) or LAUNCHES}"


def between_with_others(effects: pd.DataFrame) -> str:
    """The same where other numbers stand beside the losses: their intervals are between launches in any case."""
    own = between(effects)
    return own if own == f"between {LAUNCHES}" else f"between {LAUNCHES}, those of losses {own}"


def units(counts: Iterable[int]) -> str:
    """Of how many launches numbers are, where there are any: 1 launch; 5 launches; 2 to 5 launches."""
    known = [int(count) for count in counts if count == count and count > 0]
    if not known:
        return "no launches"
    low, high = min(known), max(known)
    return counted(high, "launch") if low == high else f"{low} to {high} launches"


def launches(launches: int) -> str:
    """What a within-launch interval covers."""
    return "this launch" if launches == 1 else f"these {launches} launches"


def nearly(row: Row) -> bool:
    """Whether Holm's adjustment alone makes it unclear: the interval, as it is printed, excludes zero."""
    low, high = round(row["loss_low"], 1), round(row["loss_high"], 1)
    return bool(row["verdict"] == UNCLEAR and (low > 0 or high < 0))


def rejection_sentence(launches: pd.DataFrame, windows: pd.DataFrame) -> str:
    """How many windows were rejected, and the commonest reasons."""
    total, rejected = int(launches["windows"].sum()), int(launches["windows_rejected"].sum())
    if not total:
        return "Nothing was measured."
    if not rejected:
        return f"None of the {total} windows was rejected."
    share = number(100 * rejected / total)
    verb = "was" if rejected == 1 else "were"
    return f"{rejected} of {counted(total, 'window')} ({share} %) {verb} rejected{_reasons(windows)}."


def _reasons(windows: pd.DataFrame) -> str:
    """The commonest kinds of reasons."""
    refused = windows[~windows["valid"]].drop_duplicates(["cohort", "launch", "window", "reasons"])
    top = Counter(kind for cell in refused["reason_kinds"] for kind in listed_in(cell)).most_common(3)
    return f", most often for {listed([f'{kind} ({count})' for kind, count in top])}" if top else ""


def failure_sentence(launches: pd.DataFrame, retry: str = "castmates sweep --retry") -> str:
    """How many launches failed, and why; how many have nothing but rounds with a rejected window; what to do."""
    failed = launches[launches["status"] == "failed"]
    unclean = int(((launches["status"] == "measured") & (launches["rounds"] == 0)).sum())
    if failed.empty:
        first = {0: "There are no launches.", 1: "The only launch was measured."}.get(
            len(launches), f"All {len(launches)} launches were measured."
        )
    else:
        count = f"{len(failed)} of {counted(len(launches), 'launch')}"
        first = f"{count} failed: {_failures(failed)}. {_retry(len(failed), retry)}"
    return f"{first} {_unclean(unclean, retry, after_failures=not failed.empty)}" if unclean else first


def _failures(failed: pd.DataFrame) -> str:
    """The first reasons."""
    reasons = list(dict.fromkeys(reason.rstrip(".") for reason in failed["reason"] if reason))
    more = f"; and {len(reasons) - 3} further reasons, in the table of launches" if len(reasons) > 3 else ""
    return f"{'; '.join(reasons[:3]) or 'no reason was given'}{more}"


def _unclean(count: int, retry: str, after_failures: bool) -> str:
    sentence = f"{counted(count, 'launch')} {'has' if count == 1 else 'have'} a rejected window in every round"
    if after_failures:
        return f"{sentence}; `{retry}` measures {_them(count)} again too."
    return f"{sentence}. {_retry(count, retry)}"


def _retry(count: int, retry: str) -> str:
    return f"`{retry}` measures {_them(count)} again."


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


# Where antagonists sit, in words.

WORDS = {
    "": "where placement puts them",
    "cpu": "on its own CPUs",
    "smt": "on its siblings",
    "core": "on close cores",
    "llc": "further off in its cache",
    "socket": "in another cache",
    "other-socket": "on another socket",
}
AXIS = {  # below an axis, in lines
    "": "as placement\nhas it",
    "cpu": "the same\nCPUs",
    "smt": "siblings:\nsame cores",
    "core": "close cores:\nsame cache",
    "llc": "further off,\nsame cache",
    "socket": "another cache,\nsame socket",
    "other-socket": "another\nsocket",
}


# Trials in words: what a finding's advice gave in fresh launches, alone and beside the antagonists.

PROVEN = (GAIN, LOSS)


def sentences(tried: Tried) -> Iterator[str]:
    """What was changed, and what that gave; that nothing is measured yet."""
    trial = tried.trial
    if trial.changed:
        changes = listed([f"`{what}` {after} (instead of {before})" for what, before, after in trial.differences])
        head = f"{trial.lead} with {changes}"
    else:
        head = f"mitigations of {trial.mix}"
    if tried.gains.empty and tried.mitigations.empty:
        yield f"A trial of {head} is written, and has no results yet."
        return
    yield f"Fresh launches of {head}, which had no part in the finding. {trial.shows}"
    yield from _gains(tried)
    yield from _mitigations(tried)


def _gains(tried: Tried) -> Iterator[str]:
    per = "work" if tried.trial.work != 1.0 else "steps"
    for row in records(tried.gains):
        where = f"Beside {row['beside']}" if row["beside"] else "Alone"
        gain = Quantity.of(row, "gain_pct", "%")
        launches = f"{counted(row['launches'], 'launch')} as it is, {row['changed_launches']} changed"
        yield f"{where}: a gain of {gain} in {per} a second ({_sure(row)}; {launches}){_losses(tried, row['beside'])}."


def _losses(tried: Tried, beside: str) -> str:
    """What the lead loses beside its antagonists, before and after."""
    trial = tried.trial
    before, after = (loss_of(tried, lead, beside) for lead in (trial.lead, trial.changed))
    if not beside or before[0] != before[0] or after[0] != after[0]:
        return ""
    as_it_is, changed = Quantity(*before, "%"), Quantity(*after, "%")
    return f"; beside them it loses {as_it_is} of its speed alone as it is, and {changed} changed"


def _mitigations(tried: Tried) -> Iterator[str]:
    for row in records(tried.mitigations):
        what = " ".join(filter(None, (row["mitigation"], row["partition"])))
        if row["mitigation"] == UNMANAGED:
            continue
        if row["gain_pct"] != row["gain_pct"]:
            yield f"{what}: not measured, because {row['reason'] or 'it has no number'}."
            continue
        gain = Quantity.of(row, "gain_pct", "%")
        cost = "" if row["cost_pct"] != row["cost_pct"] else f"; its antagonists pay {number(row['cost_pct'])} %"
        launches = counted(row["launches"], "launch")
        yield f"{what}: {gain} more steps a second beside the same antagonists ({_sure(row)}; {launches}){cost}."


def _sure(row: Row) -> str:
    return "proven" if row["verdict"] in PROVEN else str(row["verdict"])
