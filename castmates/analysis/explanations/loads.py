"""The table of services -> the highest load of each that keeps a limit on its latency, alone and with each antagonist.

The upper end of the latency's 95 % interval has to keep the limit. Loads are tried from the lowest on, and
the first that fails ends it: so a load whose true latency exceeds the limit is named no more often than the upper end
of one interval lies below the truth, however many loads were tried. That is in 2.5 % of studies where the logarithms
of launches are normal, and in up to 6 % of those of simulated queues, whose slow launches differ more than quick ones.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from castmates.results.columns.services import LOADS
from castmates.results.columns.study import frame

INTERPOLATED = "interpolated"
_PLACE = ["service", "antagonists", "partition", "platform", "machine"]
_KINDS = ("alone", "corun")
Row = Mapping[Hashable, Any]


def loads(services: pd.DataFrame, latency_limits: Mapping[str, float]) -> pd.DataFrame:
    """A row per service, antagonists, partition and limit; limits are in ms, by quantile."""
    leads = services[(services["role"] == "lead") & services["kind"].isin(_KINDS)]
    rows = [
        {"study": own["study"].iloc[0], "quantile": quantile, "limit_ms": limit}
        | dict(zip(_PLACE, place, strict=True))
        | _highest(own.sort_values("load").to_dict("records"), quantile, limit)
        for place, own in leads.groupby(_PLACE, sort=False)
        for quantile, limit in latency_limits.items()
    ]
    return frame(rows, LOADS)


def _highest(rows: list[dict[Hashable, Any]], quantile: str, limit: float) -> dict[str, object]:
    """What is found of one service beside one antagonist; rows are its loads from the lowest on."""
    high = f"{quantile}_ms_high"
    count = next((number for number, row in enumerate(rows) if not _keeps(row, high, limit)), len(rows))
    best, after = rows[count - 1] if count else None, rows[count] if count < len(rows) else None
    found: dict[str, object] = {
        "load": best["load"] if best else math.nan,
        "load_ms": best[f"{quantile}_ms"] if best else math.nan,
        "load_ms_high": best[high] if best else math.nan,
        "interpolated": math.nan,
        "next_load": after["load"] if after else math.nan,
        "next_ms_high": after[high] if after else math.nan,
        "next_saturated": bool(after and after["saturated"]),
        "source": "",
        "why": _why(best, after, high),
        "launches": int(best["launches"]) if best else 0,
    }
    if best and after and not after["saturated"] and after[high] > limit:
        found |= {"interpolated": _between(best, after, high, limit), "source": INTERPOLATED}
    return found


def _keeps(row: Row, high: str, limit: float) -> bool:
    return not row["saturated"] and row[high] <= limit  # NaN keeps nothing


def _between(best: Row, after: Row, high: str, limit: float) -> float:
    """Where a straight line between the two upper ends reaches the limit, all of it on scales of logarithms.

    Latencies bend upwards with the load, so that the line lies above them, and the load is rather too low.
    """
    share = math.log(limit / best[high]) / math.log(after[high] / best[high])
    return float(best["load"] * (after["load"] / best["load"]) ** share)


def _why(best: Row | None, after: Row | None, high: str) -> str:
    if after is None:
        return "every load that was measured keeps the limit"
    what = "the lowest load that was measured" if best is None else "the next higher one"
    if after["saturated"]:
        return f"{what} saturates the service"
    if math.isnan(after[high]):
        return f"{what} has no interval: it takes three launches, and enough requests that were answered"
    return f"{what} exceeds the limit" if best is None else ""
