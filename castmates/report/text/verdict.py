"""The verdict in sentences: lead by lead, and the worst first where there are too many to read."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from castmates.report.results import Results
from castmates.report.text import recommendation, words
from castmates.report.text.attribution import given_back
from castmates.report.text.words import plain
from castmates.study.spec import UNMANAGED

READABLE = 14  # so many sentences, or so many mixes, stand as they are; more are folded behind the worst
WORST = 5

Row = Mapping[str, Any]
Ends = Mapping[tuple[str, str, str], str]  # by mix, member and platform: how a sentence on its loss ends
Source = Callable[[Results, str], list[str]]


@dataclass(frozen=True)
class Group:
    """What is said of one lead."""

    lead: str
    summary: str
    sentences: list[str]


@dataclass(frozen=True)
class Verdict:
    """Sentences that everybody reads, and those on each lead, which are folded where they are many."""

    first: list[str]
    groups: list[Group]


def verdict(results: Results) -> Verdict:
    """All sentences on the leads, against solo; one that says so where there is no effect at all."""
    if not (results.blocks["status"] == "measured").any():
        return Verdict(["No block of this study was measured, so it says nothing about any loss."], [])
    ends = given_back(results)
    groups = [group for lead in results.against_solo if (group := _group(results, lead, ends)).sentences]
    if not groups:
        return Verdict(["No effect could be computed from the blocks of this study."], [])
    mixes = [row for lead in results.against_solo for row in _mixes(results, lead)]
    if max(len(mixes), sum(len(group.sentences) for group in groups)) <= READABLE:
        return Verdict([sentence for group in groups for sentence in group.sentences], [])
    return Verdict(_worst(results, mixes, ends), groups)


def effects(results: Results, lead: str, ends: Ends) -> list[str]:
    """What the lead loses beside each of its antagonists, and what gives it back."""
    return words.lead_sentences(lead, _mixes(results, lead), results.margin, _comparisons(results), ends)


def partitions(results: Results, lead: str) -> list[str]:
    """How far apart its losses under the partitions are."""
    return words.partition_sentences(results.against_solo[lead])


# Each says something of one lead, after its effects and in the order of the page.
SOURCES: tuple[Source, ...] = (partitions, recommendation.of_lead)


def _mixes(results: Results, lead: str) -> list[Row]:
    return [row for row in results.against_solo[lead] if row["partition"] == UNMANAGED]


def _group(results: Results, lead: str, ends: Ends) -> Group:
    more = [sentence for source in SOURCES for sentence in source(results, lead)]
    return Group(plain(lead), _summary(_mixes(results, lead)), effects(results, lead, ends) + more)


def _summary(rows: Sequence[Row]) -> str:
    """How many mixes came to which verdict, and the largest certain loss."""
    if not rows:
        return "under partitions only"
    worst = _slower(rows)[:1]
    most = f"; the largest certain loss {_loss(worst[0])}" if worst else ""
    return f"{words.counted(len(rows), 'mix')}: {words.listed(_counts(rows))}{most}"


def _worst(results: Results, rows: Sequence[Row], ends: Ends) -> list[str]:
    """How many mixes came to which verdict, and a sentence on each of the largest certain losses."""
    slower = _slower(rows)
    leads = words.counted(len({row["lead"] for row in rows}), "lead")
    few = "" if len(slower) <= WORST else f" The {WORST} largest of {len(slower)} losses:"
    lines = [f"{words.counted(len(rows), 'mix')} of {leads}: {words.listed(_counts(rows))}.{few}"] if rows else []
    return lines + [
        sentence
        for row in slower[:WORST]
        for sentence in words.lead_sentences(row["lead"], [row], results.margin, _comparisons(results), ends)
    ]


def _counts(rows: Sequence[Row]) -> list[str]:
    return [f"{count} {verdict}" for verdict, count in Counter(row["verdict"] for row in rows).most_common()]


def _slower(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if row["verdict"] == "slower"), key=lambda row: -row["degradation_pct"])


def _loss(row: Row) -> str:
    interval = words.interval(row["degradation_low"], row["degradation_high"])
    return f"{words.number(row['degradation_pct'])} % {interval} beside {plain(row['antagonists'])}"


def _comparisons(results: Results) -> int:
    """What Holm's adjustment was taken over."""
    rows = (row for lead in results.against_solo for row in _mixes(results, lead))
    return sum(not math.isnan(row["p_value"]) for row in rows)
