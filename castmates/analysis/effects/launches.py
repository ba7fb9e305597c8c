"""The records of launches (launch.json) -> the table of launches."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.effects.mask_stamp import MODELLED
from castmates.results.columns.study import LAUNCHES, frame
from castmates.study.class_names import workload_of


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
