"""What is stamped on the whole study: can it be trusted, would it have found a loss, on which nodes was it?"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from castmates.analysis.effects.contrasts import AGAIN, NEGATIVE, POSITIVE
from castmates.analysis.effects.effects import failing
from castmates.analysis.effects.verdicts import (
    INCONCLUSIVE,
    INSENSITIVE,
    NO_DATA,
    NODES_DIFFER,
    PASSES,
    SENSITIVE,
    TOO_FEW,
    UNSTABLE,
)
from castmates.analysis.statistics.intervals import FEWEST_LAUNCHES, FEWEST_UNITS
from castmates.english import counted, listed
from castmates.results.columns.study import STAMPS, frame
from castmates.study.partitions.partitions import masked
from castmates.study.rdt_trial import COMMAND, SHOWN, Tried
from castmates.study.rehearsing import NO_EFFECT, PLATFORM
from castmates.study.spec import Plan

FAILED, PROCESSORS = "failed controls", "processor models"  # ends of words that speak against a study
_FEW = f"Intervals of two nodes cover these two only; it takes {FEWEST_UNITS} to cover their class."
Row = tuple[str, tuple[str, str], bool]  # stamp, word and sentence, whether it is good
_EFFECT = ["machine", "platform", "mix", "partition", "baseline", "member"]
TRUSTWORTHY = "trustworthy"
NOT_MEASURED = "not measured"
MEASURED = "measured"  # the platform
Stamp = tuple[str, str]  # one word and one sentence
_UNSTEADY = "the machine or the way of measuring is not steady enough to trust the effects."


def nodes_stamps(plan: Plan, parts: Sequence[Plan], nodes: pd.DataFrame, left_out: int) -> list[Row]:
    """The stamps `machines` and `nodes`; none of a study on one node of one kind."""
    aside = [_aside(plan.ignored_hosts, left_out)] if plan.ignored_hosts else []
    return [*_machines(plan, parts), *_nodes(nodes, aside)]


def failure_sentence(failed: pd.DataFrame) -> str:
    """Which nodes failed which of their controls, and what can be done."""
    hosts = sorted(set(failed["host"]))
    their = "its" if len(hosts) == 1 else "their"
    return (
        f"{listed([_failed(host, failed[failed['host'] == host]) for host in hosts])} failed {their} own controls; "
        f"`leave_out: [{', '.join(hosts)}]` in the study keeps {their} launches out of the analysis."
    )


def _failed(host: str, own: pd.DataFrame) -> str:
    words = [
        f"{control} of {mix or lead}: {verdict}"
        for control, mix, lead, verdict in own[["control", "mix", "lead", "verdict"]].itertuples(index=False, name=None)
    ]
    return f"{host} ({'; '.join(words)})"


def _aside(ignored: Sequence[str], left_out: int) -> str:
    were = "was" if left_out == 1 else "were"
    return f"{counted(left_out, 'launch')} on {listed(list(ignored))} {were} left out of the analysis, and kept."


def _machines(plan: Plan, parts: Sequence[Plan]) -> list[Row]:
    names = [part.machine for part in parts]
    if plan.machines:
        word = f"{counted(len(names), 'class')} of nodes"
        sentence = f"Measured on nodes of {listed(names)}: each has separate rows, and nothing is pooled over them."
        return [("machines", (word, sentence), True)]
    if len(names) < 2:
        return []
    launches = [f"{part.machine} ({counted(len(part.launches), 'launch')})" for part in parts]
    sentence = (
        f"Measured on {listed(launches)}: each has separate rows in the tables, and the page shows {names[0]} alone. "
        "`machines` in the study names the classes of nodes (castmates help configuration)."
    )
    return [("machines", (f"{len(names)} {PROCESSORS}", sentence), False)]


def _nodes(nodes: pd.DataFrame, aside: Sequence[str]) -> list[Row]:
    failed, hosts = failing(nodes), {str(name): sorted(set(own["host"])) for name, own in nodes.groupby("machine")}
    each = [f"{listed(names)} of {name}" if len(hosts) > 1 else listed(names) for name, names in hosts.items()]
    rows = nodes[nodes["control"] == ""].drop_duplicates(_EFFECT)
    differ = list(dict.fromkeys(rows.loc[rows["verdict"] == NODES_DIFFER, "mix"]))
    if not hosts:
        return [("nodes", ("nodes left out", " ".join(aside)), True)] if aside else []
    said = [failure_sentence(failed)] if len(failed) else []
    if differ:
        said.append(
            f"The nodes {'; '.join(each)} differ in {listed(differ)}; the table of nodes has the effect on each."
        )
    elif not said:
        said.append(f"No difference between the nodes {'; '.join(each)} was seen.")
    word = NODES_DIFFER if differ else f"{sum(map(len, hosts.values()))} nodes"
    word = f"{counted(failed['host'].nunique(), 'node')} {FAILED}" if len(failed) else word
    few = [_FEW] if any(1 < len(names) < FEWEST_UNITS for names in hosts.values()) else []
    return [("nodes", (word, " ".join([*said, *few, *aside])), not len(failed))]


def is_bad(word: str) -> bool:
    """Check whether a stamp with this word speaks against the study's numbers."""
    return word.endswith((FAILED, PROCESSORS))


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


# Whether the masks of a sweep were seen to keep a neighbour out on the machine that measured it; pure, from its facts.
#
# Of several nodes together no more may be said than of the one that shows least.

VERIFIED, UNVERIFIED = "verified", "unverified"
MODELLED = "modelled"
DO_THIS = f"`{COMMAND}` tests them"
Facts = Mapping[str, Any]


def masks_stamp(
    masked: Collection[str], platforms: Collection[str], machine: Mapping[str, Any]
) -> tuple[str, str] | None:
    """A word and a sentence; None where no partition of the cache was tried, or nothing but a model's."""
    if not masked or set(platforms) == {MODELLED}:
        return None
    if PLATFORM in platforms:
        return UNVERIFIED, NO_EFFECT
    tried = Tried.of(machine.get("rdt_trial"))
    if tried is None:
        return UNVERIFIED, f"Masks and throttles have not been tested on this machine; {DO_THIS}."
    word = VERIFIED if tried.masks_hold else UNVERIFIED
    done = f"Verified on this machine, at {tried.at}: {listed(tried.verified) or 'nothing'}."
    failed = [name for name in SHOWN if name in tried.parts and not tried.verifies(name)]
    return word, " ".join([done, *(tried.sentence(name) for name in failed)])


def as_one(nodes: Sequence[Facts]) -> Facts:
    """The facts of the first node, with the trial of masks that shows least and the first peak of the memory."""
    if not nodes:
        return {}
    untested = next((node for node in nodes if not _masks_hold(node)), nodes[0])
    peak = next((node["memory_peak"] for node in nodes if node.get("memory_peak")), None)
    return {**nodes[0], "rdt_trial": untested.get("rdt_trial"), "memory_peak": peak}


def _masks_hold(node: Facts) -> bool:
    tried = Tried.of(node.get("rdt_trial"))
    return tried is not None and tried.masks_hold
