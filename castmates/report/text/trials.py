"""Trials in words: what a finding's advice gave in fresh launches, alone and beside the antagonists."""

from collections.abc import Iterator

from castmates.analysis.effects.verdicts import GAIN, LOSS
from castmates.english import counted, listed, number
from castmates.report.results import records
from castmates.report.text.words import Row, interval
from castmates.report.trials import Tried, loss_of
from castmates.study.spec import UNMANAGED

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
        gain = _percent(row["gain_pct"], row["gain_low"], row["gain_high"])
        launches = f"{counted(row['launches'], 'launch')} as it is, {row['changed_launches']} changed"
        yield f"{where}: a gain of {gain} in {per} a second ({_sure(row)}; {launches}){_losses(tried, row['beside'])}."


def _losses(tried: Tried, beside: str) -> str:
    """What the lead loses beside its antagonists, before and after."""
    trial = tried.trial
    before, after = (loss_of(tried, lead, beside) for lead in (trial.lead, trial.changed))
    if not beside or before[0] != before[0] or after[0] != after[0]:
        return ""
    as_it_is, changed = _percent(*before), _percent(*after)
    return f"; beside them it loses {as_it_is} of its speed alone as it is, and {changed} changed"


def _mitigations(tried: Tried) -> Iterator[str]:
    for row in records(tried.mitigations):
        what = " ".join(filter(None, (row["mitigation"], row["partition"])))
        if row["mitigation"] == UNMANAGED:
            continue
        if row["gain_pct"] != row["gain_pct"]:
            yield f"{what}: not measured, because {row['reason'] or 'it has no number'}."
            continue
        gain = _percent(row["gain_pct"], row["gain_low"], row["gain_high"])
        cost = "" if row["cost_pct"] != row["cost_pct"] else f"; its antagonists pay {number(row['cost_pct'])} %"
        launches = counted(row["launches"], "launch")
        yield f"{what}: {gain} more steps a second beside the same antagonists ({_sure(row)}; {launches}){cost}."


def _sure(row: Row) -> str:
    return "proven" if row["verdict"] in PROVEN else str(row["verdict"])


def _percent(value: float, low: float, high: float) -> str:
    return f"{number(value)} %" + ("" if low != low else f" {interval(low, high)}")
