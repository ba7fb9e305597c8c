"""What members used: readings inside windows, counts and slots, each co-run against its baseline; truths by hand."""

import numpy as np
import pytest
from scipy import stats

from castmates.analysis.explanations.resources import BANDWIDTH, NEEDED, OCCUPANCY, resources
from castmates.report.results import Results
from castmates.report.text import resources as on_page
from castmates.results.columns.launch import LAUNCH_TABLES
from castmates.results.columns.study import frame
from tests.unit.snapshots import assert_as_before
from tests.unit.windows_maker import cohort, mix, plan, slices_of, written

PLAN = plan([cohort("c", mix("bert@0", "stream@1"))], launches=3)
WINDOWS = written(PLAN, lambda *_: 10.0, rounds=2)
WATCHED = slices_of(WINDOWS)
WINDOWS["open_ns"] = -(10**10)  # other slices of the same window were open long before
MIB = 2**20


def tables(kind, rows_of):
    """One of a launch's tables, with the rows that this function gives for every window; the others are empty."""
    rows = [
        {name: row[name] for name in ("study", "cohort", "launch", "window", "round", "scene", "member", "platform")}
        | one
        for row in WINDOWS.to_dict("records")
        for one in rows_of(row)
    ]
    filled = {kind: frame([row | {"subject": row["member"]} for row in rows], LAUNCH_TABLES[kind]), "slices": WATCHED}
    return {name: filled.get(name, frame([], LAUNCH_TABLES[name]))[columns] for name, columns in NEEDED.items()}


def found(kind, rows_of):
    table = resources(PLAN, WINDOWS, [tables(kind, rows_of)])
    return table.set_index(["member", "metric"])


def corun(row):
    return row["kind"] == "corun"


def test_readings_count_while_the_watched_slice_was_open():
    def readings(row):
        held = (2 if corun(row) else 8) * MIB * (1 + 0.1 * row["launch"] * corun(row))
        usual = {"source": "resctrl", "metric": "llc_occupancy"}
        return [
            usual | {"t_ns": -5, "value": 1e12},  # while it settled
            *(
                usual | {"t_ns": t, "value": share * held} for t in (0, 5 * 10**8) for share in (0.25, 0.75)
            ),  # two caches
            *(usual | {"t_ns": 10**9, "value": value} for value in (np.nan, held)),  # one was not read
            usual | {"t_ns": 1, "metric": "mbm_total", "value": 3e9 if corun(row) else 1e9},
            {"t_ns": 1, "source": "procstat", "metric": "user_s", "value": 7.0},
        ]

    table = found("samples", readings)
    row = table.loc["bert@0", OCCUPANCY]
    logs = np.log([2 * MIB * factor for factor in (1.1, 1.2, 1.3)])
    low, high = stats.ttest_1samp(logs, 0).confidence_interval()
    assert (row["value"], row["value_low"], row["value_high"]) == pytest.approx(tuple(np.exp([logs.mean(), low, high])))
    assert (row["baseline_value"], row["baseline_low"], row["baseline"]) == pytest.approx((8 * MIB, 8 * MIB, "alone"))
    assert row["change_high"] == pytest.approx(np.exp(high) / (8 * MIB))
    assert (row["launches"], row["rounds"], row["scale"], row["unit"]) == (3, 6, "ratio", "bytes")
    assert table.loc[("stream@1", BANDWIDTH), "change"] == pytest.approx(3.0)
    assert table.loc[("stream@1", BANDWIDTH), "baseline"] == "alone"


def counts(row):
    """Twice the cycles and four times the misses beside an antagonist."""
    usual = {"source": "perf_event_open", "phase": "", "status": "counted", "running": 1.0}
    events = {"instructions": 1e9, "cycles": 1e9 * (1 + corun(row)), "LLC-load-misses": 1e6 * (1 + 3 * corun(row))}
    return [usual | {"event": event, "value": value} for event, value in events.items()]


def slots(row):
    """By points; a zero was counted, and what was counted for half of the time is in no difference."""
    usual = {"status": "counted", "phase": "", "level": 1, "running": 1.0}
    return [
        usual | {"metric": "Backend_Bound", "value": 0.5 if corun(row) else 0.2},
        usual | {"metric": "Retiring", "value": 0.0}, usual | {"metric": "Memory_Bound", "value": 0.1, "level": 2},
        usual | {"metric": "Frontend_Bound", "value": 0.1, "running": 0.5},
    ]  # fmt: skip


def occupied(_row):
    return [{"source": "pqos", "metric": "llc_occupancy", "t_ns": 1, "value": 3.0 * MIB}]


def test_tables_of_counts_slots_and_occupancy_and_what_the_page_says():
    told = {}
    for kind, rows_of in (("counters", counts), ("topdown", slots), ("samples", occupied)):
        table = found(kind, rows_of).reset_index()
        whole = Results("synthetic", windows=WINDOWS, resources=table)
        text = ("member", "metric", "scene", "baseline", "scale", "unit", "launches", "rounds")
        rows = [[*(str(row[at]) for at in text), *(f"{row[at]:.6g}" for at in ("value", "baseline_value", "change"))]
                for row in table.to_dict("records")]  # fmt: skip
        shown = [
            f"page: {row['value_shown']} {row['times']}{row['change_shown'].amount}" for row in on_page.rows(whole)
        ]
        told[kind] = [*map(" | ".join, rows), *shown, on_page.lacking(whole)]
    assert_as_before("resources", told)


def test_nothing_measured_is_no_row():
    none = {name: frame([], LAUNCH_TABLES[name])[columns] for name, columns in NEEDED.items()}
    assert resources(PLAN, WINDOWS, [none]).empty
    assert resources(PLAN, WINDOWS[:0], []).empty
    rejected = WINDOWS.assign(valid=False)
    read = tables("samples", lambda _: [{"source": "resctrl", "metric": "llc_occupancy", "t_ns": 1, "value": 1.0}])
    assert resources(PLAN, rejected, [read]).empty
