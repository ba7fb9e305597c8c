"""Plan, windows and effects -> the table of distances: the loss of a lead by number and nearness of its antagonists."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, declared
from castmates.analysis.keys import LEAD_OF_MIX, MEMBER, ROW
from castmates.analysis.statistics.intervals import columns_of, gained
from castmates.results.columns.study import DISTANCES, frame
from castmates.study.class_names import plain_workload_of, workload_of
from castmates.study.mitigations import NEAREST_FIRST, place_of
from castmates.study.spec import UNMANAGED, LeftOut, Mix, Plan

_FROM_EFFECTS = ["slowdown", "slowdown_low", "slowdown_high", "loss_pct", "loss_low", "loss_high"]
_FROM_EFFECTS += ["launches", "rounds", "verdict"]


@dataclass(frozen=True)
class Arranged:
    """A mix as one of several that differ in the number of its antagonists, or in where they sit."""

    mix: Mix | LeftOut
    antagonists: str  # that are there `count` times
    distance: str
    count: int

    @property
    def name(self) -> str:
        """What the mix is called."""
        return self.mix.mix if isinstance(self.mix, LeftOut) else self.mix.name

    @property
    def reason(self) -> str:
        """Why it is not measured; "" where it is."""
        return self.mix.reason if isinstance(self.mix, LeftOut) else ""

    @property
    def order(self) -> tuple[int, int]:
        """Nearest first, then few before many."""
        return NEAREST_FIRST.index(self.distance) if self.distance else -1, self.count


def arranged(plan: Plan) -> list[Arranged]:
    """The mixes whose lead runs beside the same antagonists in several arrangements; the same place counts once.

    Arrangements for which the machine has no place are among them where there are others.
    """
    families: dict[tuple[str, str], dict[str, Arranged]] = {}
    for mix in plan.mixes:
        if mix.antagonists and not mix.partitions:
            each = _arranged(mix, mix.name, (plain_workload_of(name) for name in mix.antagonists))
            family = families.setdefault((workload_of(mix.lead), each.antagonists), {})
            known = family.get(mix.identity)
            # What a study names by its distance is shown by that, and not as what placement happens to choose too.
            if known is None or (not known.distance and each.distance):
                family[mix.identity] = each
    for left_out in plan.left_out:
        each = _arranged(left_out, left_out.mix, left_out.antagonists)
        if (key := (left_out.lead, each.antagonists)) in families:
            families[key][each.name] = each
    several = [list(family.values()) for family in families.values() if len(family) > 1]
    return [each for family in several for each in sorted(family, key=lambda each: each.order)]


def estimate_distances(plan: Plan, windows: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """A row per arrangement and platform: its loss from the effects, and what it gains over the next nearer place."""
    rows = arranged(plan)
    if not rows:
        return frame([], DISTANCES)
    table = pd.DataFrame(
        {
            "row": range(len(rows)),
            "mix": [each.name for each in rows],
            "member": [each.mix.lead for each in rows],
            "reason": [each.reason for each in rows],
            "distance": [each.distance for each in rows],
            "machine": plan.machine,
            "count": [each.count for each in rows],
            "family": [each.antagonists for each in rows],
        }
    )
    against = effects[
        (effects["role"] == "lead") & (effects["baseline"] == "alone") & (effects["partition"] == UNMANAGED)
    ]
    kept = ["study", "mix", "member", "lead", "platform", *_FROM_EFFECTS]
    table = pd.concat([table.merge(against[kept], on=LEAD_OF_MIX), _not_measured(table, plan, against)])
    pairs = list(_nearer(rows))
    table["nearer"] = table["row"].map({number: rows[other].distance for number, other in pairs}).fillna("")
    table = table.merge(_gains(rows, pairs, plan, windows), on=ROW, how="left")
    table = table.assign(**columns_of(table, "gain_pct", gained, ends="gain"))
    table = table.assign(antagonists=table["family"], gain_launches=table["gain_launches"].fillna(0))
    return declared(table.sort_values(["platform", "row"], kind="stable"), DISTANCES)


def _not_measured(table: pd.DataFrame, plan: Plan, against: pd.DataFrame) -> pd.DataFrame:
    """The rows of what the machine has no place for, on every platform that measured."""
    rows = table[table["reason"] != ""].merge(against[["platform"]].drop_duplicates(), how="cross")
    rows = rows.assign(**dict.fromkeys(_FROM_EFFECTS, np.nan))
    return rows.assign(study=plan.study, lead=rows["member"], launches=0, rounds=0, verdict="no data")


def _arranged(mix: Mix | LeftOut, name: str, antagonists: Iterable[str]) -> Arranged:
    counts = Counter(antagonists)
    times = math.gcd(*counts.values())
    once = [name for name in counts for _ in range(counts[name] // times)]
    return Arranged(mix, "+".join(once), place_of(name), times)


def _nearer(rows: Sequence[Arranged]) -> Iterator[tuple[int, int]]:
    """Each arrangement, and that of as many antagonists at the next nearer distance."""
    for number, each in enumerate(rows):
        known = [
            other
            for other, near in enumerate(rows[:number])
            if near.distance
            and not near.reason
            and (near.mix.lead, near.antagonists, near.count) == (each.mix.lead, each.antagonists, each.count)
        ]
        if known and each.distance and not each.reason:
            yield number, known[-1]


def _gains(
    rows: Sequence[Arranged], pairs: Sequence[tuple[int, int]], plan: Plan, windows: pd.DataFrame
) -> pd.DataFrame:
    """By how much the lead is faster than at the next nearer place, inside the rounds that have both."""
    compared = [
        {
            "row": number,
            "cohort": cohort.id,
            "member": rows[number].mix.lead,
            "scene": scenes[1],
            "baseline_scene": scenes[0],
        }
        for cohort in plan.cohorts
        for number, other in pairs
        if None not in (scenes := [_scene(rows[each], cohort.mixes) for each in (number, other)])
    ]
    columns = ["row", *MEMBER, "baseline_scene"]
    table = Contrast.of(plan, windows, pd.DataFrame(compared, columns=columns)).estimates()
    return table.rename(columns={"launches": "gain_launches"})[["mean", "low", "high", "gain_launches"]].reset_index()


def _scene(arranged: Arranged, mixes: Sequence[Mix]) -> str | None:
    """The scene of a mix in a cohort; None where the cohort lacks it."""
    members = arranged.mix.lead, arranged.mix.antagonists
    return next((f"corun:{each.name}" for each in mixes if (each.lead, each.antagonists) == members), None)
