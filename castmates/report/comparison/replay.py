"""A published study and what was measured again of it -> what a replay shows, before it is put into words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from castmates.analysis.comparison.launches import plain_members
from castmates.analysis.comparison.replay import replayed
from castmates.analysis.effects.verdicts import AGREES, DIFFERS, NEW_HERE
from castmates.report.comparison.compare import compare_measured
from castmates.report.comparison.compared import Compared
from castmates.report.comparison.replay_machine import machine_sentences, other_class
from castmates.results.find import Measured

ALL_AGREE, SOME_DIFFER, UNDECIDED = 0, 3, 4  # how the command ends; 1 is an error, 2 a wrong option
PRINTED = 0.001  # a published slowdown that is further from that of its own windows is another number


@dataclass(frozen=True)
class Contradiction:
    """A published number that the published windows do not give."""

    mix: str
    member: str
    baseline: str
    partition: str
    table: float  # slowdown in the published table
    windows: float  # and from the published windows


@dataclass(frozen=True)
class Replayed:
    """What a replay shows."""

    pair: Compared  # A is what was published, B what was measured here
    table: pd.DataFrame  # the columns of REPLAY
    another_class: str | None  # in what the machine is of another class, a clause; "" for the same, None: not known
    differences: Sequence[str]  # in machine, versions, design and programs, each a sentence
    notes: Sequence[str]  # what the replay changed, and why
    contradictions: Sequence[Contradiction]

    @cached_property
    def effects(self) -> pd.DataFrame:
        """The published effects; what was measured here and never published is left out."""
        return self.table[self.table["verdict"] != NEW_HERE]

    @property
    def status(self) -> int:
        """How the command ends."""
        verdicts = set(self.effects["verdict"])
        if DIFFERS in verdicts or self.contradictions:
            return SOME_DIFFER
        return ALL_AGREE if verdicts == {AGREES} else UNDECIDED


def replay_of(
    published: Measured,
    here: Measured,
    margin: float | None,
    named: str = "",
    notes: Sequence[str] = (),
    effects: pd.DataFrame | None = None,
) -> Replayed:
    """Compare both; `effects` is the published table of effects, where there is one.

    `named` is how the published study was named: where it lies may be a folder that will be gone.
    """
    (pair,) = compare_measured([published, here], margin).pairs
    table = replayed(pair.table, pair.margin)
    # Figure and table show one verdict: that of the replay.
    judged = pair.table.assign(verdict=table["verdict"], p_holm=table["p_holm"])
    pair = replace(pair, a=replace(pair.a, folder=named or pair.a.folder), table=judged)
    return Replayed(
        pair=pair,
        table=table,
        another_class=other_class(published.machine, here.machine),
        differences=machine_sentences(published.machine, here.machine, [*pair.differences, *pair.work]),
        notes=notes,
        contradictions=[] if effects is None else contradictions(published, pair.table, effects),
    )


def contradictions(published: Measured, comparison: pd.DataFrame, effects: pd.DataFrame) -> list[Contradiction]:
    """Where the published table of effects has another number than the published windows give.

    Of several nodes the table has means over nodes, which are not compared with means over launches.
    """
    names = plain_members(published.plan)
    key = ["mix", "member", "baseline", "partition"]
    stated = effects[effects["slowdown"].notna()]
    if "over" in stated:
        stated = stated[stated["over"].isin(["", "launches"])]
    plain = [names.get((mix, member), "") for mix, member in zip(stated["mix"], stated["member"], strict=True)]
    stated = stated.assign(member=plain)[[*key, "slowdown"]]
    given = comparison.rename(columns={"partition_a": "partition"})[[*key, "slowdown_a"]]
    both = stated.merge(given[given["slowdown_a"].notna()], on=key)
    return [
        Contradiction(**{name: str(row[name]) for name in key}, table=row["slowdown"], windows=row["slowdown_a"])
        for row in both.to_dict("records")
        if abs(math.log(row["slowdown"] / row["slowdown_a"])) > PRINTED
    ]
