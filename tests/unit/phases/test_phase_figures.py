"""The figures `phases` and `evolution` show what the tables hold; the results are made up."""

import math
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.statistics import change_points
from castmates.report.figures import evolution, phases
from castmates.report.figures.texts import texts_for
from castmates.report.results import Results, read_results
from castmates.results.columns.launch import STEPS
from castmates.results.columns.study import frame
from tests.unit.results_maker import make

PARTS = {"input": 0.1, "forward": 0.4, "backward": 0.4}  # of a step alone; the rest of it is 0.1
FORWARD = 1.25  # times longer beside others

needs_ruptures = pytest.mark.needs("ruptures")


def results(
    folder, launches: int = 3, rounds: int = 4, warm_up: float = 1.0, antagonists: tuple[str, ...] = ("stream", "chase")
) -> Results:
    """Synthetic results whose lead reports phases, with one that is slower beside others, and a slow first round."""
    make(folder, leads=["dlrm-train"], antagonists=antagonists, launches=launches, rounds=rounds)
    windows = pd.read_parquet(folder / "tables" / "windows.parquet")
    windows["valid"] = True
    windows.to_parquet(folder / "tables" / "windows.parquet", index=False)
    rng = np.random.default_rng(3)
    for (cohort, launch), own in windows.groupby(["cohort", "launch"]):
        steps, units = [], 0
        for window in own.sort_values("window").to_dict("records"):
            t_ns = window["open_ns"]
            for place in range(40):
                step = 0.01 * (1 + 0.01 * rng.standard_normal()) * (warm_up if window["round"] == 1 else 1.0)
                spent = {name: share * step for name, share in PARTS.items()}
                spent["forward"] *= FORWARD if window["kind"] == "corun" else 1.0
                begin, t_ns = t_ns, t_ns + round(1e9 * (sum(spent.values()) + 0.1 * step))
                units += 1
                row = {key: window[key] for key in ("study", "cohort", "launch", "window", "member", "platform")}
                row |= {"t_ns": t_ns, "units": units, "begin_ns": begin if place else None, "slice": window["window"]}
                steps.append(row | ({f"{name}_s": one for name, one in spent.items()} if place else {}))
        table = frame(steps, dict(STEPS) | {f"{name}_s": "float64" for name in PARTS})
        table.to_parquet(folder / "launches" / str(cohort) / str(launch) / "steps.parquet", index=False)
    return read_results(folder)


def test_leads_that_do_not_fit_are_told_of(usual, monkeypatch):
    rows = phases.losses(usual)
    leads = [rows.assign(lead=f"lead-{number}") for number in range(8)]
    monkeypatch.setattr(phases, "losses", lambda _: pd.concat(leads, ignore_index=True))
    figure, _ = phases.draw(usual)
    assert sum(word.startswith("lead-") for word in texts(figure)) == 6
    assert any(word.startswith("2 more leads in the CSV") for word in texts(figure))


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")) if text.get_text()]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return results(tmp_path_factory.mktemp("results") / "study")


def test_the_figure_of_phases_says_which_loses(usual):
    figure, source = phases.draw(usual)
    found = source.set_index(["antagonists", "phase"])["loss_pct"]
    assert found["stream", "forward"] == pytest.approx(10, abs=0.5)
    assert found["stream", "backward"] == pytest.approx(0, abs=0.5)
    assert found["stream", "step"] == pytest.approx(10, abs=1)
    words = texts(figure)
    assert {"dlrm-train", "alone", "beside stream", "beside chase", "input", "forward", "rest"} <= set(words)
    assert "forward loses most, 10" in texts_for("phases", usual).alternative
    assert "Dashed" not in texts_for("phases", usual).caption


def test_with_two_launches_the_interval_is_the_one_within_launch_and_says_so(tmp_path):
    told = results(tmp_path / "study", launches=2)
    figure, source = phases.draw(told)
    assert source["loss_low"].isna().all()
    assert source["within_low"].notna().all()
    assert "Dashed: within launch" in texts_for("phases", told).caption
    assert any(line.get_linestyle() == "--" for axes in figure.axes for line in axes.lines)


def test_without_phases_the_figure_says_so(tmp_path):
    told = read_results(make(tmp_path / "study"))
    figure, source = phases.draw(told)
    assert source.empty
    assert "reported phases" in " ".join(texts(figure)).replace("\n", " ")
    assert texts_for("phases", told).alternative == phases.lacking(told)


@needs_ruptures
def test_the_figure_of_evolution_marks_the_warm_up(tmp_path):
    told = results(tmp_path / "study", warm_up=1.3)
    figure, source = evolution.draw(told)
    assert {"warm-up", "level changes", "step", "alone", "beside stream"} <= set(texts(figure))
    for _, launch in source.groupby("launch"):
        last = launch.loc[launch["warm_up"].astype(bool), "iteration"].max()
        assert last == pytest.approx(5 * 40, abs=6), "the first round has five windows of forty steps"
        assert launch["change"].sum() == 1
    assert "warm-up until 2" in texts_for("evolution", told).alternative
    assert "one launch in twenty has a false alarm, at worst" in " ".join(" ".join(texts(figure)).split())


@needs_ruptures
def test_what_others_cost_is_no_change(usual):
    _, source = evolution.draw(usual)
    assert not source["change"].any()
    slower = source.groupby("what")["seconds"].median()
    assert slower["beside stream"] / slower["alone"] == pytest.approx(1.1, abs=0.02)


def test_without_ruptures_the_figure_shows_no_changes_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(change_points, "find_spec", lambda _: None)
    told = results(tmp_path / "study", launches=1, warm_up=1.3)
    figure, source = evolution.draw(told)
    assert not source["change"].any()
    assert source["level"].isna().all()
    assert "level changes" not in texts(figure)
    told = texts_for("evolution", told)
    for said in (told.caption, told.alternative):
        assert "o changes of level were looked for" in said
    assert not any("install" in word for word in [*texts(figure), *astuple(told)])


def test_of_many_launches_six_are_shown_and_the_caption_says_so(tmp_path):
    told = results(tmp_path / "study", launches=9, rounds=1)
    figure, source = evolution.draw(told)
    assert sorted(source["launch"].unique()) == [1, 3, 4, 6, 7, 9]
    assert sum(word.startswith("dlrm-train, launch ") for word in texts(figure)) == 6
    assert "(6 of 9 launches" in texts_for("evolution", told).caption


def test_a_long_launch_is_thinned_but_keeps_its_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(evolution, "DRAWN", 100)
    _, source = evolution.draw(results(tmp_path / "study", launches=1, warm_up=1.3))
    steps = 4 * 5 * 39
    assert 100 * 0.8 <= len(source) <= math.ceil(steps / math.ceil(steps / 100)) + 3
