"""Plan, windows and effects -> the table of distances: the loss of a lead by number and nearness of its antagonists."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.core import Contrast, declared
from castmates.analysis.effects.stamps import MODELLED
from castmates.analysis.keys import LAUNCH, LEAD_OF_MIX, MEMBER, ROW
from castmates.analysis.statistics.intervals import columns_of, gained
from castmates.results.columns.study import DISTANCES, LAUNCHES, frame
from castmates.study.class_names import plain_workload_of, workload_of
from castmates.study.mitigations import NEAREST_FIRST, place_of
from castmates.study.node_classes import parts_of
from castmates.study.spec import UNMANAGED, LeftOut, Mix, NodeClass, Plan

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


# Which launches of a study may be estimated together: those of one class of nodes, of one model of processor.
#
# And the table of launches, from their records (launch.json): what is left out of the analysis is marked there.

UNKNOWN = "unknown processor"


def pooled(plan: Plan, windows: pd.DataFrame) -> list[Plan]:
    """The parts of a plan that are never pooled: its classes, or without classes the processors that measured it.

    A part that has no class has the model of its processor in the place of one, the most measured first. Launches of
    which it is not known go with the only processor that is; beside several they are another part.
    """
    if plan.machines:
        return parts_of(plan)
    places = windows[[*LAUNCH, "processor"]].drop_duplicates()
    counts = places["processor"].astype("str").replace("", UNKNOWN).value_counts()
    if len(counts.drop(UNKNOWN, errors="ignore")) < 2:
        return [plan]
    models = sorted(map(str, counts.index), key=lambda model: (-int(counts[model]), model))
    model_of = {
        (str(cohort), int(number)): str(model) or UNKNOWN
        for cohort, number, model in places.itertuples(index=False, name=None)
    }
    return [
        plan.model_copy(
            update={
                "launches": tuple(
                    launch
                    for launch in plan.launches
                    if model_of.get((launch.cohort.id, launch.number), models[0]) == model
                ),
                "machines": (NodeClass(name=model, capture="", facts=None, cache=plan.cache),),
            }
        )
        for model in models
    ]


def without_hosts(plan: Plan, windows: pd.DataFrame, hosts: Collection[str]) -> Plan:
    """The plan without the launches that were measured on these hosts."""
    if not hosts:
        return plan
    theirs = windows.loc[windows["host"].isin(list(hosts)), LAUNCH].drop_duplicates()
    gone = {(str(cohort), int(number)) for cohort, number in theirs.itertuples(index=False, name=None)}
    return _without(plan, gone)


def without_left_out(plan: Plan, launches: pd.DataFrame) -> Plan:
    """The same by the table of launches, since that of windows has no rows of what was left out."""
    gone = launches.loc[launches["left_out"], LAUNCH]
    return _without(plan, {(str(cohort), int(number)) for cohort, number in gone.itertuples(index=False, name=None)})


def _without(plan: Plan, gone: Collection[tuple[str, int]]) -> Plan:
    launches = tuple(launch for launch in plan.launches if (launch.cohort.id, launch.number) not in gone)
    return plan.model_copy(update={"launches": launches})


def joined_tables(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One table of those of all parts; a part without rows must not change a column's type."""
    return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


def launches_table(records: Iterable[Mapping[str, Any]], ignored_hosts: Collection[str] = ()) -> pd.DataFrame:
    """A row per launch.json, failed launches included, in the order of cohort and number.

    The launches of hosts that are ignored are marked.
    """
    rows = [_row(record) for record in records]
    rows = [row | {"left_out": row["host"] in ignored_hosts and row["platform"] != MODELLED} for row in rows]
    return frame(sorted(rows, key=lambda row: (row["cohort"], row["launch"])), LAUNCHES)


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    spec = record["spec"]
    # A launch that never came to measuring has no time for it.
    seconds = record.get("seconds", {})
    return {
        "study": spec["study"],
        "cohort": spec["cohort"]["id"],
        "launch": spec["number"],
        "lead": workload_of(spec["cohort"]["members"][0]["name"]),
        "status": record["status"],
        "reason": record.get("reason", ""),
        "started": record["started"],
        "launch_seconds": seconds.get("launch"),
        "total_seconds": seconds.get("total"),
        "rounds": record.get("rounds", 0),
        "windows": record.get("windows", 0),
        "windows_rejected": record.get("windows_rejected", 0),
        "platform": record["platform"],
        "host": record.get("host") or "",
        "processor": record.get("cpu_model") or "",
        "boot_id": record.get("boot_id") or "",
        "machine": spec["cohort"].get("machine", ""),
    }
