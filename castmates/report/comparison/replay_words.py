"""A replay -> plain sentences, and the rows of its table; what they claim is decided elsewhere."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.effects.stamps import TRUSTWORTHY
from castmates.analysis.effects.verdicts import (
    AGREES,
    DIFFERS,
    NEW_HERE,
    NO_DATA,
    NOT_HERE,
    PLATFORMS_DIFFER,
    SENSITIVE,
    TOO_FEW,
    UNCLEAR,
)
from castmates.report.comparison.replay import Contradiction, Replayed
from castmates.report.comparison.rows import with_ends
from castmates.report.results import records
from castmates.report.text.words import Row, as_loss, counted, interval, listed, number, percent_of

UNKNOWN_CLASS = (
    "Whether this machine is of the class of the published one is not known: the topology of one of them was not "
    "recorded."
)
SHOWN = 8  # of a kind; the table has them all
IN_ORDER = (AGREES, DIFFERS, UNCLEAR, TOO_FEW, NO_DATA, NOT_HERE, PLATFORMS_DIFFER)


def stamp(replay: Replayed) -> str:
    """What stands first where the machine is of another class than the published one."""
    return "another class of machine" if replay.another_class else ""


def headline(replay: Replayed) -> str:
    """2 of 3 effects agree within 2 %; 1 differs."""
    counts = Counter(replay.effects["verdict"])
    total = len(replay.effects)
    margin = percent_of(replay.pair.margin)
    if counts[AGREES] == total:
        what = "The only effect agrees" if total == 1 else f"All {total} effects agree"
        return f"{what} with what was published, within {margin}."
    parts = [f"{counts[AGREES]} of {counted(total, 'effect')} {_verb(counts[AGREES], 'agree')} within {margin}"]
    parts += [f"{counts[DIFFERS]} {_verb(counts[DIFFERS], 'differ')}"] if counts[DIFFERS] else []
    parts += [f"{counts[UNCLEAR]} {_be(counts[UNCLEAR])} {UNCLEAR}"] if counts[UNCLEAR] else []
    parts += [f"{counts[word]}: {word}" for word in IN_ORDER[3:] if counts[word]]
    return "; ".join(parts) + "."


def sentences(replay: Replayed) -> list[str]:
    """What stands before the table, the most important first."""
    return [
        *([f"This machine is of another class than the published one: {replay.another_class}."] * bool(stamp(replay))),
        headline(replay),
        *([UNKNOWN_CLASS] * (replay.another_class is None)),
        *_effects(replay),
        *(_contradiction(each) for each in replay.contradictions[:SHOWN]),
        *_one_sided(replay),
        *replay.notes,
        f"Published: {replay.pair.a.sentence.partition(' is ')[2]}",
        f"Here: {replay.pair.b.sentence.partition(' is ')[2]}",
    ]


def rows(replay: Replayed) -> list[dict[str, Any]]:
    """The rows of the table: numbers with their intervals, in words."""
    return [_row(row) for row in records(replay.table)]


def control_notes(stamps: pd.DataFrame) -> list[str]:
    """What the replay's own controls leave open: what they do not vouch for may differ because of the machine."""
    wanted = {"control": TRUSTWORTHY, "sensitivity": SENSITIVE}
    return [
        f"Controls of the replay: {row['word']}. {row['sentence']}"
        for row in records(stamps)
        if row["stamp"] in wanted and row["word"] != wanted[row["stamp"]]
    ]


def _row(row: Row) -> dict[str, Any]:
    partition = row["partition"]
    if row["partition_here"] not in ("", partition):
        partition = f"{partition} / {row['partition_here']}"
    return {
        **row,
        "where": partition + ("*" if row["masks"] == "differ" else ""),
        "said_published": _loss(row, "published_slowdown"),
        "said_here": _loss(row, "here_slowdown"),
        "said_ratio": "–" if math.isnan(row["ratio"]) else with_ends(row, "ratio"),
        "said_joint": _loss(row, "joint_slowdown"),
        "said_p": _p(row["p_holm"]),
    }


def _p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else number(value, 3)


def _loss(row: Row, name: str) -> str:
    """A loss in per cent with its interval where there is one."""
    if math.isnan(row[name]):
        return "–"
    value, low, high = (as_loss(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return number(value) + ("" if math.isnan(low) else f" {interval(low, high)}")


def _effects(replay: Replayed) -> Iterator[str]:
    """The leads against alone: what differs before what agrees, which the table has too."""
    table = replay.effects
    told = table[(table["verdict"] == DIFFERS) | ((table["role"] == "lead") & (table["baseline"] == "alone"))]
    order = told["verdict"].map({word: place for place, word in enumerate((DIFFERS, UNCLEAR, AGREES))}).fillna(3)
    chosen = told.assign(order=order).sort_values("order", kind="stable")
    for row in records(pd.DataFrame(chosen))[:SHOWN]:
        yield _effect(row, replay.pair.margin)
    if len(chosen) > SHOWN:
        yield f"{len(chosen) - SHOWN} more of these effects are in the table."


def _effect(row: Row, margin: float) -> str:
    losses = (
        f"{_who(row)}: loss of {_loss(row, 'published_slowdown')} % published, {_loss(row, 'here_slowdown')} % here"
    )
    many = f"{row['published_launches']} and {counted(int(row['here_launches']), 'launch')}"
    if row["verdict"] in (NOT_HERE, NO_DATA, PLATFORMS_DIFFER, TOO_FEW):
        return f"{losses} ({many}): {row['verdict']}."
    change = f"slowdown here over the published one {with_ends(row, 'ratio')}"
    # Shown beside every verdict but one: chosen because an effect agrees, the interval would hold the truth less often.
    both = f"; both together give {_loss(row, 'joint_slowdown')} %"
    finding = {AGREES: f"agrees within {percent_of(margin)}{both}", DIFFERS: "differs"}.get(
        row["verdict"], f"{UNCLEAR}, more launches decide it{both}"
    )
    return f"{losses} ({many}; {change}): {finding}."


def _who(row: Mapping[str, Any]) -> str:
    beside = f" beside {str(row['antagonists']).replace('+', ' + ')}" if row["antagonists"] else ""
    if row["role"] != "lead":
        beside = f" in {row['mix']}"
    under = "" if row["partition"] == "unmanaged" else f" under {row['partition']}"
    against = "" if row["baseline"] == "alone" else f", against {row['baseline']}"
    return f"{row['member']}{beside}{under}{against}"


def _contradiction(each: Contradiction) -> str:
    table, windows = (number(as_loss(value)) for value in (each.table, each.windows))
    under = "" if each.partition == "unmanaged" else f" under {each.partition}"
    return (
        f"The published table has a loss of {table} % for {each.member} in {each.mix}{under} against {each.baseline}, "
        f"and the published windows give {windows} %: one of them is not what was measured."
    )


def _one_sided(replay: Replayed) -> Iterator[str]:
    for word, verb in ((NOT_HERE, "has no counterpart here"), (NEW_HERE, "was measured here and never published")):
        own = replay.table[replay.table["verdict"] == word]
        if len(own):
            places = [
                mix if partition == "unmanaged" else f"{mix}@{partition}"
                for mix, partition in own[["mix", "partition"]].drop_duplicates().itertuples(index=False)
            ]
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            names = listed(places) if not more else ", ".join(places[:SHOWN]) + more
            verb = verb if len(places) == 1 else verb.replace("has ", "have ").replace("was ", "were ")
            yield f"{names} {verb}."


def _verb(count: int, verb: str) -> str:
    return verb + "s" * (count == 1)


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
