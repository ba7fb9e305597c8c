"""The records of blocks (block.json) -> the table of blocks."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from castmates.analysis.effects.contrasts import workload_of
from castmates.analysis.effects.mask_stamp import MODELLED
from castmates.results.columns.study import BLOCKS, frame


def blocks_table(manifests: Iterable[Mapping[str, Any]], ignored: Collection[str] = ()) -> pd.DataFrame:
    """A row per block.json, failed blocks included, in the order of company and number.

    The blocks of hosts that are ignored are marked.
    """
    rows = [_row(manifest) for manifest in manifests]
    rows = [row | {"left_out": row["host"] in ignored and row["platform"] != MODELLED} for row in rows]
    return frame(sorted(rows, key=lambda row: (row["company"], row["block"])), BLOCKS)


def _row(manifest: Mapping[str, Any]) -> dict[str, Any]:
    spec = manifest["spec"]
    # A block that never came to measuring has no time for it.
    seconds = manifest.get("seconds", {})
    return {
        "study": spec["study"],
        "company": spec["company"]["id"],
        "block": spec["number"],
        "lead": workload_of(spec["company"]["members"][0]["name"]),
        "status": manifest["status"],
        "reason": manifest.get("reason", ""),
        "started": manifest["started"],
        "launch_seconds": seconds.get("launch"),
        "total_seconds": seconds.get("total"),
        "rounds": manifest.get("rounds", 0),
        "windows": manifest.get("windows", 0),
        "windows_rejected": manifest.get("windows_rejected", 0),
        "platform": manifest["platform"],
        "host": manifest.get("host") or "",
        "processor": manifest.get("cpu_model") or "",
        "boot_id": manifest.get("boot_id") or "",
        "machine": spec["company"].get("machine", ""),
    }
