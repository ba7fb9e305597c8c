"""Every figure is declared in its own module, and found there."""

import pytest

from castmates.report.figures.index import FIGURES, View


@pytest.mark.parametrize("name", FIGURES)
def test_a_declaration_is_read_as_it_is_and_needs_no_import(name):
    declared: View = FIGURES[name].module.FIGURE
    assert FIGURES[name]._replace(name="", drawn_by="", about="") == declared
    assert FIGURES[name].about


def test_each_has_its_own_place():
    assert len({view.place for view in FIGURES.values()}) == len(FIGURES)
