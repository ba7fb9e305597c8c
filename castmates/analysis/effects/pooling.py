"""Which launches of a study may be estimated together: those of one class of nodes, of one model of processor.

And the table of launches, from their records (launch.json): what is left out of the analysis is marked there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from castmates.analysis.effects.stamps import MODELLED
from castmates.analysis.keys import LAUNCH
from castmates.results.columns.study import LAUNCHES, frame
from castmates.study.class_names import workload_of
from castmates.study.node_classes import parts_of
from castmates.study.spec import NodeClass, Plan

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
