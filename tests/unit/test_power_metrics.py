"""Clocks, throttling, energy and memory controllers: each scene against its baseline; truths by hand."""

from dataclasses import replace

import numpy as np
import pytest

from castmates.analysis.explanations.counted_metrics import GHZ
from castmates.analysis.explanations.power import (
    CONTROLLERS,
    ENERGY,
    FOREIGN,
    PACKAGE_POWER,
    SEEN_BY_MBM,
    THROTTLED,
    WITHOUT_ID,
)
from castmates.analysis.explanations.resources import NEEDED, resources
from castmates.report.results import Results
from castmates.report.text import design
from castmates.report.text import resources as on_page
from castmates.results.columns.launch import LAUNCH_TABLES
from castmates.results.columns.study import RESOURCES, frame
from tests.unit.snapshots import assert_as_before
from tests.unit.windows_maker import cohort, mix, plan, slices_of, written

PLAN = plan([cohort("c", mix("bert@0.2", "stream@1"))], launches=3)
WINDOWS = written(PLAN, lambda *_: 10.0, rounds=2)
WATCHED = slices_of(WINDOWS)  # each is open for a second
KEYS = ("study", "cohort", "launch", "window", "round", "scene", "platform")


def found(kind, rows_of, of_members=True, windows=WINDOWS):
    """The table, of rows that this function gives for every window, or once for all members of a window."""
    source = windows if of_members else windows.drop_duplicates(["launch", "window"])
    rows = [
        {name: row[name] for name in KEYS} | {"member": row["member"], "subject": row["member"]} | one
        for row in source.to_dict("records")
        for one in rows_of(row)
    ]
    filled = {kind: frame(rows, LAUNCH_TABLES[kind]), "slices": WATCHED}
    part = {name: filled.get(name, frame([], LAUNCH_TABLES[name]))[columns] for name, columns in NEEDED.items()}
    return resources(PLAN, windows, [part])


def row_of(table, **wanted):
    chosen = table
    for name, value in wanted.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1, (wanted, chosen)
    return chosen.iloc[0]


def is_busy(row):
    return row["kind"] in ("corun", "placebo")


def counted(row, **changed):
    """Cycles and time on a CPU: 3 GHz alone, 2.4 beside an antagonist, 2 beside one that uses memory."""
    ghz = {"corun": 2.0, "placebo": 2.4}.get(row["kind"], 3.0)
    usual = {"source": "perf_event_open", "phase": "", "status": "counted", "running": 1.0, "scope": "thread"} | changed
    return [usual | {"event": "cycles", "value": ghz * 5e8}, usual | {"event": "task-clock", "value": 5e8}]


def clocks_of_cpus(row):
    """Weighed by the time that they ran: of the lead's CPUs 0.9 and 0.1 s."""
    clock = {"source": "busy_clock", "t_ns": 5}
    fast, slow = (2.0, 1.0) if is_busy(row) else (3.0, 1.0)
    return [
        clock | {"subject": f"cpu{cpu}", "metric": metric, "value": value}
        for cpu, ghz, seconds in ((0, fast, 0.9), (2, slow, 0.1), (1, 4.0, 1.0), (7, 9.0, 1.0))
        for metric, value in (("busy_ghz", ghz), ("unhalted_s", seconds))
    ]


def frequencies(row):
    """The driver's at the edges counts, and a nominal one does not."""
    clock = {"source": "frequency", "metric": "frequency_mhz"}
    mhz = 2000.0 if is_busy(row) else 3000.0
    return [
        clock | {"t_ns": t, "subject": f"cpu{cpu}", "value": mhz + t, "note": note}
        for t in (0, 200)
        for cpu, note in ((0, "scaling_cur_freq"), (1, "/proc/cpuinfo, in a guest often the nominal one"))
    ]


def gpus(row):
    """Beside an antagonist the GPU waits for its host: half as busy, at 150 instead of 200 W; a reading is missing."""
    busy, watts = (40.0, 150.0) if row["kind"] == "corun" else (80.0, 200.0)
    mine = {"source": "gpu", "subject": "gpu0"}
    return [
        *(mine | {"t_ns": t, "metric": "gpu_utilisation", "value": busy + more} for t, more in ((1, -10), (2, 10))),
        *(mine | {"t_ns": t, "metric": "gpu_held_down", "value": value} for t, value in ((1, 0.0), (2, 1.0))),
        mine | {"t_ns": 2, "metric": "gpu_mean_w", "value": watts},
        mine | {"t_ns": 1, "metric": "gpu_sm_ghz", "value": 1.5},
        mine | {"t_ns": 2, "metric": "gpu_sm_ghz", "value": None},
    ]


def test_tables_of_clocks_power_and_gpus():
    """Cycles over the time on a CPU; packages and GPUs in no member's name; throttling by its difference."""
    tables = {"cycles": found("counters", counted)}
    for readings in (clocks_of_cpus, frequencies, packages, gpus):
        tables[readings.__name__] = found("samples", readings, of_members=False)
    text = ("member", "role", "scope", "metric", "unit", "scene", "baseline", "scale", "launches", "rounds")
    numbers = ("value", "baseline_value", "change")
    assert_as_before("power-tables", {
        name: [" | ".join([*(str(row[at]) for at in text), *(f"{row[at]:.6g}" for at in numbers)])
               for row in table.to_dict("records")]
        for name, table in tables.items()
    })  # fmt: skip


@pytest.mark.parametrize("changed", [{"scope": "cpu"}, {"note": "user mode only"}])
def test_a_cpus_own_time_and_cycles_of_user_mode_give_no_clock(changed):
    """The task-clock of a whole CPU runs on while it sleeps; without the kernel's cycles the clock would be too low."""
    assert GHZ not in set(found("counters", lambda row: counted(row, **changed))["metric"])


def packages(row):
    """Two packages; beside an antagonist the first draws twice as much, and its controllers move four times as much."""
    more = 4 if row["kind"] == "corun" else 2 if row["kind"] == "placebo" else 1
    mine = {"source": "package", "t_ns": 5, "subject": "package0"}
    return [
        mine | {"metric": "package_w", "value": 60.0 * min(more, 2)},
        mine | {"metric": "memory_read", "value": 3e9 * more},
        mine | {"metric": "memory_written", "value": 1e9 * more},
        mine | {"metric": "package_throttles", "source": "throttling", "value": 6.0 if is_busy(row) else 0.0},
        mine | {"subject": "package1", "metric": "package_w", "value": 40.0},
        {"source": "throttling", "t_ns": 5, "subject": "cpu0", "metric": "core_throttles", "value": 1.0 * is_busy(row)},
        {"source": "throttling", "t_ns": 5, "subject": "cpu2", "metric": "core_throttles", "value": 2.0 * is_busy(row)},
        {"source": "foreign traffic", "t_ns": 5, "subject": "host", "metric": "foreign_traffic", "value": 0.4e9 * more},
        *(
            {"source": "resctrl", "t_ns": t, "subject": who, "metric": "mbm_total", "value": value * more}
            for t, share in ((1, 0.5), (10**9, 1.5), (2 * 10**9, 99.0))
            for who, value in (("bert@0.2", 1e9 * share), ("stream@1", 1.6e9 * share), ("bert@0.2 l3:0", 1e9 * share))
        ),
    ]


EVERY = ("corun", "placebo")
BOTH = {(SEEN_BY_MBM, "packages"), (WITHOUT_ID, "packages")}  # of monitor and controllers


@pytest.mark.parametrize(
    ("subject", "metric", "gone", "scenes"),
    [
        ("package0", "memory_written", {(CONTROLLERS, "package 0"), *BOTH}, EVERY),
        ("stream@1", "mbm_total", {*BOTH}, EVERY[:1]),  # where it runs
        ("host", "foreign_traffic", {(FOREIGN, "packages"), *BOTH}, EVERY),
        ("cpu2", "core_throttles", {(THROTTLED, "member")}, EVERY),
        ("package1", "package_w", {(PACKAGE_POWER, "package 1"), (ENERGY, "packages")}, EVERY),
    ],
)
def test_a_sum_of_which_a_part_is_not_known_is_not_known(subject, metric, gone, scenes):
    """Missing parts counted as none: what controllers had read alone stood for what they had moved."""

    def lacking(row):
        for one in packages(row):
            is_missing = (one["subject"], one["metric"]) == (subject, metric)
            yield one | {"value": np.nan} if is_missing else one

    def absent(row):
        return [one for one in packages(row) if (one["subject"], one["metric"]) != (subject, metric)]

    # A CPU or package without a sample has no such counter; all others have a sample of what is not known.
    for made in (lacking,) if metric in ("core_throttles", "package_w") else (lacking, absent):
        whole, table = (found("samples", each, of_members=False) for each in (packages, made))
        keys = ("metric", "scope", "scene")
        before, after = ({*zip(*(each[key] for key in keys), strict=True)} for each in (whole, table))
        assert before - after == {(*what, scene) for what in gone for scene in scenes}


def test_energy_is_that_of_all_packages_for_what_the_lead_did():
    """100 W alone, 160 W beside an antagonist; ten steps a second alone and eight beside it: 10 and 20 joules."""
    windows = written(PLAN, lambda _launch, _round, scene, _name: 8.0 if scene.startswith("corun") else 10.0, rounds=2)
    table = found("samples", packages, of_members=False, windows=windows)
    row = row_of(table, metric=ENERGY, scene="corun", baseline="alone")
    assert (row["value"], row["baseline_value"], row["change"]) == pytest.approx((20, 10, 2))
    assert (row["scope"], row["unit"], row["role"], row["member"]) == ("packages", "J", "package", "")
    shown = [each for each in on_page.power_rows(page_of(table)) if each["metric"] == ENERGY]
    assert {(each["value_shown"].number, each["unit_shown"]) for each in shown} >= {("20.00", "J")}
    small = on_page.power_rows(page_of(table.assign(value=table["value"] * 1e-7)))
    assert {each["unit_shown"] for each in small if each["metric"] == ENERGY} == {"µJ"}


def test_mbm_is_held_against_the_memory_controllers():
    table = found("samples", packages, of_members=False)
    share = row_of(table, metric=SEEN_BY_MBM, scene="corun", baseline="alone")
    assert (share["value"], share["unit"], share["scope"]) == (
        pytest.approx(0.75),
        "",
        "packages",
    )  # (1 + 1.6 + 0.4) / 4
    rest = row_of(table, metric=WITHOUT_ID, scene="corun", baseline="alone")
    assert (rest["value"], rest["baseline_value"], rest["unit"], rest["scale"], rest["scope"]) == (
        pytest.approx(4e9),  # of 16 GB/s
        pytest.approx(1e9),
        "bytes per second",
        "points",
        "packages",
    )
    agree = table.assign(value=np.where(table["metric"] == SEEN_BY_MBM, 0.95, 1.0))
    tables = {"75 %": table, "95 %": agree, "nothing": table[:0]}
    assert_as_before("mbm", {name: on_page.mbm_check(page_of(each)) for name, each in tables.items()})


def page_of(table):
    return Results(
        "synthetic", windows=WINDOWS,
        resources=table,
    )  # fmt: skip


def test_the_page_shows_power_apart_and_says_what_is_not_proved():
    table = found("samples", packages, of_members=False)
    assert {row["metric"] for row in on_page.rows(page_of(table))} == {"memory bandwidth"}
    rows = [
        " | ".join(str(part) for part in (row["metric"], row["whose"], row["scene"], row["baseline"],
                                          row["value_shown"].number, row["unit_shown"],
                                          row["times"] + row["change_shown"].amount))
        for row in on_page.power_rows(page_of(table))
    ]  # fmt: skip
    lacking = {name: on_page.lacking_power(page_of(each)) for name, each in (("some", table), ("all", table[:0]))}
    assert_as_before("power", {"rows": rows, **lacking})


def test_the_page_states_the_slices_and_what_short_ones_cannot_show():
    def used(*lengths):
        record = {"status": "measured", "pace": {"rounds": [{"round": 1, "slice": length} for length in lengths]}}
        return design.used(replace(page_of(frame([], RESOURCES)), recorded=(record,)))

    assert used(0.06, 0.075).startswith("Scenes took turns in slices of 60 to 75 ms. What builds up over seconds")
    assert used(30.0) == (
        "Scenes took turns in slices of 30 s. "
        "Within such slices, power limits and heat show in the scene that causes them."
    )
    assert design.used(page_of(frame([], RESOURCES))) == ""
