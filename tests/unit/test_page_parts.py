"""The page's parts: which figures stand where, and how a verdict on many mixes is put."""

import subprocess
import sys
from pathlib import Path

import pytest

from castmates.report.figures import index
from castmates.report.figures.index import FIGURES
from castmates.report.page.contents import contents, figure_parts
from castmates.report.page.page import inline_svg
from castmates.report.results import read_results
from castmates.report.text.verdict import WORST, verdict
from tests.unit.results_maker import make

FOLDER = Path(index.__file__).parent


def test_every_module_that_draws_is_a_row_and_every_row_has_its_place():
    draws = {file.stem for file in FOLDER.glob("*.py") if "\ndef draw(" in file.read_text()}
    assert draws == set(FIGURES)
    assert [row for part in figure_parts(list(FIGURES)) for row in part.figures] == list(FIGURES.values())
    assert [part.id for part in figure_parts([])] == ["health"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figures_module_draws_and_describes(name):
    module = FIGURES[name].module
    assert all(callable(getattr(module, verb)) for verb in ("draw", "caption", "alternative"))


def test_the_list_of_figures_is_light():
    heavy = "import sys, castmates.report.figures.index; print({'pandas', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_contents_name_the_parts_in_the_pages_order():
    ids = [id for id, _ in contents(figure_parts(["heatmap", "control"]), rejected=True)]
    assert ids == ["verdict", "losses", "health", "tables", "method", "machine", "provenance", "rejected"]


def test_few_mixes_stand_as_sentences(tmp_path):
    said = verdict(read_results(make(tmp_path / "study")))
    assert said.groups == []
    assert any("loses" in sentence for sentence in said.first)


def test_many_mixes_are_the_worst_losses_and_a_group_for_each_lead(tmp_path):
    results = read_results(make(tmp_path / "study", ["a", "b"], [f"x{n}" for n in range(12)], blocks=4))
    said = verdict(results)
    slower = results.lead_effects("solo").query("verdict == 'slower'").sort_values("degradation_pct")
    assert said.first[0].startswith("24 mixes of 2 leads: ")
    assert said.first[0].endswith(f"The {WORST} largest of {len(slower)} losses:")
    assert len(said.first) == 1 + WORST
    worst = slower.iloc[-1]
    assert said.first[1].startswith(f"{worst['lead']} loses {worst['degradation_pct']:.1f} %")
    assert [group.lead for group in said.groups] == ["a", "b"]
    assert all(group.summary.startswith("12 mixes: ") and group.sentences for group in said.groups)
    told = " ".join(sentence for group in said.groups for sentence in group.sentences).split()
    beside = {word for word in told if word[0] == "x"}
    assert len({name.strip(".,;)") for name in beside}) == 12, "every mix is told of in a fold"


def test_an_inlined_figure_names_no_address(tmp_path):
    file = tmp_path / "figure.svg"
    file.write_text('<?xml?><svg xmlns="http://a.b/c" xmlns:xlink="http://d.e" width="1"><g id="x"/></svg>')
    assert inline_svg(file) == '<svg aria-hidden="true" focusable="false" width="1"><g id="x"/></svg>'
