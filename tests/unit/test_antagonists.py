"""An antagonist looks the same in every figure of a study, and the user's programs come first. Synthetic results."""

import re
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from castmates.report.figures import attribution, control, evolution, phases, steptimes, windows
from castmates.report.figures.antagonists import BASELINES, antagonists, looks, other_looks, user_first
from castmates.report.results import read_results
from castmates.study.spec import Plan
from tests.unit.phases.test_phase_figures import results as with_steps
from tests.unit.results_maker import make
from tests.unit.test_steptimes import results as with_latencies

ORDER = ("stream", "chase", "compute")  # not that of the alphabet


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return with_steps(tmp_path_factory.mktemp("looks") / "study", launches=3, rounds=2, antagonists=ORDER)


def keys_of(figure):
    """Colour and marker of each antagonist in a figure's legend."""
    found = {}
    for key in (handle for one in figure.legends for handle in one.legend_handles):
        if key.get_label().startswith("beside "):
            shade = key.get_markeredgecolor() if key.get_linestyle() == "None" else key.get_color()
            found[key.get_label().removeprefix("beside ")] = to_hex(shade), key.get_marker()
    return found


def test_the_order_of_the_study_decides_on_colours(study):
    assert antagonists(study)[:3] == list(ORDER)
    found = looks(study, sorted(ORDER))
    assert [found[name] for name in ORDER] == [("#0072b2", "s"), ("#d55e00", "^"), ("#009e73", "D")]
    assert found["stream"] == looks(study, ["stream"])["stream"], "whatever else a figure shows"
    assert not set(found.values()) & set(BASELINES.values())


def test_a_antagonist_looks_the_same_in_every_figure(study, tmp_path):
    timed = with_latencies(tmp_path, antagonists=3)
    assert keys_of(steptimes.draw(timed)[0]) == looks(timed, ORDER)
    wanted = looks(study, ORDER)
    assert keys_of(windows.draw(study)[0]) == wanted
    colours = {name: colour for name, (colour, _) in keys_of(evolution.draw(study)[0]).items()}
    assert colours == {name: colour for name, (colour, _) in wanted.items()}
    figure, _ = attribution.draw(study)
    bars = {bar.get_gid(): to_hex(bar.get_edgecolor()) for axes in figure.axes for bar in axes.patches}
    for name, (colour, _) in wanted.items():
        own = {
            shade
            for said, shade in bars.items()
            if f"beside {name}," in said and not re.search(", total:|busy antagonist", said)
        }
        assert own == {colour}, name


def test_what_is_no_antagonist_has_no_antagonists_colour(study):
    figure, _ = phases.draw(study)
    parts = {to_hex(key.get_color()) for key in figure.legends[0].legend_handles}
    assert not parts & {colour for colour, _ in looks(study, ORDER).values()}
    assert len(set(other_looks(study, "abc").values())) == 3


def test_one_antagonist_on_two_seats_has_one_colour_and_two_markers(study):
    one, other = looks(study, ["chase@1", "chase@2"]).values()
    assert one[0] == other[0] == looks(study, ["chase"])["chase"][0]
    assert one[1] != other[1]


def test_a_plan_names_its_antagonists_before_those_of_the_controls(tmp_path):
    told = read_results(make(tmp_path / "study", leads=["a"], antagonists=["x", "b"], launches=1))

    def mix(lead, *antagonists):
        name = f"{lead}+{'+'.join(antagonists)}"
        return {"name": name, "identity": name, "lead": f"{lead}@0", "antagonists": [f"{who}@1" for who in antagonists]}

    plan = Plan.model_validate(
        {"study": "study", "titles": {}, "launches": [], "mixes": [mix("a", "x"), mix("a", "b", "x")],
         "controls": [{"kind": "positive", "mix": mix("c", "stream")}]}
    )  # fmt: skip
    assert antagonists(replace(told, plan=plan))[:4] == ["x", "b+x", "stream", "b"]


def test_the_users_programs_come_before_those_of_the_controls(tmp_path):
    told = read_results(make(tmp_path / "study", leads=["train", "infer"], launches=1))
    assert user_first(told, ["chase", "compute", "infer@0", "train@0"]) == ["train@0", "infer@0", "chase", "compute"]
    shuffled = replace(told, controls=told.controls.iloc[::-1].reset_index(drop=True))
    (axes,) = control.draw(shuffled)[0].axes
    names = [label.get_text().split("\n")[0] for label in axes.get_yticklabels()]
    assert names[:2] == ["train", "infer"]
    assert {"chase", "compute"} <= set(names[2:])
