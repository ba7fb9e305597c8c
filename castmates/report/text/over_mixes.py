"""The combined throughput over random mixes, pairs and groups: rows of the page's table, and sentences."""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from castmates.analysis.effects.system import ANTT, STP
from castmates.analysis.effects.system_over_mixes import BY_SIZE
from castmates.report.results import Results, records
from castmates.report.text.system import column_of
from castmates.report.text.words import BIASED, Quantity, counted
from castmates.study.spec import UNMANAGED

Row = dict[str, Any]
SETS = {"random": "random {}", "pairs": "{} of all pairs", "groups": "{} of all pairs in the groups"}
SEVERAL = "all"  # in the column of antagonists


def rows(results: Results) -> list[Row]:
    """A row per set, number of antagonists, partition and metric."""
    lines = []
    for entry in records(results.system_over_mixes):
        heading, digits = column_of(entry["metric"])
        lines.append(
            {
                "name": entry["set"] + (f" ({entry['machine']})" if entry["machine"] else ""),
                "antagonists": _size(entry) or SEVERAL,
                "metric": heading,
                "partition": entry["partition"],
                "value": entry["value"],
                "these": _value(entry, "", digits),
                "all_value": entry["all_value"],
                "everything": _value(entry, "all_", digits),
                "by_size": entry["how"] == BY_SIZE,
                "mixes": entry["mixes"],
                "mixes_of": entry["mixes_of"],
                "possible": "" if pd.isna(entry["possible"]) else entry["possible"],
                "launches": entry["launches"],
                "platform": entry["platform"],
                "possibly_biased": entry["possibly_biased"],
            }
        )
    return lines


def sentences(results: Results) -> list[str]:
    """STP and ANTT of each set without a partition, by number of antagonists."""
    table = results.system_over_mixes
    found = records(table[(table["partition"] == UNMANAGED) & table["metric"].isin([STP, ANTT])])
    keys = dict.fromkeys((row["set"], _size(row), row["platform"], row["machine"]) for row in found)
    lines = []
    for key in keys:
        own = [row for row in found if (row["set"], _size(row), row["platform"], row["machine"]) == key]
        several = key[1] is None
        if several and any(other[0] == key[0] and other[1] is not None for other in keys):
            continue  # programs add up: STP over mixes of two and of four is no number to quote
        lines.append("".join(_sentence(own)))
    return lines


def _sentence(own: list[Row]) -> Iterator[str]:
    first, size = own[0], _size(own[0])
    lacking = f" of {first['mixes_of']}" if first["mixes"] < first["mixes_of"] else ""
    mixes = "mix" if first["mixes"] == 1 else "mixes"
    beside = f" of a lead and {counted(size, 'antagonist')}" if size else ""
    values = " and ".join(f"{row['metric']} {_value(row, '', 2)}" for row in own)
    yield f"{first['mixes']}{lacking} {SETS[first['set']].format(mixes)}{beside}: {values} over these, between launches"
    if not math.isnan(first["all_value"]):
        more = " and ".join(f"{row['metric']} {_value(row, 'all_', 2)}" for row in own)
        yield f"; {more} over the {first['possible']} that could have been drawn, between mixes and launches"
    where = f", {first['machine']}" if first["machine"] else ""
    yield f" ({first['platform']}{where}){BIASED if first['possibly_biased'] else ''}."


def _value(row: Row, prefix: str, digits: int) -> str:
    found = Quantity.made((row[f"{prefix}{end}"] for end in ("value", "low", "high")), digits=digits)
    return "" if math.isnan(found.value) else str(found)


def _size(row: Row) -> int | None:
    return None if pd.isna(row["antagonists"]) else int(row["antagonists"])
