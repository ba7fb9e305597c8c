"""Every figure is declared in its own module, and found there."""

from typing import get_args

import pytest

from castmates.report.figures.index import FIGURES, Part
from castmates.study import capabilities


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_read_is_what_the_module_declares(name):
    view, declared = FIGURES[name], FIGURES[name].module.FIGURE
    assert (view.title, view.part, view.place) == (declared["title"], declared["part"], declared["place"])
    assert view.needs == (getattr(capabilities, declared["needs"]) if "needs" in declared else None)
    assert view.part in get_args(Part)
    assert view.about


def test_each_has_its_own_place():
    assert len({view.place for view in FIGURES.values()}) == len(FIGURES)
