"""The table of controls -> what is stamped on the whole study: can it be trusted, and would it have found a loss?"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from castmates.analysis.effects.contrasts import AGAIN, NEGATIVE, POSITIVE
from castmates.analysis.effects.mask_stamp import VERIFIED, masks_stamp
from castmates.analysis.effects.nodes_stamp import nodes_stamps
from castmates.analysis.effects.verdicts import INCONCLUSIVE, INSENSITIVE, NO_DATA, PASSES, SENSITIVE, TOO_FEW, UNSTABLE
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES
from castmates.results.columns.study import STAMPS, frame
from castmates.study.partitions.planned import masked
from castmates.study.spec import Plan

TRUSTWORTHY = "trustworthy"
NOT_MEASURED = "not measured"
MEASURED = "measured"  # the platform

Stamp = tuple[str, str]  # one word and one sentence

_UNSTEADY = "the machine or the way of measuring is not steady enough to trust the effects."


def origin_word(platforms: Collection[str]) -> str:
    """What stands first wherever numbers were not measured; "" where all of them were, or where there are none."""
    others = sorted(set(platforms) - {MEASURED, ""})
    partly = "partly " if MEASURED in platforms else ""
    return f"{partly}{' and '.join(others)} (not measured)" if others else ""


def study_verdict(controls: pd.DataFrame) -> Stamp:
    """Whether the study can be trusted: whatever must not differ counts against it, coarseness where it matters."""
    again = controls[controls["control"] == AGAIN]
    ours = again[again["study_lead"]]
    leads = {word: _named(ours, word) for word in (NO_DATA, TOO_FEW, INCONCLUSIVE, PASSES)}
    if differences := _differences(controls):
        return UNSTABLE, f"{differences}: {_UNSTEADY}"
    if not any(leads[word] for word in (TOO_FEW, INCONCLUSIVE, PASSES)):
        return NO_DATA, "There is no lead that was measured twice alone, so nothing vouches for the effects."
    missing = (f" There is no control for {leads[NO_DATA]}." if leads[NO_DATA] else "") + _others(controls)
    if leads[TOO_FEW]:
        return TOO_FEW, (
            f"The control needs at least {FEWEST_LAUNCHES} measured launches, and there are fewer of {leads[TOO_FEW]}; "
            f"raise 'budget.launches'.{missing}"
        )
    if leads[INCONCLUSIVE]:
        return INCONCLUSIVE, (
            f"The same scene was run twice: {leads[INCONCLUSIVE]} may differ by more than the margin; more launches or "
            f"rounds would settle it.{missing}"
        )
    return TRUSTWORTHY, (
        f"The same scene was run twice: no difference larger than {_bound(ours)} % was seen for "
        f"{leads[PASSES]}.{missing}"
    )


def sensitivity(controls: pd.DataFrame) -> Stamp:
    """Whether this study, on this machine, found a loss that must be there."""
    positive = controls[controls["control"] == POSITIVE]
    mixes = {word: _named(positive, word, "mix") for word in (INSENSITIVE, TOO_FEW, SENSITIVE)}
    if mixes[INSENSITIVE]:
        return INSENSITIVE, (
            f"The positive control {mixes[INSENSITIVE]} must lose more than the margin, which was not shown: a missing "
            "loss of another program means little here."
        )
    if mixes[TOO_FEW]:
        return TOO_FEW, f"The positive control {mixes[TOO_FEW]} needs at least {FEWEST_LAUNCHES} measured launches."
    if mixes[SENSITIVE]:
        return SENSITIVE, f"The positive control {mixes[SENSITIVE]} lost more than the margin, as it must."
    return NOT_MEASURED, "There are no data of a positive control: it is not known whether a loss would have been seen."


def stamps_table(
    study: str,
    controls: pd.DataFrame,
    masked: Collection[str],
    platforms: Collection[str],
    machine: Mapping[str, Any],
    more: Sequence[tuple[str, Stamp, bool]] = (),
) -> pd.DataFrame:
    """Every stamp of the study, for readers of its tables: first its origin, unless all was measured.

    Where it was not, no stamp counts as good; the one on the masks is there only where some were set:
    `masked` are the partitions of the cache that were tried.
    """
    control, sensitive = study_verdict(controls), sensitivity(controls)
    masks = masks_stamp(masked, platforms, machine)
    origin = origin_word(platforms)
    first = f"{origin[:1].upper()}{origin[1:]}. " if origin else ""
    rows = [("origin", (origin, "The other stamps apply to these numbers, not to a machine."), False)] if origin else []
    rows += [("control", control, control[0] == TRUSTWORTHY), ("sensitivity", sensitive, sensitive[0] == SENSITIVE)]
    rows += [("masks", masks, masks[0] == VERIFIED)] if masks else []
    rows += more
    where = ", ".join(sorted(filter(None, platforms)))
    return frame(
        [
            {
                "study": study,
                "stamp": name,
                "word": word,
                "good": good and not origin,
                "sentence": f"{first}{sentence}",
                "platform": where,
            }
            for name, (word, sentence), good in rows
        ],
        STAMPS,
    )


def study_stamps(
    study: Plan,
    parts: Sequence[Plan],
    windows: pd.DataFrame,
    effects: pd.DataFrame,
    controls: pd.DataFrame,
    nodes: pd.DataFrame,
    machine: Mapping[str, Any],
    left_out: int,
) -> pd.DataFrame:
    """The stamps of a study by its tables; `parts` are never pooled, and `left_out` are launches."""
    more = nodes_stamps(study, parts, nodes, left_out)
    tried = masked(study) & set(effects["partition"])
    return stamps_table(study.study, controls, tried, set(windows["platform"]), machine, more)


def _differences(controls: pd.DataFrame) -> str:
    """What differed and must not; "" where nothing did."""
    leads = _named(controls[controls["control"] == AGAIN], UNSTABLE)
    mixes = _named(controls[controls["control"] == NEGATIVE], UNSTABLE, "mix")
    parts = [f"the same scene run twice gave different rates for {leads}"] if leads else []
    parts += [f"the negative control {mixes} differed from its placebo"] if mixes else []
    clauses = ", and ".join(parts)
    return clauses[:1].upper() + clauses[1:]


def _bound(controls: pd.DataFrame) -> str:
    """What the intervals of the controls that pass leave possible at most, either way, in per cent, rounded up."""
    passed = controls[controls["verdict"] == PASSES]
    largest = max((passed["ratio_high"] - 1).abs().max(), (1 - passed["ratio_low"]).abs().max())
    return rounded_up(float(largest))


def rounded_up(change: float) -> str:
    """A change that is the most there can be, in per cent with one decimal, never less than it is."""
    return f"{math.ceil(round(1000 * change, 6)) / 10:.1f}"


def _others(controls: pd.DataFrame) -> str:
    """What the controls' own leads and the negative control leave open; it does not touch the study's leads."""
    again = controls[(controls["control"] == AGAIN) & ~controls["study_lead"]]
    negative = controls[controls["control"] == NEGATIVE]
    open_words = (NO_DATA, TOO_FEW, INCONCLUSIVE)
    leads = [name for word in open_words if (name := _named(again, word))]
    mixes = [name for word in open_words if (name := _named(negative, word, "mix"))]
    sentence = f" No answer yet for {', '.join(leads)}, which only the controls use." if leads else ""
    return sentence + (f" No answer yet for the negative control {', '.join(mixes)}." if mixes else "")


def _named(controls: pd.DataFrame, verdict: str, column: str = "lead") -> str:
    *names, last = dict.fromkeys(controls.loc[controls["verdict"] == verdict, column]) or [""]
    return f"{', '.join(names)} and {last}" if names else last
