"""Step times by iteration: change points in simulated series with known changes, warm-up, and what is left out."""

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.explanations.evolution import Level, evolutions, points, step_times, warm_from
from castmates.analysis.statistics import change_points
from castmates.results.columns.launch import STEPS, WINDOWS
from castmates.results.columns.study import frame
from tests.unit.windows_maker import one_slice

SERIES = 200
needs_ruptures = pytest.mark.needs("ruptures")


def noise(rng: np.random.Generator, kind: str, groups: np.ndarray) -> np.ndarray:
    """Simulated: step times that vary by one per cent, with a memory, or with a level of each window's own."""
    n, white = len(groups), rng.standard_normal(len(groups))
    if kind == "windows":
        white += rng.standard_normal(groups.max() + 1)[groups]
    if kind == "memory":
        for place in range(1, n):
            white[place] = 0.6 * white[place - 1] + 0.8 * white[place]
    return 1 + 0.01 * white


@needs_ruptures
@pytest.mark.parametrize("kind", ["white", "memory", "windows"])
@pytest.mark.parametrize(("n", "windows"), [(60, 12), (240, 24)])
def test_false_alarms_stay_below_one_series_in_twenty(kind, n, windows):
    rng, groups = np.random.default_rng(7), np.arange(n) * windows // n
    alarms = sum(bool(change_points.find(noise(rng, kind, groups), groups)) for _ in range(SERIES))
    assert alarms <= 0.05 * SERIES


@needs_ruptures
@pytest.mark.parametrize("kind", ["white", "memory"])
def test_a_large_change_is_found_where_it_is(kind):
    rng, groups = np.random.default_rng(7), np.arange(240) * 24 // 240
    hits = 0
    for _ in range(50):
        values = noise(rng, kind, groups)
        values[80:] *= 1.06
        found = change_points.find(values, groups)
        hits += any(abs(place - 80) <= 5 for place in found)
    assert hits >= 45


@needs_ruptures
def test_one_slow_point_is_no_level():
    values = 1 + 0.01 * np.random.default_rng(3).standard_normal(100)
    values[50] = 3.0
    assert change_points.find(values, list(range(100))) == []


@needs_ruptures
def test_a_series_that_stands_still_has_a_change_only_where_it_moves():
    assert change_points.find(np.ones(100), list(range(100))) == []
    assert change_points.find(np.repeat([1.0, 2.0], 50), list(range(100))) == [50]


def launch(
    step_times_by_window: list[tuple[str, list[float]]], valid: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Synthetic tables of one launch: windows of scenes, one after the other, with these seconds for each step."""
    steps, windows, t_ns, units = [], [], 1_000_000_000, 0
    same = {"study": "s", "cohort": "c", "launch": 1, "member": "lead@0", "platform": "measured"}
    for number, (scene, seconds) in enumerate(step_times_by_window, start=1):
        for one in [0.0, *seconds]:
            t_ns, units = t_ns + round(one * 1e9), units + 1
            steps.append(same | {"window": number, "slice": number, "t_ns": t_ns, "units": units})
        windows.append(
            same | {"window": number, "scene": scene, "kind": scene.split(":")[0], "mix": "", "partition": "unmanaged",
                    "workload": "lead", "role": "lead", "valid": valid, "round": 1, "position": number, "beats": 1,
                    "open_ns": 0, "close_ns": 0} | one_slice(True)
        )  # fmt: skip
        t_ns, units = t_ns + 1_000_000_000, units + 5
    return frame(steps, STEPS), frame(windows, WINDOWS)


def test_a_step_lasts_from_one_heartbeat_to_the_next_inside_a_window():
    times = step_times(*launch([("alone", [0.1, 0.2, 0.1]), ("corun:x", [0.4, 0.4])]))
    assert times["seconds"].tolist() == pytest.approx([0.1, 0.2, 0.1, 0.4, 0.4])
    assert times["iteration"].tolist() == [2, 3, 4, 11, 12]
    assert times["relative"].tolist() == pytest.approx([1, 2, 1, 1, 1])


def test_no_step_spans_two_slices_of_a_window():
    steps, windows = launch([("alone", [0.1, 0.1, 7.0, 0.1, 9.0, 0.1])])
    times = step_times(steps.assign(slice=[1, 1, 1, 5, 5, 8, 8]), windows)
    assert times["seconds"].tolist() == pytest.approx([0.1] * 4)
    assert points(times)[["slice", "first", "last"]].to_numpy().tolist() == [[1, 2, 3], [5, 5, 5], [8, 7, 7]]


def test_several_units_between_two_heartbeats_share_the_time():
    steps, windows = launch([("alone", [0.1, 0.2])])
    steps["units"] = [10, 20, 60]
    assert step_times(steps, windows)["seconds"].tolist() == pytest.approx([0.01, 0.005])


def test_points_never_span_two_slices_and_hold_every_step():
    times = step_times(*launch([("alone", [0.1] * 7), ("corun:x", [0.1] * 2), ("alone", [0.1] * 9)]))
    found = points(times)
    assert found["slice"].tolist() == [1, 1, 2, 3, 3, 3]
    assert found[["first", "last"]].to_numpy().tolist() == [[2, 4], [5, 8], [15, 16], [23, 25], [26, 28], [29, 31]]


@needs_ruptures
def test_what_a_scene_costs_is_no_change_and_a_slow_begin_is_a_warm_up():
    rng = np.random.default_rng(5)

    def window(scene: str, slower: float) -> tuple[str, list[float]]:
        usual = 0.02 if scene == "alone" else 0.03
        return scene, (usual * slower * (1 + 0.01 * rng.standard_normal(40))).tolist()

    order = ["alone", "corun:x"] * 12
    steady = [window(scene, 1.0) for scene in order]
    (even,) = evolutions(step_times(*launch(steady)))
    assert (even.changes, even.warmed_up) == ([], False)
    slow = [window(scene, 1.2 if number < 6 else 1.0) for number, scene in enumerate(order)]
    (one,) = evolutions(step_times(*launch(slow)))
    assert len(one.changes) == 1
    assert one.warmed_up
    assert one.warm_from == one.changes[0]
    before, after = one.levels
    assert after.relative / before.relative == pytest.approx(1 / 1.2, abs=0.01)
    (rejected,) = evolutions(step_times(*launch(slow, valid=False)))
    assert rejected.levels == []
    assert "too few steps" in rejected.note


def test_a_launch_that_never_comes_to_rest_says_so():
    levels = [Level(1, 60, 1.5), Level(61, 100, 1.0)]
    assert warm_from(levels, np.repeat([1.5, 1.0], [60, 40])) is None
    assert warm_from(levels[1:], np.ones(40)) == 61


def test_without_ruptures_one_sentence_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(change_points, "find_spec", lambda _: None)
    (one,) = evolutions(step_times(*launch([("alone", [0.1] * 300)])))
    assert (one.levels, one.warm_from, one.note) == ([], None, change_points.MISSING)
    assert "ruptures" in change_points.MISSING
