"""Whether the result can be trusted, in a few cards: are losses seen here, how large is the noise, what was lost."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from castmates.analysis.effects.contrasts import AGAIN, POSITIVE, own_leads
from castmates.analysis.effects.stamps import TRUSTWORTHY, VERIFIED, rounded_up
from castmates.analysis.effects.verdicts import (
    CONTROL_LEVEL,
    INSENSITIVE,
    NO_DATA,
    NODES_DIFFER,
    SEEN,
    SENSITIVE,
    TOO_FEW,
    UNSTABLE,
)
from castmates.report.answer.parts import BAD, DOUBT, GOOD, Card
from castmates.report.results import Results, records
from castmates.report.text import whole_runs
from castmates.report.text.stamps import BAD as NO
from castmates.report.text.stamps import nodes_stamps
from castmates.report.text.words import Quantity, counted, listed, number, percent_of, plain
from castmates.results.named import retry_command
from castmates.study.reasons import ReasonKind, listed_in, program_of
from castmates.study.spec import UNMANAGED

LITTLE, MUCH = 0.05, 0.2  # shares of all slices


def cards(results: Results) -> list[Card]:
    """Three cards that are always there, and one for each trouble that there is."""
    if not (results.launches["status"] == "measured").any():
        return _failures(results)
    always = [_sees_losses(results), _noise(results), rejected_card(results)]
    troubles = [
        *_nodes(results),
        *_cautions(results),
        *_instructions(results),
        *_failures(results),
        *_carryover(results),
        *_others(results),
    ]
    return [*always, *_masks(results), *troubles]


def _sees_losses(results: Results) -> Card:
    positive = results.controls[results.controls["control"] == POSITIVE]
    word = results.sensitivity_stamp[0]
    rows = positive[positive["verdict"] == word]
    pair = listed([_pair(row) for row in records(rows)]) if len(rows) else ""
    if word == SENSITIVE:
        text = f"{pair}, which must slow down{_by_more(results)}, did: {_losses(rows)}."
        return Card(GOOD, "The method sees losses here", text, "health")
    if word == INSENSITIVE:
        level = f"{100 * CONTROL_LEVEL:g} %"
        text = f"{pair} must slow down{_by_more(results)}, which is not proven at the controls' level of {level}: "
        text += f"{_losses(rows)}. "
        text += "Other losses may be missed too."
        return Card(BAD, "A loss that must be there was missed", text, "health")
    title = "Not known whether losses are seen"
    if word == TOO_FEW:
        return Card(DOUBT, title, f"{pair}, which must slow down, had too few launches.", "health")
    if len(positive):
        planned = listed([_pair(row) for row in records(positive)])
        return Card(DOUBT, title, f"{planned}, which must slow down, gave no valid windows.", "health")
    return Card(DOUBT, title, "No mix that must slow down was measured (key `controls`).", "health")


def _noise(results: Results) -> Card:
    if results.stamp[0] == UNSTABLE:
        return _unsteady(results)
    again = results.controls[(results.controls["control"] == AGAIN) & results.controls["study_lead"]]
    known = [row for row in records(again) if not math.isnan(row["ratio_low"])]
    if not known or results.stamp[0] in (NO_DATA, TOO_FEW):
        text = "It takes three launches to compare a lead with itself."
        return Card(DOUBT, "The noise is not known yet", text, "health")
    size = f"{rounded_up(max(abs(row[end] - 1) for row in known for end in ('ratio_low', 'ratio_high')))} %"
    differed = f"The same lead measured twice differed by up to {number(_most(known))} %"
    should = f"; it should differ by less than {100 * results.margin:.3g} %" if results.margin is not None else ""
    if results.stamp[0] == TRUSTWORTHY:
        return Card(GOOD, f"Noise is below {size}", f"{differed}, and by no more than {size} at 95 %.", "health")
    return Card(
        DOUBT,
        f"Noise is up to {size}",
        f"{differed} (up to {size} at 95 %){should}. More launches narrow it.",
        "health",
    )


def _unsteady(results: Results) -> Card:
    """What differed and must not: a program from itself, or the pair of a negative control from its placebo."""
    rows = [row for row in records(results.controls) if row["verdict"] == UNSTABLE]
    again = [row for row in rows if row["control"] == AGAIN]
    others = [row for row in rows if row["control"] != AGAIN]
    parts = []
    if again:
        who = listed([*dict.fromkeys(plain(row["lead"]) for row in again)])
        parts.append(f"The same lead measured twice differed by up to {number(_most(again))} % ({who})")
    if others:
        who = listed([*dict.fromkeys(map(_pair, others))])
        parts.append(f"{who}, which must not change, did by up to {number(_most(others))} %")
    title = "The same lead differs from itself" if again else "A change that must not be there was seen"
    steady = "more than chance explains. The machine or the method is not steady."
    return Card(BAD, title, f"{'. '.join(parts)}, {steady}", "health")


def rejected_card(results: Results) -> Card:
    """How much was thrown away, and why."""
    lost = thrown_away(results)
    if not lost.slices:
        return Card(DOUBT, "Nothing is known of disturbances", "The launches have no ledger.", "rejected")
    undisturbed = f"None of {counted(lost.slices, 'slice')} was disturbed"
    if not lost.rejected and not lost.windows_lost:
        return Card(GOOD, "Nothing was thrown away", f"{undisturbed}.", "rejected")
    state = GOOD if lost.share < LITTLE else DOUBT if lost.share < MUCH else BAD
    title = f"{number(100 * lost.share, 0 if lost.share >= 0.0995 else 1)} % of the measuring was thrown away"
    whole = f"{lost.windows_lost} of {counted(lost.windows, 'window')}"
    if not lost.rejected:
        spoiled = f"{whole} {'was' if lost.windows_lost == 1 else 'were'} rejected {reasons(lost)}"
        return Card(state, title, f"{undisturbed}; {spoiled}.", "rejected")
    windows = f" {whole} do not count." if lost.windows_lost else ""
    with_them = f"; {lost.dropped} that they are compared with went too" if lost.dropped else ""
    were = "was" if lost.rejected == 1 else "were"
    disturbed = f"{lost.rejected} of {counted(lost.slices, 'slice')} {were} disturbed"
    why = f"{' ' if len(lost.because) == 1 else ': '}{reasons(lost)}" if lost.because else ""  # old ledgers have none
    return Card(state, title, f"{disturbed}{why}{with_them}.{windows}", "rejected")


def _masks(results: Results) -> list[Card]:
    if results.masks is None:
        return []
    word, sentence = results.masks
    state, title = (
        (GOOD, "Cache partitions work here") if word == VERIFIED else (DOUBT, "Cache partitions are not verified")
    )
    return [Card(state, title, sentence, "health")]


def _nodes(results: Results) -> list[Card]:
    """Nodes that failed their controls or differ, and processors that are not shown together."""
    found = nodes_stamps(results)
    bad = [
        Card(BAD, f"{pill.word[:1].upper()}{pill.word[1:]}", pill.meaning, "health")
        for pill in found
        if pill.state == NO
    ]
    differ = [Card(DOUBT, "Nodes differ", pill.meaning, "health") for pill in found if pill.word == NODES_DIFFER]
    return [*bad, *differ]


def _cautions(results: Results) -> list[Card]:
    """Antagonists that cannot do on this machine what they are named for, or that share no cache with the lead."""
    first, *more = results.plan.cautions or ("",)
    if not first:
        return []
    text = first + (f" And {counted(len(more), 'more such sentence')} in the part on the machine." if more else "")
    return [Card(DOUBT, "An antagonist may do less here than it seems", text, "machine")]


def _instructions(results: Results) -> list[Card]:
    """Leads whose progress is instructions, which may not be their work."""
    sentences = whole_runs.instructions(results.measured_records)
    return [Card(BAD, "Instructions may not be its work", sentence, "machine") for sentence in sentences]


def _failures(results: Results) -> list[Card]:
    failed = results.launches[results.launches["status"] == "failed"]
    if failed.empty:
        return []
    whose = listed([plain(lead) for lead in dict.fromkeys(failed["lead"])])
    why = str(failed["reason"].iloc[-1]).rstrip(".") or "no reason was recorded"
    title = f"{len(failed)} of {counted(len(results.launches), 'launch')} failed"
    again = f"To measure them again: `{retry_command(results.study_file)}`."
    return [Card(BAD, title, f"{whose}: {why}. {again}", "tables")]


def _carryover(results: Results) -> list[Card]:
    seen = results.carryover[results.carryover["verdict"] == SEEN]
    if seen.empty:
        return []
    ours = own_leads(results.plan)
    row = max(records(seen), key=lambda row: (row["member"] in ours, row["role"] == "lead", abs(row["change_pct"])))
    found = Quantity.of(row, "change_pct", "%")
    change, how = found.value, "slower" if found.value < 0 else "faster"
    role = "" if row["member"] in ours else " (of a control)" if row["role"] == "lead" else " (as antagonist)"
    share = row["windows_after_frozen"] / row["windows"]
    masked = row["role"] == "lead" and (results.effects["partition"] != UNMANAGED).any()
    text = (
        f"{plain(row['member'])}{role} is {abs(found).whole} {how} right after it was frozen, "
        f"in {percent_of(share)} of its slices{' without a partition' if masked else ''}. Each scene there has such "
        "slices about equally often, so losses without a partition are hardly shifted."
    )
    if masked and row["member"] in ours:
        text += (
            f" Under partitions it is not frozen: losses against running alone are about "
            f"{number(share * abs(change))} points too {'small' if change < 0 else 'large'}."
        )
    return [Card(DOUBT, "Freezing leaves a trace", text, "health")]


def _others(results: Results) -> list[Card]:
    """Losses of which other programs made a part, which ran on the lead's CPU beside an antagonist."""
    rows = [row for row in records(results.lead_effects("alone")) if row["others_seen"]]
    if not rows:
        return []
    row = max(rows, key=lambda row: row["others_points"])
    lead, beside = plain(row["member"]), plain(row["antagonists"])
    also = counted(len(rows) - 1, "other pair")
    more = f" The same holds for {also} (others_points in effects.csv)." if len(rows) > 1 else ""
    points = Quantity.of(row, "others_points", "points", stem="others").whole
    text = (
        f"Other programs on its CPU cost {lead} {points} more "
        f"beside {beside} than alone: that part of it is not {beside}'s, and a spare CPU would avoid it.{more}"
    )
    return [Card(DOUBT, "Other programs made a part of a loss", text, "health")]


def _pair(row: Any) -> str:  # noqa: ANN401 (a row)
    lead, _, beside = str(row["mix"]).partition("+")
    return f"{plain(lead)} beside {plain(beside)}"


def _losses(positive: pd.DataFrame) -> str:
    return " and ".join(Quantity.loss(row, "ratio", "%").whole for row in records(positive))


def _most(rows: Iterable[Mapping[str, Any]]) -> float:
    """The largest change, either way, in per cent."""
    return max(100 * abs(float(row["ratio"]) - 1) for row in rows)


def _by_more(results: Results) -> str:
    """Than the margin; earlier tables, which have another baseline, asked for any loss."""
    positive = results.controls[results.controls["control"] == POSITIVE]
    if results.margin is None or not (positive["baseline"] == "placebo").all():
        return ""
    return f" by more than the margin of {100 * results.margin:.3g} %"


# How much of what was measured was thrown away, and why, in words that need no knowledge of the ledger.

# The ledger's kinds of reasons, as "12 because …" has them.
BECAUSE: Mapping[str, str] = {
    ReasonKind.FOREIGN_LOAD: "other programs ran",
    ReasonKind.NEIGHBOURS: "other programs ran beside the same cache or in the same package",
    ReasonKind.FOREIGN_TRAFFIC: "other programs used the memory",
    ReasonKind.STEAL: "the hypervisor took the CPU",
    ReasonKind.NOT_SETTLED: "speeds were not steady yet",
    ReasonKind.STILL_FILLING: "emptied caches were not full again",
    ReasonKind.TOO_FEW_STEPS: "a program completed no step",
    ReasonKind.NO_PROGRESS: "a program stood still",
    ReasonKind.LOST_HEARTBEATS: "progress reports were lost",
    ReasonKind.NOT_FROZEN: "a program ran that was to be frozen",
    ReasonKind.OFF_ITS_CPUS: "a program left its CPUs",
    ReasonKind.MASKS_CHANGED: "the cache partition was changed",
    ReasonKind.OUT_OF_ITS_GROUP: "a program left its cache partition",
    ReasonKind.GOVERNOR_CHANGED: "the clock settings changed",
    ReasonKind.OFFLINE: "a CPU went offline",
    ReasonKind.SWAPPING: "memory was swapped out",
    ReasonKind.SLEPT: "the machine slept",
}
# What removes the most frequent kind; any other is looked up under Disturbances.
REMEDIES: Mapping[str, str] = {
    ReasonKind.FOREIGN_LOAD: "stop the other programs on this machine",
    ReasonKind.NEIGHBOURS: "stop the other programs on this machine",
    ReasonKind.FOREIGN_TRAFFIC: "stop the other programs on this machine",
    ReasonKind.STEAL: "measure on a machine that shares its CPUs with no other guest",
    ReasonKind.STILL_FILLING: "set a longer budget.slice",
    ReasonKind.SWAPPING: "give the programs more memory",
    ReasonKind.SLEPT: "keep the machine awake",
}
NAMED = 3  # kinds of reasons, and culprits


@dataclass(frozen=True)
class ThrownAway:
    """Slices, as the ledgers of all launches count them."""

    slices: int
    rejected: int
    dropped: int  # because another one of the same cycle was rejected
    because: dict[str, int]  # by kind of reason, the most first: slices (or windows, where no slice was rejected)
    culprits: tuple[str, ...]  # programs that ran beside the study, the most frequent first
    windows: int
    windows_lost: int

    @property
    def share(self) -> float:
        """Of all slices, or of all windows where no slice was rejected."""
        if not self.rejected:
            return self.windows_lost / self.windows if self.windows else 0.0
        return (self.rejected + self.dropped) / self.slices if self.slices else 0.0


def thrown_away(results: Results) -> ThrownAway:
    """What the launches of the study lost."""
    ledgers = [record.ledger for record in results.measured_records]
    rejected = sum(sum(each.slices_rejected.values()) for each in ledgers)
    because: Counter[str] = Counter()
    for ledger in ledgers:  # a stretch can lose its measurements though none of their slices was disturbed
        kinds = ledger.slices_because if rejected else ledger.because
        because.update({kind: sum(scenes.values()) for kind, scenes in kinds.items()})
    return ThrownAway(
        slices=sum(sum(each.slices.values()) for each in ledgers),
        rejected=rejected,
        dropped=sum(sum(each.slices_dropped.values()) for each in ledgers),
        because=dict(because.most_common()),
        culprits=_culprits(results) if rejected else (),
        windows=sum(sum(each.windows.values()) for each in ledgers),
        windows_lost=sum(sum(each.rejected.values()) for each in ledgers),
    )


def reasons(lost: ThrownAway) -> str:
    """118 because other programs ran (bash, python3), 18 because the hypervisor took the CPU."""
    parts, only = [], len(lost.because) == 1
    for kind, count in [*lost.because.items()][:NAMED]:
        who = f" ({', '.join(lost.culprits)})" if kind == ReasonKind.FOREIGN_LOAD and lost.culprits else ""
        parts.append(f"{'' if only else f'{count} '}because {BECAUSE.get(kind, f'of “{kind}”')}{who}")
    rest = sum([*lost.because.values()][NAMED:])
    if rest:
        parts.append(f"{rest} for other reasons")
    return listed(parts) if parts else ""


def nothing_left(results: Results) -> bool:
    """Whether programs were measured, and none of their measurements counts."""
    leads = results.windows[results.windows["role"] == "lead"]
    return len(leads) > 0 and not leads["valid"].any()


def remedy(lost: ThrownAway) -> str:
    """Stop the other programs on this machine (bash, python3): what to do about the most frequent reason."""
    kind = next(iter(lost.because), "")
    who = f" ({', '.join(lost.culprits)})" if kind == ReasonKind.FOREIGN_LOAD and lost.culprits else ""
    return REMEDIES.get(kind, "remove the cause that is listed under “Disturbances”") + who


def _culprits(results: Results) -> tuple[str, ...]:
    """Who is named in the reasons of slices most often."""
    found: Counter[str] = Counter()
    for part in results.launch_parts("slices", columns=["cohort", "launch", "slice", "blamed"]):
        cells = part.loc[part["blamed"] != ""].drop_duplicates(["cohort", "launch", "slice"])["blamed"]
        found.update(program_of(who) for cell in cells for who in listed_in(cell))
    return tuple(name for name, _ in found.most_common(NAMED))
