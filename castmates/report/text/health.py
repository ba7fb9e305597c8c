"""The health panel: what was rejected, repeated or failed, how the controls came out, and carry-over."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from castmates.analysis.core import once
from castmates.analysis.effects.effects import Growth, pooled_growth
from castmates.analysis.effects.reused import CHANGED, difference_of_reused
from castmates.analysis.effects.verdicts import NEVER_FROZEN, NO_DATA, NONE_SEEN, SEEN, TOO_FEW, TOO_FEW_WINDOWS
from castmates.analysis.partitions.sensitivity import INTERPOLATED
from castmates.report.launch_record import LaunchRecord, LedgerFacts, Settled
from castmates.report.quantity import Quantity
from castmates.report.results import Results, records
from castmates.report.text import machine, services
from castmates.report.text.design import designed_rounds
from castmates.report.text.eviction import eviction_sentence
from castmates.report.text.words import (
    chance,
    counted,
    failure_sentence,
    listed,
    number,
    plain,
    rejection_sentence,
)
from castmates.results.named import retry_command
from castmates.study.curves import saved
from castmates.study.curves import summary as summary_of_looks
from castmates.study.reasons import listed_in
from castmates.study.rounds import reached_words
from castmates.study.spec import UNMANAGED

KINDS = ("alone", "alone-again", "placebo", "corun", "antagonist-alone")
WITHIN = " within launch"
NAMED = 5  # effects that a sentence names
Row = Mapping[str, Any]


def summary(results: Results) -> list[tuple[str, str]]:
    """Each question on the study's health with its answer."""
    rows = [
        ("Controls", results.stamp[1]),
        ("Sensitivity", results.sensitivity_stamp[1]),
        ("Reused controls", reused_sentence(results)),
        ("Carry-over", carryover_sentence(records(results.carryover))),
        ("Windows", rejection_sentence(results.launches, results.windows)),
        ("Masks in the processor", machine.sentences(results)),
        ("Stretches", stretches_sentence([record.ledger for record in results.measured_records])),
        ("Biased effects", biased_sentence(records(results.effects))),
        ("Growing losses", growth_sentence(records(results.effects))),
        ("Later halves of slices", later_sentence(pooled_growth(results.plan, results.windows))),
        ("Precision", reached_words(results.looks)),
        ("Adaptive", adaptive_sentence(results)),
        ("Requests", services.unknown(results)),
        ("Spare rounds", spare_sentence(results.windows, designed_rounds(results.plan))),
        ("Launches", failure_sentence(results.launches, retry_command(results.study_file))),
        ("Settle time", settle_sentence(settles(results))),
        ("Readings of the cache", readings_sentence(results.measured_records)),
        ("Caches", eviction_sentence([record.eviction for record in results.measured_records])),
    ]
    return [(term, text) for term, text in rows if text]


def reused_sentence(results: Results) -> str:
    """Which launches of controls another study measured, and whether those of this study differ from them."""
    reused = [record for record in results.measured_records if record.reused]
    if not reused:
        return ""
    leads = {(record.cohort, record.number) for record in reused}
    fresh = [launch for launch in results.plan.launches if launch.cohort.id in {cohort for cohort, _ in leads}]
    p = difference_of_reused(results.plan, results.windows, [f"{cohort}/{number}" for cohort, number in leads])
    studies = listed(sorted({record.reused["study"] for record in reused}))
    begun = [record.started[:16].replace("T", " ") for record in reused]
    compared = "cannot be compared with that"
    if p is not None:
        compared = (
            f"{'differs' if p < CHANGED else 'does not differ'} from that (p {'' if p < 0.001 else '= '}{chance(p)})"
        )
    return (
        f"{len(reused)} of {counted(len(fresh), 'launch')} of controls were measured by {studies} on this machine, "
        f"from {min(begun)} to {max(begun)} UTC, since it was started. What this study measured {compared}. Only a "
        "large change would be seen. The program beside itself and beside a placebo was measured in this study alone."
    )


def adaptive_sentence(results: Results) -> str:
    """What the looks of an adaptive study came to, how much they saved, and how the rest is measured."""
    looks = results.adaptive_looks
    if not looks:
        return ""
    curves = results.curves
    guessed = int((curves["source"] == INTERPOLATED).sum())
    parts = [summary_of_looks(looks), saved(looks[-1], int(results.launches["windows"].sum()))]
    if guessed:
        parts.append(
            f"{guessed} of {len(curves)} cells of curves are interpolated, and in no table but curves.csv; without "
            "'budget.adaptive', and with 'budget.launches' as many as 'most_launches', a further sweep measures them."
        )
    return " ".join(filter(None, parts))


def rejections(windows: pd.DataFrame) -> list[dict[str, Any]]:
    """Windows kept and rejected by kind of scene, with the kinds of reasons; a window is counted once."""
    once = windows.drop_duplicates(["cohort", "launch", "window"])
    rows = []
    for kind in [name for name in KINDS if (once["kind"] == name).any()]:
        here = once[once["kind"] == kind]
        lost = int((~here["valid"]).sum())
        reasons = Counter(reason for cell in here.loc[~here["valid"], "reason_kinds"] for reason in listed_in(cell))
        rows.append(
            {
                "kind": kind,
                "kept": len(here) - lost,
                "rejected": lost,
                "share": 100 * lost / len(here),
                "reasons": ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common()) or "–",
            }
        )
    return rows


def stretches_sentence(ledgers: Sequence[LedgerFacts]) -> str:
    """How many stretches of rounds lost all their windows to a finding in one slice; "" where none did."""
    rejected = sum(ledger.stretches_rejected for ledger in ledgers)
    if not rejected:
        return ""
    because = Counter[str]()
    for ledger in ledgers:
        because.update(ledger.stretches_because)
    kinds = listed([f"{kind} ({count})" for kind, count in because.most_common()])
    of_all = f"{rejected} of {counted(sum(ledger.stretches for ledger in ledgers), 'stretch')} of rounds"
    return f"{of_all} lost all {'its' if rejected == 1 else 'their'} windows to a finding in a single slice: {kinds}."


def control(row: Row) -> dict[str, Any]:
    """A control as the page's table shows it."""
    few = row["verdict"] == TOO_FEW
    ratio = Quantity.of(row, "ratio", digits=3, stem="within" if few else "ratio")
    return {
        **row,
        "what": control_name(row),
        "compared": compared(row),
        "interval": "–" if row["verdict"] == NO_DATA else ratio.ends + few * WITHIN,
    }


def control_name(row: Row) -> str:
    """Who is compared: the lead, or the mix of a control."""
    return plain(row["mix"] or row["lead"]) + ("" if row["mix"] or row["study_lead"] else " (of a control)")


def compared(row: Row) -> str:
    """What is divided by what."""
    return f"{row['baseline']} / co-run" if row["mix"] else "alone / alone again"


def carryover_sentence(rows: Sequence[Row]) -> str:
    """What the leads' windows show of the scene before, and whether any antagonist's show more."""
    parts = []
    for role, who in (("lead", ""), ("antagonist", "the antagonist ")):
        own = [row for row in rows if row["role"] == role]
        seen = [
            f"{who}{plain(row['member'])} ({Quantity.of(row, 'change_pct', '%').whole})"
            for row in own
            if row["verdict"] == SEEN
        ]
        parts += [f"{SEEN} for {listed(seen)}"] if seen else []
        if role == "lead":
            none = [f"{plain(row['member'])} (±{_bound(row)} %)" for row in own if row["verdict"] == NONE_SEEN]
            parts += [f"{NONE_SEEN} for {listed(none)}"] if none else []
            for verdict, words in ((TOO_FEW_WINDOWS, f"{TOO_FEW_WINDOWS} for "), (NEVER_FROZEN, f"{NEVER_FROZEN}: ")):
                such = [plain(row["member"]) for row in own if row["verdict"] == verdict]
                parts += [words + listed(such)] if such else []
    return f"From the scene before: {'; '.join(parts)}." if parts else ""


def carryover(row: Row) -> dict[str, Any]:
    """A member's carry-over as the page's table shows it."""
    there = row["verdict"] in (SEEN, NONE_SEEN)
    return {
        **row,
        "interval": Quantity.of(row, "change_pct").ends if there else "–",
        "said": f"{NONE_SEEN} (±{_bound(row)} %)" if row["verdict"] == NONE_SEEN else row["verdict"],
    }


def biased_sentence(rows: Sequence[Row]) -> str:
    """Which effects may be biased by what was rejected."""
    marked = [_effect(row) for row in rows if row["possibly_biased"]]
    if not rows:
        return ""
    if not marked:
        return _largest_excess(rows)
    return f"Rejected more often than the baseline, hence possibly biased: {listed(marked)}."


def growth_sentence(rows: Sequence[Row]) -> str:
    """Which losses still grow within slices, and what to do."""
    marked = [
        f"{_effect(row)} (by {Quantity.of(row, 'growth_pct', '%').whole})" for row in rows if row["still_growing"]
    ]
    if not marked:
        return ""
    if len(marked) > NAMED:
        marked = [*marked[:NAMED], f"{len(marked) - NAMED} more (still_growing in effects.csv)"]
    return (
        f"Slower in the later halves of slices than in the earlier ones, so that the loss is underestimated: "
        f"{listed(marked)}. A longer budget.settle makes slices longer."
    )


def later_sentence(found: Sequence[Growth]) -> str:
    """How much more is lost in the later halves of slices, all losses together, and how wrong losses may be by it."""
    parts = []
    for one in found:
        where = f" ({one.platform})" if len(found) > 1 else ""
        change = f"{number(abs(one.pct))} % {'more' if one.pct >= 0 else 'less'}"
        parts.append(
            f"Over all losses against alone, leads are slowed down by {change} in the later halves of slices than in "
            f"the earlier ones {Quantity(one.pct, one.low, one.high).ends}, over "
            f"{counted(one.launches, 'launch')}{where}. "
            + (f"Losses may be up to about {number(one.bias)} points too small." if one.bias else "Losses do not grow.")
        )
    return " ".join(parts)


def _largest_excess(rows: Sequence[Row]) -> str:
    """How much more often than its baseline a scene was rejected at most, where no effect is flagged."""
    excess = [(row["rejection_rate"] - row["baseline_rejection_rate"], row) for row in rows]
    known = [(points, row) for points, row in excess if not math.isnan(points)]
    if not known:
        return ""
    points, row = max(known, key=lambda pair: pair[0])
    if points <= 0:
        return "No scene was rejected more often than its baseline."
    most = f"{number(100 * points)} points ({_effect(row)})"
    return f"None is flagged; the largest excess of rejected windows over the baseline is {most}."


def _effect(row: Row) -> str:
    under = "" if row["partition"] == UNMANAGED else f" under {row['partition']}"
    return f"{plain(row['member'])} in {row['mix']}{under} against {row['baseline']}"


def spare_sentence(windows: pd.DataFrame, designed: Mapping[tuple[str, int], tuple[int, int]]) -> str:
    """How many of the spare rounds were used to repeat rounds with a rejected window."""
    begun = (
        windows[["cohort", "launch", "round"]].sort_values("round").drop_duplicates(["cohort", "launch"], keep="last")
    )
    last = {(row["cohort"], row["launch"]): int(row["round"]) for row in records(begun)}
    used = {launch: max(0, number - designed[launch][0]) for launch, number in last.items() if launch in designed}
    allowed = sum(designed[launch][1] for launch in used)
    if not used:
        return ""
    launches = f"{len([count for count in used.values() if count])} of {counted(len(used), 'launch')}"
    return f"{sum(used.values())} of {counted(allowed, 'spare round')} used, in {launches}."


def readings_sentence(launches: Sequence[LaunchRecord]) -> str:
    """How many launches lack some of their readings, with the words of the first; "" where none does."""
    lacking = [launch.unread for launch in launches if launch.unread]
    if not lacking:
        return ""
    return f"{len(lacking)} of {counted(len(launches), 'launch')} lack some, for example: {'; '.join(lacking[0])}."


@once
def settles(results: Results) -> dict[tuple[str, int], Settled]:
    """What each launch found out about its settle time, as far as it is recorded."""
    return {record.place: settled for record in results.records if (settled := record.settled)}


def settle_sentence(settled: Mapping[tuple[str, int], Settled]) -> str:
    """Which settle times were used, when rates were seen to be steady, and where they were not."""
    if not settled:
        return ""
    launches = list(settled.values())
    never = [f"{cohort}/{launch}" for (cohort, launch), settle in settled.items() if settle.unsteady]
    steady = [launch.steady_after for launch in launches if not launch.unsteady and launch.steady_after is not None]
    unseen = len(launches) - len(never) - len(steady)
    parts = [f"{_seconds([launch.seconds for launch in launches])} waited after a change of scene"]
    if steady:
        slowest = Counter(plain(launch.slowest) for launch in launches if launch.slowest)
        who = f", {slowest.most_common(1)[0][0]} most often the last" if slowest else ""
        parts.append(f"rates were steady after {_seconds(steady)}{who}")
    if unseen:
        where = f" in {unseen} of {counted(len(launches), 'launch')}" if unseen < len(launches) else ""
        parts.append(f"it was not seen when rates became steady{where}")
    if never:
        parts.append(
            f"rates did not become steady within the longest settle time in {len(never)} of "
            f"{counted(len(launches), 'launch')}: {listed(never)}"
        )
    return f"{'; '.join(parts)}.{_raise_it(launches)}"


def _raise_it(launches: Sequence[Settled]) -> str:
    """What to do where most launches lost a round because they had to wait longer than planned."""
    raised = [
        launch.seconds for launch in launches if launch.asked is not None and launch.seconds > launch.asked + 1e-4
    ]
    if 2 * len(raised) <= len(launches):
        return ""
    longest = math.ceil(round(100 * max(raised), 6)) / 100
    return f" {len(raised)} of {counted(len(launches), 'launch')} had to raise it: raise budget.settle to {longest:g}."


def _seconds(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    if number(low, 2) == number(high, 2):
        return f"{number(low, 2)} s"
    return f"{number(low, 2)} to {number(high, 2)} s (median {number(median(values), 2)})"


def _bound(row: Row) -> str:
    """The largest change, either way, that the interval leaves possible."""
    return number(max(abs(row["change_low"]), abs(row["change_high"])))
