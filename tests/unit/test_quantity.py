"""A quantity prints itself, wherever it stands: with its interval, without one, as a gain, as HTML, in JSON."""

import json
import math

import pytest
from markupsafe import escape

from castmates.files import as_json
from castmates.report.quantity import Quantity

ROW = {"loss_pct": 12.04, "loss_low": -0.04, "loss_high": 23.96, "ms": 1.5, "ms_low": math.nan, "ms_high": math.nan}


def test_it_has_its_unit_digits_and_interval():
    loss = Quantity.of(ROW, "loss_pct", "%")
    assert str(loss) == loss.whole == "12.0 % [0.0, 24.0]"
    assert str(-loss) == "\N{MINUS SIGN}12.0 % [\N{MINUS SIGN}24.0, 0.0]"
    assert str(abs(-loss)) == str(loss)
    assert str(Quantity(0.25, 0.125, 0.5, digits=2) * 2) == "0.50 [0.25, 1.00]"
    assert str(Quantity(3.0, 2.0, 4.0) / 2) == "1.5 [1.0, 2.0]"


def test_without_an_interval_it_is_a_number_alone():
    took = Quantity.of(ROW, "ms", "ms", 2)
    assert (str(took), took.interval, took.known) == ("1.50 ms", "", False)
    assert took.whole == "1.50 ms [\N{EN DASH}, \N{EN DASH}]"
    assert took.cells("*") == ("1.50 ms", "\N{EN DASH}*")
    assert str(Quantity(math.nan)) == "\N{EN DASH}"


def test_a_slowdown_is_a_loss():
    found = Quantity.loss({"slowdown": 2.0, "slowdown_low": 1.25, "slowdown_high": 4.0}, unit="%")
    assert found.parts == (50.0, pytest.approx(20.0), 75.0)


def test_the_page_and_scripts_have_it_too():
    loss = Quantity(1.0, 0.5, 1.5, "%")
    assert escape(loss) == '1.0 % <span class="nb">[0.5, 1.5]</span>'
    assert json.loads(json.dumps(as_json(loss)))["high"] == 1.5
