"""What members used, and what power did: rows of the page's tables, and sentences for what was not measured."""

from typing import Any

from castmates.analysis.explanations.counted_metrics import GHZ, IPC, PER_1000
from castmates.analysis.explanations.power import (
    AT_EDGES,
    CONTROLLERS,
    CPU_CLOCK,
    EVENTS,
    OF_GPUS,
    PACKAGE_POWER,
    PACKAGES,
    POWER,
    SEEN_BY_MBM,
    UNCORE,
)
from castmates.analysis.explanations.resources import BANDWIDTH, LEVEL_1, MEMBER, OCCUPANCY
from castmates.report.results import Results, records
from castmates.report.text.words import Quantity, listed
from castmates.study.capabilities import EVENTS as EVENTS_COUNTED
from castmates.study.capabilities import MONITOR, PROGRAMS, TOPDOWN

# Unit of the table -> what the page divides by, what it calls it, and how many decimals it shows.
SHOWN = {
    "bytes": (2**20, "MiB", 2),
    "bytes per second": (1e9, "GB/s", 2),
    "per cent of slots": (1.0, "% of slots", 1),
    "GHz": (1.0, "GHz", 3),
    "W": (1.0, "W", 1),
    "per cent": (1.0, "%", 1),
    "per second": (1.0, "per second", 2),
    "": (1.0, "", 3),
}
POINTS = {"per cent of slots": "points", "per cent": "points"}  # of a difference; elsewhere it has the metric's unit
FROM_TO = (0.8, 1.2)  # MBM over the controllers' traffic: outside of it the two do not show the same
Row = dict[str, Any]


def rows(results: Results) -> list[Row]:
    """A row per co-run, member and metric of what members used."""
    return [row for row in _rows(results) if row["metric"] not in POWER]


def power_rows(results: Results) -> list[Row]:
    """A row per scene, member or package, and metric of clocks, energy and memory controllers."""
    return [row for row in _rows(results) if row["metric"] in POWER]


def lacking(results: Results) -> str:
    """Which of the metrics that it asks for no window of this study has; "" where it has all."""
    metrics = set(results.resources["metric"])
    parts = [name for name in (OCCUPANCY, BANDWIDTH) if name not in metrics and results.asks(MONITOR)]
    if results.asks(EVENTS_COUNTED):
        parts += [] if IPC in metrics else [IPC]
        parts += [] if any(name.endswith(PER_1000) for name in metrics) else ["cache misses per 1000 instructions"]
    parts += ["level 1 of Top-Down"] if not metrics & set(LEVEL_1) and results.asks(TOPDOWN) else []
    return f"Not measured here in any co-run and its baseline: {listed(parts)}." if parts else ""


def lacking_power(results: Results) -> str:
    """What would be the evidence for a busy antagonist and was not measured; "" where there is all of it."""
    if not results.asks(PROGRAMS):
        return ""
    metrics = set(results.resources["metric"])
    clocks = {GHZ, CPU_CLOCK, AT_EDGES}
    parts = [] if metrics & clocks else ["the clock while running (cycles over task-clock, APERF over MPERF)"]
    parts += [] if PACKAGE_POWER in metrics else ["the packages' energy (RAPL)"]
    parts += [] if UNCORE in metrics else ["the uncore clock"]
    parts += [] if metrics & set(EVENTS) else ["throttle events"]
    parts += [] if CONTROLLERS in metrics else ["the memory controllers' traffic"]
    if not parts:
        return ""
    proof = (
        ""
        if metrics & (set(POWER) - set(OF_GPUS))
        else " What the part “busy antagonist” is due to is therefore not proved here."
    )
    return f"Not measured here: {listed(parts)}.{proof}"


def mbm_check(results: Results) -> str:
    """Whether the cache's monitor and the memory controllers saw the same traffic; "" where one of them is missing."""
    shares = [row["value"] for row in records(results.resources) if row["metric"] == SEEN_BY_MBM]
    if not shares:
        return ""
    low, high = min(shares), max(shares)
    seen = f"{100 * low:.0f} to {100 * high:.0f} %" if f"{low:.2f}" != f"{high:.2f}" else f"{100 * low:.0f} %"
    words = f"MBM of all groups, the default group included, came to {seen} of what the memory controllers moved."
    if FROM_TO[0] <= low and high <= FROM_TO[1]:
        return f"{words} The two agree."
    return (
        f"{words} They do not show the same: controllers also serve devices and other packages, and vendors "
        "count writes back differently. Rely on MBM for comparisons on this machine only."
    )


def _rows(results: Results) -> list[Row]:
    return [row | _texts(row) | _whose(row) for row in records(results.resources)]


def _whose(row: Row) -> Row:
    """In whose name a row stands."""
    of_all = "the launch's packages" if row["scope"] == PACKAGES else row["scope"]
    is_member = row["scope"] == MEMBER
    return {"whose": row["member"] if is_member else of_all, "is_member": is_member}


def _prefixed(joules: float) -> tuple[float, str, int]:
    """What to divide by, and the unit, in which the number has a digit before its point: work comes in any size."""
    prefixes = {1.0: "J", 1e-3: "mJ", 1e-6: "µJ", 1e-9: "nJ"}
    size = next((size for size in prefixes if joules >= size), min(prefixes))
    return size, prefixes[size], 2


def _texts(row: Row) -> Row:
    size, name, digits = _prefixed(row["value"]) if row["unit"] == "J" else SHOWN[row["unit"]]
    if row["scale"] == "points":
        places = 1 if row["unit"] in POINTS else digits
        change = Quantity.of(row, "change", POINTS.get(row["unit"], name), places) / size
    else:
        change = Quantity.of(row, "change", digits=3)
    return {
        "unit_shown": name,
        "value_shown": Quantity.of(row, "value", digits=digits) / size,
        "baseline_shown": Quantity.of(row, "baseline_value", digits=digits, stem="baseline") / size,
        "change_shown": change,
        "times": "" if row["scale"] == "points" else "× ",
    }
