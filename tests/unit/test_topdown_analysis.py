"""Top-Down shares alone and beside antagonists: the differences are those that were put in, and are in the picture."""

import numpy as np
import pytest

from castmates.analysis.explanations.counted_metrics import CHANGES, SHARES, topdown_tables, why_none
from castmates.report.figures import topdown
from castmates.report.results import read_results
from castmates.results.columns.launch import TOPDOWN, WINDOWS
from castmates.results.columns.study import frame
from tests.unit.results_maker import make
from tests.unit.test_figures import texts
from tests.unit.topdown_maker import ALONE, add


def synthetic(folder, **more):
    """A study that is stamped as none that was measured."""
    keys = ("running", "smt", "why")
    made = make(folder / "synthetic", platform="modelled", **{key: one for key, one in more.items() if key not in keys})
    return read_results(add(made, **{key: one for key, one in more.items() if key in keys}))


def by(table, **keys):
    for key, value in keys.items():
        table = table[table[key] == value]
    return table


def test_the_change_that_was_put_in_is_found_with_an_interval_over_launches(tmp_path):
    results = synthetic(tmp_path, leads=["dlrm-train"], antagonists=["stream", "compute"])
    found = topdown_tables(results.launch_table("topdown"), results.windows)[1]
    assert list(found.columns) == list(CHANGES)
    backend = by(found, metric="Backend_Bound").set_index("mix")
    assert backend.loc["dlrm-train+compute", "points"] == pytest.approx(24, abs=1)
    assert backend.loc["dlrm-train+stream", "points"] == pytest.approx(8, abs=1)
    for row in backend.to_dict("records"):
        assert row["points_low"] < row["points"] < row["points_high"]
        assert row["points"] == pytest.approx(row["corun"] - row["alone"], abs=0.5)
    assert set(backend["launches"]) == {5}
    # What level 1 gains in one category it loses in the others.
    level1 = by(found, level=1).groupby("mix")["points"].sum()
    assert np.allclose(level1, 0, atol=1e-9)


def test_shares_add_up_and_stand_in_the_order_of_the_tree(tmp_path):
    results = synthetic(tmp_path, leads=["dlrm-train"], antagonists=["stream"], smt=0.05)
    found = topdown_tables(results.launch_table("topdown"), results.windows)[0]
    assert list(found.columns) == list(SHARES)
    assert np.allclose(by(found, level=1).groupby(["kind", "mix"])["share"].sum(), 100)
    alone = by(found, kind="alone", level=1)
    assert list(alone["metric"]) == ["Frontend_Bound", "Bad_Speculation", "Retiring", "Backend_Bound"]
    assert list(alone["share"]) == pytest.approx([100 * ALONE[name] for name in alone["metric"]], abs=0.5)
    assert "SMT_Contention" in set(by(found, kind="corun")["metric"])
    assert set(by(found, metric="DRAM_Bound")["parent"]) == {"Memory_Bound"}


def windows(rows):
    base = {"study": "s", "cohort": "c", "mix": "", "partition": "unmanaged", "workload": "l", "role": "lead",
            "member": "l@0", "valid": True, "platform": "modelled", "kind": "alone"}  # fmt: skip
    columns = {name: kind for name, kind in WINDOWS.items() if name in base or name in ("launch", "window", "round")}
    return frame([base | row for row in rows], columns)


def counted(rows):
    names = dict.fromkeys(("scene", "scope", "source", "phase", "note"), "")
    base = names | {"study": "s", "cohort": "c", "member": "l@0", "level": 1, "metric": "Retiring"}
    base |= {"running": 1.0, "status": "counted", "platform": "modelled"}
    return frame([base | row for row in rows], TOPDOWN)


def pair(launch, number, alone, corun, valid=True):
    place = {"launch": launch, "round": number}
    corun_edge = {"window": 2 * number, "kind": "corun", "mix": "l+a", "valid": valid}
    edges = [place | {"window": 2 * number - 1}, place | corun_edge]
    values = [place | {"window": edge["window"], "value": one} for edge, one in zip(edges, (alone, corun), strict=True)]
    return edges, values


def test_pairs_are_of_the_same_round_and_of_valid_windows():
    made = [pair(1, 1, 0.5, 0.4), pair(1, 2, 0.6, 0.3), pair(1, 3, 0.9, 0.1, valid=False), pair(2, 1, 0.5, 0.5)]
    edges = [edge for one, _ in made for edge in one]
    values = [value for _, one in made for value in one]
    values.append({"launch": 2, "round": 4, "window": 9, "value": 0.7})  # its window is not known
    (row,) = topdown_tables(counted(values), windows(edges))[1].to_dict("records")
    assert row["points"] == pytest.approx((-20 + 0) / 2)  # the mean of the launches' means
    assert (row["launches"], row["rounds"]) == (2, 3)
    assert np.isnan(row["points_low"])


@pytest.mark.parametrize("running", [0.94, 0.96])
def test_a_share_that_was_counted_for_part_of_the_time_is_shown_and_in_no_difference(running):
    edges, values = pair(1, 1, 0.5, 0.4)
    values[0] |= {"status": "scaled", "running": running}
    assert topdown_tables(counted(values), windows(edges))[1].empty == (running < 0.95)
    assert list(topdown_tables(counted(values), windows(edges))[0]["running"]) == [running, 1.0]


def test_what_has_no_value_is_no_zero():
    edges, values = pair(1, 1, 0.5, float("nan"))
    values[1] |= {"status": "not counted", "note": "perf stat: it ended"}
    values[0]["value"] = 0.0
    assert topdown_tables(counted(values), windows(edges))[1].empty
    (row,) = topdown_tables(counted(values), windows(edges))[0].to_dict("records")
    assert (row["share"], row["kind"]) == (0.0, "alone")
    assert why_none(counted(values), windows(edges)) == ("not counted", "perf stat: it ended")
    assert why_none(counted([]), windows([])) == ("", "")
    assert topdown_tables(counted([]), windows([]))[0].empty


def test_phases_are_kept_apart():
    edges, values = pair(1, 1, 0.5, 0.4)
    phases = [value | {"phase": name, "value": value["value"] / 2} for value in values for name in ("forward",)]
    found = topdown_tables(counted(values + phases), windows(edges))[1]
    assert [(row["phase"], round(row["points"], 6)) for row in found.to_dict("records")] == [("", -10), ("forward", -5)]


@pytest.mark.parametrize("launches", [1, 3])
def test_the_picture_is_stamped_and_names_what_changed_most(tmp_path, launches):
    results = synthetic(tmp_path, leads=["dlrm-train"], antagonists=["stream", "compute"], launches=launches)
    figure, source = topdown.draw(results)
    said = " ".join(texts(figure))
    assert "not measured" in said
    row = by(source, metric="Backend_Bound", mix="dlrm-train+compute").iloc[0]
    low, high = ("points_low", "points_high") if launches == 3 else ("within_low", "within_high")
    assert f"Backend Bound +{row['points']:.1f} [{row[low]:.1f}, {row[high]:.1f}]" in said
    assert "Memory Bound +" in said
    assert f"dlrm-train beside compute: Backend Bound +{row['points']:.1f}" in topdown.alternative(results)
    assert topdown.caption(results).startswith("Where the issue slots")


def test_where_nothing_was_counted_the_picture_says_why(tmp_path):
    results = synthetic(
        tmp_path, leads=["dlrm-train"], launches=1, why="perf 6.1.187 knows no Top-Down metrics of this processor"
    )
    figure, source = topdown.draw(results)
    assert source.empty
    said = " ".join(" ".join(texts(figure)).split())
    assert "Top-Down is not supported here: perf 6.1.187 knows no Top-Down metrics of this processor." in said


def test_shares_that_were_counted_for_part_of_the_time_are_pale(tmp_path):
    figure, source = topdown.draw(
        synthetic(tmp_path, leads=["dlrm-train"], antagonists=["stream"], launches=1, running=0.3)
    )
    assert set(source["running"]) == {0.3}
    bars = [patch for patch in figure.axes[0].patches if patch.get_hatch() is None]
    assert {bar.get_alpha() for bar in bars} == {0.5}
    assert "points" not in source  # no difference is formed of them
    assert "pale: counted for part of the time" in " ".join(" ".join(texts(figure)).split())
