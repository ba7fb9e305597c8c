"""The health panel shows what was recorded, the worst first; what was not recorded is not zero. Synthetic results."""

import json
import math

import pandas as pd
import pytest

from castmates.report.figures import health
from castmates.report.results import read_results
from castmates.results.columns.launch import SAMPLES
from castmates.results.columns.study import frame
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "study", leads=["a"], antagonists=["b"], launches=3)


def sampled(folder, *values):
    """A sample of (subject, metric, value) in window 1 of every launch."""
    for place in folder.glob("launches/*/*"):
        head = {"study": "study", "cohort": place.parent.name, "launch": int(place.name), "window": 1, "t_ns": 1,
                "source": "x", "note": "", "platform": "measured"}  # fmt: skip
        rows = [head | {"subject": who, "metric": metric, "value": value} for who, metric, value in values]
        frame(rows, SAMPLES).to_parquet(place / "samples.parquet")
    return read_results(folder)


def of(results, panel, what):
    rows = health.rows(results)
    return rows[(rows["panel"] == panel) & (rows["what"] == what)]["value"].tolist()


def test_shares_are_of_all_windows_and_a_window_may_have_several_reasons(folder):
    results = read_results(folder)
    windows = results.windows
    windows["valid"], windows["reason_kinds"] = True, ""
    windows.loc[windows.index[:3], ["valid", "reason_kinds"]] = [False, "steal; not settled"]
    windows.loc[windows.index[3], ["valid", "reason_kinds"]] = [False, "steal"]
    count = len(windows.drop_duplicates(["cohort", "launch", "window"]))
    assert of(results, health.REJECTED, health.ALL) == [pytest.approx(400 / count)]
    assert of(results, health.REJECTED, "steal") == [pytest.approx(400 / count)]
    assert of(results, health.REJECTED, "not settled") == [pytest.approx(300 / count)]


def test_what_was_taken_is_a_share_of_the_seconds_that_windows_were_open(folder):
    values = [("cpu0", "steal_s", 0.3), ("cpu1", "steal_s", 0.1), ("cpu0", "foreign_s", 0.5), ("host", "coolers", 0.0)]
    results = sampled(folder, *values, ("a", "running_share", 0.8), ("b", "running_share", 1.0))
    seconds = results.windows.query("launch == 1").drop_duplicates("window")
    opened = float(seconds["open_s"].sum())
    assert of(results, health.LAUNCHES, health.STOLEN) == [pytest.approx(100 * 0.2 / opened)] * 3
    assert of(results, health.LAUNCHES, health.TAKEN) == [pytest.approx(50 / opened)] * 3
    assert of(results, health.LAUNCHES, health.HOT) == [0.0] * 3
    assert of(results, health.COUNTED, "the least") == [pytest.approx(80)]
    assert of(results, health.COUNTED, "the median") == [pytest.approx(90)]


def test_the_course_after_a_change_is_the_mean_of_the_launches_that_have_one(folder):
    places = sorted(folder.glob("launches/*/*/launch.json"))
    for place, response in zip(places, [[0.0, -0.04, None], [None, -0.02, 0.0]], strict=False):
        record = json.loads(place.read_text())
        (lead,) = (one["name"] for one in record["spec"]["cohort"]["members"] if one["role"] == "lead")
        record["settle"] = {"seconds": 0.02, "watched": 0.06, "response": {lead: response, "b@1": [1.0] * 3}}
        place.write_text(json.dumps(record))
    results = read_results(folder)
    rows = health.rows(results).query("panel == @health.SETTLING")
    assert rows["place"].tolist() == pytest.approx([10, 30, 50])
    assert rows["value"].tolist() == pytest.approx([0, 100 * math.expm1(-0.03), 0])
    assert rows["verdict"].tolist() == [health.LEFT_OUT, "", ""]
    assert set(rows["launches"]) == {2}
    assert "After a switch: a −2.96" in health.alternative(results)
    assert any(axes.get_title("left") == health.SETTLING for axes in health.draw(results)[0].axes)


def test_curves_of_slices_of_several_lengths_are_averaged_at_the_same_time(folder):
    """A launch whose slices became longer has its first curve too, and one that never learned counts beside it."""
    places = sorted(folder.glob("launches/*/*/launch.json"))
    for place, earlier in zip(places[:2], (True, False), strict=True):
        record = json.loads(place.read_text())
        (lead,) = (one["name"] for one in record["spec"]["cohort"]["members"] if one["role"] == "lead")
        short = {"watched": 0.06, "curves": {lead: 3}, "response": {lead: [-0.1, -0.04, 0.0]}}
        long = {"watched": 0.12, "curves": {lead: 1}, "response": {lead: [-0.06, 0.02, 0.0]}}
        record["settle"] = {"seconds": 0.02, **(long | {"earlier": [short]} if earlier else short)}
        place.write_text(json.dumps(record))
    rows = health.rows(read_results(folder)).query("panel == @health.SETTLING")
    assert rows["place"].tolist() == pytest.approx([10, 30, 50, 70, 90, 110])
    mean = [(-0.1 * 6 - 0.06) / 7, (-0.04 * 6 - 0.06) / 7, 0.02 / 7, 0.02, 0.0, 0.0]
    assert rows["value"].tolist() == pytest.approx([100 * math.expm1(log) for log in mean])


def told(results):
    figure, _ = health.draw(results)
    titles = [axes.get_title("left") for axes in figure.axes]
    words = [" ".join(text.get_text().split()) for text in figure.texts]
    return [*titles, "", *words, "", health.caption(results), health.alternative(results)]


def test_what_failed_what_was_not_recorded_and_what_shows_nothing_is_said(folder, tmp_path):
    quiet = sampled(make(tmp_path / "quiet", leads=["a"], antagonists=["b"], launches=3),
                    ("a", "running_share", 1.0), ("cpu0", "steal_s", 0.1))  # fmt: skip
    quiet.windows["valid"], quiet.windows["reason_kinds"] = True, ""
    studies = {
        "not recorded": read_results(folder),
        "nothing was rejected": quiet,
        "two of five failed": read_results(
            make(tmp_path / "some", leads=["a"], antagonists=["b"], launches=5, failed=2)
        ),
        "all failed": read_results(make(tmp_path / "none", leads=["a"], antagonists=["b"], launches=1, failed=1)),
    }
    assert_as_before("health-figure", {name: told(results) for name, results in studies.items()})
    assert not {health.COUNTED, health.COSTS} & set(health.draw(studies["not recorded"])[1]["panel"])
    assert {health.REJECTED, health.COUNTED} <= set(health.draw(quiet)[1]["panel"])


def test_samples_of_at_most_a_hundred_launches_are_read(folder):
    results = read_results(folder)
    row = results.launches.iloc[[0]]
    many = pd.concat([row.assign(launch=number) for number in range(1, 301)], ignore_index=True)
    object.__setattr__(results, "launches", many)
    chosen = health.looked_at(results)
    assert len(chosen) == len(set(chosen)) == health.LOOKED_AT
    assert [chosen[0][1], chosen[-1][1]] == [1, 300]
