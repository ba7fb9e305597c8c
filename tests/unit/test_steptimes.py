"""The figure of step times: what is drawn of whom, what is refused, and how large it can become."""

import numpy as np
import pytest

from castmates.analysis.explanations.services import latencies
from castmates.report.figures import steptimes
from castmates.report.figures.steptimes import SHARES, ticks
from castmates.report.results import Results
from castmates.results.folder import StudyFolder
from tests.unit.test_latency import heartbeats
from tests.unit.windows_maker import cohort, mix, plan, written

NAMES = ("stream", "chase", "compute", "a-rather-long-antagonist-name", "sort", "matrix", "list")


def results(folder, launches=3, antagonists=1, beats=140):
    """A study on disk as far as the figure reads it; nothing in it was measured."""
    mixes = [mix("bert@0", f"{name}@1") for name in NAMES[:antagonists]]
    made = plan([cohort("c", *mixes)], launches)
    windows = written(made, lambda *_: 1.0, rounds=1)
    slow = {f"corun:bert+{name}": 1.2 + 0.2 * place for place, name in enumerate(NAMES)}
    steps = heartbeats(
        windows, lambda row: int(10**7 * slow.get(row["scene"], 1.0) * (1 + 0.01 * row["launch"])), lambda _: beats
    )
    for launch in made.launches:
        place = folder / "launches" / launch.path
        place.mkdir(parents=True)
        (place / "launch.json").write_text("{}")
        steps[steps["launch"] == launch.number].to_parquet(place / "steps.parquet")
    return Results(
        "synthetic", windows=windows,
        latency=latencies(made, windows, [steps] if len(steps) else []), folder=StudyFolder(folder),
    )  # fmt: skip


def test_every_condition_has_its_launches_its_mean_line_and_its_quantiles(tmp_path):
    figure, source = steptimes.draw(results(tmp_path))
    upper, lower = figure.axes
    assert upper.get_title("left") == "bert"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["alone", "placebo", "beside stream"]
    lines = source.groupby(["scene", "what"]).size()
    assert lines["alone", "launch"] == 3 * len(SHARES)
    assert lines["corun:bert+stream", "interval"] == 3
    marks = source[source["what"] == "interval"].set_index(["scene", "share"])
    assert marks.loc[("corun:bert+stream", 0.5), "ms"] == pytest.approx(12 * 1.02, rel=1e-3)
    assert marks.loc[("alone", 0.99), "refused"].startswith("p99 needs 368 steps")
    assert "too few steps" in [text.get_text() for text in lower.texts]
    assert "p99 is missing" in steptimes.caption(results(tmp_path / "again"))


def test_many_launches_and_antagonists_are_capped_and_it_is_said(tmp_path):
    found = results(tmp_path, launches=10, antagonists=7, beats=8)
    figure, source = steptimes.draw(found)
    assert sorted(source.loc[source["scene"] == "alone", "launch"].dropna().unique()) == [1, 2, 4, 5, 6, 7, 9, 10]
    drawn = {text.get_text() for text in figure.legends[0].get_texts()}
    assert len(drawn) == 2 + steptimes.DRAWN["corun"]
    assert "beside stream" not in drawn  # changes the median least
    assert "at most 8 launches" in steptimes.caption(found)
    some = "those that change the median most are drawn"
    assert some in steptimes.caption(found)
    assert some not in steptimes.caption(results(tmp_path / "few"))
    assert sum(len(line.get_xdata()) for line in figure.axes[0].lines) < 8 * 7 * len(SHARES) + 7 * 81


def test_without_steps_the_figure_says_so(tmp_path):
    found = results(tmp_path, beats=0)
    figure, source = steptimes.draw(found)
    assert source.empty
    assert "no step has a length" in " ".join(figure.texts[-1].get_text().split())
    assert "no step has a length" in steptimes.alternative(found)


def test_the_mean_distribution_gives_each_launch_the_same_weight():
    values = np.array([np.linspace(1, 2, len(SHARES)), np.linspace(3, 4, len(SHARES))])
    line = steptimes.pooled(values)
    assert line[np.searchsorted(line[:, 0], 2.5), 1] == pytest.approx(0.5)
    assert (np.diff(line[:, 1]) >= 0).all()


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.5), (9, 40), (0.01, 900), (1, 3)])
def test_ticks_are_few_and_readable(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 6
    assert all(low <= one <= high and len(f"{one:g}") <= 5 for one in found)
