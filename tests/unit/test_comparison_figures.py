"""The figures of several studies: a line per study, dates in order, and lines that join one machine only."""

import math
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from castmates.report.comparison import figure as comparison_figure
from castmates.report.comparison import page
from castmates.report.comparison.compare import compare_studies
from castmates.report.figures.antagonists import antagonists_of, looks_in_order
from castmates.report.figures.style import looks_of
from tests.unit import study_folder
from tests.unit.windows_maker import cohort, mix, plan, written

ONE = plan([cohort("c", mix("dlrm@0", "stream@1"), mix("dlrm@0", "chase@2"))], launches=3)


def study(folder, loss, started, host):
    def rate(launch, number, scene, member):
        return 100.0 * math.exp(-(loss + 0.01 * launch.number) * scene.startswith("corun"))

    return study_folder.write(folder, ONE, written(ONE, rate), started=started, host=host)


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    place = tmp_path_factory.mktemp("apart")
    when = ["2026-03-01T10:00:00+00:00", "2026-01-01T10:00:00+00:00", "2026-02-01T10:00:00+00:00"]
    hosts = ["here", "here", "there"]
    rows = zip(("late", "early", "middle"), (0.3, 0.1, 0.2), when, hosts, strict=True)
    return compare_studies([study(place / name, *facts) for name, *facts in rows], None)


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in (axes.title, axes._left_title, *axes.texts)]


def test_every_pair_has_a_line_for_every_study_and_the_mean_comes_first(apart):
    figure, source = comparison_figure.draw_several(apart)
    assert len(source) == 4
    shown = texts(figure)
    assert next(one for one in shown if one.startswith(("geometric", "dlrm beside"))) == "geometric mean of 2 mixes"
    for name in ("A  late", "B  early", "C  middle"):
        assert shown.count(name) == 3
    assert shown.count("baseline") == 3
    assert "loses less in B" in shown


def test_history_is_in_the_order_of_time_and_joins_one_machine_only(apart):
    figure, source = page.draw(apart)
    assert list(source["study"])[::2] == ["early", "middle", "late"]
    joined = [line for line in figure.axes[0].lines if line.get_alpha()]
    assert sorted(len(line.get_xdata()) for line in joined) == [1, 1, 2, 2]  # late and early are one machine
    assert not [one.get_text() for one in figure.texts if "not" in one.get_text()]


def test_studies_that_are_close_in_time_are_set_apart_evenly(tmp_path):
    times = ["2026-01-01T10:00:00+00:00", "2026-01-01T10:01:00+00:00", "2026-02-01T10:00:00+00:00"]
    studies = [study(tmp_path / name, 0.1, when, "here") for name, when in zip("xyz", times, strict=True)]
    figure, _ = page.draw(compare_studies(studies, None))
    axes = figure.axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["A\n2026-01-01", "B\n2026-01-01", "C\n2026-02-01"]
    assert list(axes.get_xticks()) == [0, 1, 2]
    assert "their distances are not" in " ".join(" ".join(one.get_text() for one in figure.texts).split())


def coloured(figure):
    """The colours and markers of all points of a figure."""
    lines = [line for axes in figure.axes for line in axes.lines if line.get_marker() not in ("None", "", None)]
    return {(to_hex(line.get_color()), line.get_marker()) for line in lines}


def test_a_antagonist_has_the_colour_that_it_has_in_the_baselines_own_figures(apart, tmp_path):
    """The order of the plan decides, not that of the rows."""
    wanted = looks_of(("stream", "chase"), shift=1)
    assert set(looks_in_order(antagonists_of(ONE), ["chase"]).values()) == {wanted["chase"]}
    times = (("one", "2026-01-01T10:00:00+00:00"), ("two", "2026-02-01T10:00:00+00:00"))
    two = compare_studies([study(tmp_path / name, 0.1, when, "here") for name, when in times], None)
    for drawn in (comparison_figure.draw_several(apart), page.draw(apart), comparison_figure.draw(two.pairs[0])):
        assert set(wanted.values()) <= coloured(drawn[0])
    for several, draw in (
        (apart, comparison_figure.draw_several),
        (two, lambda several: comparison_figure.draw(several.pairs[0])),
    ):
        turned = [replace(pair, table=pair.table[::-1].reset_index(drop=True)) for pair in several.pairs]
        only = [replace(pair, table=pair.table[pair.table["antagonists"] == "chase"]) for pair in several.pairs]
        assert coloured(draw(replace(several, pairs=turned))[0]) == coloured(draw(several)[0])
        assert wanted["chase"] in coloured(draw(replace(several, pairs=only))[0])
        assert wanted["stream"] not in coloured(draw(replace(several, pairs=only))[0])
