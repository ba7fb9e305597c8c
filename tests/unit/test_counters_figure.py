"""Counts per unit of progress, co-run against alone: recovered from made-up tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.explanations.counted_metrics import IPC
from castmates.analysis.explanations.counters import counter_tables
from castmates.report.figures import counters
from castmates.report.results import Results
from castmates.results.columns.launch import COUNTERS, WINDOWS
from castmates.results.columns.study import frame
from castmates.results.folder import StudyFolder
from tests.unit.snapshots import assert_as_before
from tests.unit.windows_maker import one_slice

SECOND = 10**9
HEAD = {"study": "synthetic", "platform": "measured"}
# scene -> rate of the lead, and per step: instructions, cycles, misses
SCENES = {"alone": (100.0, 1e6, 1e6, 1e3), "corun:lead+beside": (50.0, 1e6, 2e6, 4e3)}


def made_up(launches=3, rounds=2, spoil=lambda row: row, seed=1):
    """Windows of a lead and what was counted in them; nothing here was measured."""
    dice, windows, counts, number = np.random.default_rng(seed), [], [], 0
    for launch in range(1, launches + 1):
        for one in range(1, rounds + 1):
            for scene, (rate, *per_step) in SCENES.items():
                number += 1
                place = HEAD | {"cohort": "lead-1", "launch": launch, "round": one, "window": number, "scene": scene}
                place |= {"member": "lead@0"}
                noise = float(np.exp(dice.normal(0, 0.001)))
                kind, _, mix = scene.partition(":")
                windows.append(
                    place | {"position": 1, "kind": kind, "mix": mix, "partition": "unmanaged", "workload": "lead"}
                    | {"role": "lead", "unit": "step", "open_ns": 0, "close_ns": 2 * SECOND, "beats": 9, "units": 1.0}
                    | {"rate": rate * noise, "valid": True, "reasons": ""} | one_slice(True) | {"open_s": 2.0}
                )  # fmt: skip
                values = dict(zip(("instructions", "cycles", "LLC-load-misses"), per_step, strict=True))
                for event, value in values.items():
                    row = {"event": event, "set": "basic", "value": value * 2 * rate * noise, "status": "counted"}
                    row |= {"running": 1.0, "scope": "cgroup", "source": "perf_event_open", "phase": "", "note": ""}
                    if row := spoil(place | row):
                        counts.append(row)
    return frame(counts, COUNTERS), frame(windows, WINDOWS)


def by_metric(table):
    return table.set_index("metric")["ratio"].to_dict()


def test_counts_are_held_against_the_work_that_was_done():
    table = counter_tables(*made_up())[0]
    assert by_metric(table) == pytest.approx(
        {"instructions": 1.0, "cycles": 2.0, "LLC-load-misses": 4.0, IPC: 0.5,
         "LLC-load-misses per 1000 instructions": 4.0}
    )  # fmt: skip
    row = table.set_index("metric").loc["LLC-load-misses"]
    assert (row["alone"], row["corun"], row["unit"]) == (pytest.approx(1e3), pytest.approx(4e3), "step")
    assert (row["launches"], row["rounds"], row["mix"]) == (3, 6, "lead+beside")
    assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
    assert table.set_index("metric").loc[IPC, "unit"] == ""
    assert np.isnan(counter_tables(*made_up(launches=2))[0]["ratio_low"]).all()


def test_only_what_was_counted_in_both_windows_of_a_round_is_compared():
    def second_turn(row):
        return row | ({"value": np.nan, "status": "not counted", "note": "its turn comes later"}
                      if row["event"] == "cycles" and row["round"] == 1 else {})  # fmt: skip

    table = counter_tables(*made_up(spoil=second_turn))[0].set_index("metric")
    assert table.loc["cycles", "rounds"] == 3
    assert table.loc["instructions", "rounds"] == 6
    assert table.loc[IPC, "ratio"] == pytest.approx(0.5)
    counts, windows = made_up()
    windows.loc[(windows["scene"] == "alone") & (windows["round"] == 1), "valid"] = False
    assert set(counter_tables(counts, windows)[0]["rounds"]) == {3}


def test_an_event_that_was_counted_twice_has_the_mean_and_a_share_that_is_not_known_spoils_none():
    counts, windows = made_up()
    twice = counts.assign(value=counts["value"] * np.where(counts["scene"] == "alone", 3, 1))
    halves = counter_tables(pd.concat([counts, twice], ignore_index=True).assign(running=np.nan), windows)[0]
    assert by_metric(halves)["cycles"] == pytest.approx(1.0)  # 2 over the mean of 1 and 3
    assert halves["rounds"].tolist() == counter_tables(counts, windows)[0]["rounds"].tolist()


def test_a_member_of_another_platform_is_another_member():
    counts, windows = made_up()
    elsewhere = counts["launch"] == 1
    moved = counts.assign(platform=counts["platform"].where(~elsewhere, "emulated"))
    assert set(counter_tables(moved, windows)[0]["launches"]) == {2}
    told = windows.assign(platform=windows["platform"].where(windows["launch"] != 1, "emulated"))
    found = counter_tables(moved, told)[0].set_index(["platform", "metric"])["launches"]
    assert (found["emulated", "cycles"], found["measured", "cycles"]) == (1, 2)


@pytest.mark.parametrize("running", [0.94, 0.96])
def test_what_was_counted_for_part_of_the_time_is_in_no_ratio(running):
    counts, windows = made_up(spoil=lambda row: row | {"status": "scaled", "running": running})
    assert counter_tables(counts, windows)[0].empty == (running < 0.95)
    lacking = counter_tables(counts, windows)[1]
    assert list(lacking["status"]) == (["scaled"] * 3 if running < 0.95 else [])


def test_zero_not_counted_and_not_supported_are_named_apart():
    def spoil(row):
        if row["event"] == "instructions":
            return row | {"value": 0.0}
        status = {"cycles": "not supported", "LLC-load-misses": "not counted"}[row["event"]]
        return row | {"value": np.nan, "status": status, "note": "for a reason"}

    counts, windows = made_up(spoil=spoil)
    assert counter_tables(counts, windows)[0].empty
    lacking = counter_tables(counts, windows)[1].set_index("event")
    assert lacking.loc["instructions"].tolist() == ["counted", "0 in every window"]
    assert lacking.loc["cycles"].tolist() == ["not supported", "for a reason"]
    assert lacking.loc["LLC-load-misses"].tolist() == ["not counted", "for a reason"]
    words = counters.lacking_words(lacking.reset_index())
    assert "instructions (0 in every window)" in words
    assert "cycles (not supported: for a reason)" in words


def results(tmp_path, counts, windows):
    folder = tmp_path / "launches/lead-1/1"
    folder.mkdir(parents=True)
    counts.to_parquet(folder / "counters.parquet", index=False)
    (folder / "launch.json").write_text("{}")
    return Results("synthetic", windows=windows, folder=StudyFolder(tmp_path))


def test_the_figure_shows_every_metric_and_names_what_was_not_counted(tmp_path):
    def spoil(row):
        missing = {"value": np.nan, "status": "not supported", "note": "no counter"}
        return row | (missing if row["event"] == "cycles" else {})

    found = results(tmp_path, *made_up(spoil=spoil))
    figure, source = counters.draw(found)
    texts = " ".join(text.get_text() for text in figure.texts)
    labels = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
    assert [label.split("\n")[0] for label in labels][:2] == ["instructions", "LLC-load-misses"]
    assert "alone 1 M per step" in labels[0]
    assert "not shown: cycles (not supported: no counter)" in texts.replace("\n", " ")
    assert source.loc[source["metric"] == "cycles", "reason"].tolist() == ["no counter"]
    assert "4 times alone" in counters.alternative(found)


def test_by_whom_and_in_which_mode_it_was_counted_is_said(tmp_path):
    def spoil(row):
        row = row | {"scope": "cpu" if row["launch"] == 1 else "thread"}
        return row | ({"note": "user mode only"} if row["event"] == "cycles" else {})

    found = results(tmp_path, *made_up(spoil=spoil))
    figure, source = counters.draw(found)
    said = "counted by CPU (whatever ran there) and thread, some events in user mode only"
    assert said in " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert set(source["scope"]) == {"cpu, thread"}
    modes = source.set_index("metric")["mode"]
    assert (modes["cycles"], modes[IPC], modes["instructions"]) == ("user mode only", "user mode only", "")
    assert counters.how_counted(counter_tables(*made_up())[0]) == "counted by control group"


def told(found):
    figure, _ = counters.draw(found)
    words = [" ".join(text.get_text().split()) for text in figure.texts]
    return [*words, "", counters.lacking(found), counters.alternative(found)]


def test_the_figure_says_why_where_nothing_or_time_alone_was_counted(tmp_path):
    missing = {"value": np.nan, "status": "not supported", "note": "no counter"}
    time_alone = made_up(spoil=lambda row: row | ({"event": "task-clock"} if row["event"] == "cycles" else missing))
    nothing, windows = made_up(spoil=lambda row: row | missing)
    studies = {
        "all": results(tmp_path / "all", *made_up()),
        "nothing could be counted": results(tmp_path / "nothing", nothing, windows),
        "nothing is there": results(tmp_path / "none", frame([], COUNTERS), windows),
        "time alone, which is the rate once more": results(tmp_path / "time", *time_alone),
    }
    assert_as_before("counters-figure", {name: told(found) for name, found in studies.items()})
    assert len(counters.draw(studies["nothing could be counted"])[1]) == 3


@pytest.mark.parametrize(
    ("value", "metric", "said"),
    [(1234.0, "", "1.23 k"), (999.9, "", "1 k"), (0.25, "", "0.25"), (1.5e9, "task-clock", "1.5 s"),
     (2.2e2, "task-clock", "220 ns"), (0.0, "", "0"), (3.2e13, "", "32 T")],
)  # fmt: skip
def test_amounts_are_read_without_counting_zeros(value, metric, said):
    assert counters.amount(value, metric) == said
