"""Tables are found by the registry, and made of what their estimates name."""

import re
import sys
from types import ModuleType

import pandas as pd
import pytest

from castmates.pipeline import estimates
from castmates.pipeline.estimates import Estimates
from castmates.report.page.common_parts import environment
from castmates.results.columns.contract import Table, col
from castmates.results.columns.registry import TABLES

FACTS = {  # what each rule knows
    "analyse": "plan held windows margin level isolated machine peak added steps slices readings study parts "
    "ignored_hosts left_out records limit_pct cache_ways confirmed latency_limits",
    "estimate_operations": "margin level work traces compared steps in_steps memory stages device_calls logged "
    "primitives roofs flags paths nodes edges epochs epochs_about",
    "estimate_traces": "timelines",
}
MADE = {name: table for name, table in TABLES.items() if table.rule and name != "windows"}  # which is a fact


@pytest.mark.parametrize("table", MADE.values(), ids=list(MADE))
def test_every_table_has_an_estimate_whose_needs_are_facts_or_tables_of_its_rule(table):
    needs = {each.name for each in estimates.parameters(table) if each.default is each.empty}
    assert needs <= {*FACTS[table.rule].split()} | {name for name in MADE if MADE[name].rule == table.rule}


@pytest.fixture
def beside():
    """A module that declares two tables beside their estimates, as one of castmates/analysis/tables does."""
    module = ModuleType("castmates.analysis.tables.made_up")
    doubled = Table("doubled", "tables/doubled.csv: twice the facts.", col("x", int, "twice"), rule="made_up")
    summed = Table("summed", "tables/summed.csv: their sum.", col("x", float, "sum"), rule="made_up", heading="Sums")
    module.calls = []

    def double(fact: pd.DataFrame) -> pd.DataFrame:
        module.calls.append("double")
        return fact * 2

    def total(doubled: pd.DataFrame, unit: str = "none") -> list[dict[str, float]]:
        assert unit == "none"
        return [{"x": doubled["x"].sum()}]

    for table, function in ((doubled, double), (summed, total)):
        function.__module__ = module.__name__
        setattr(module, function.__name__, table.estimated_by(function))
    module.tables = {"doubled": doubled, "summed": summed}
    return module


@pytest.fixture
def known(beside, monkeypatch):
    monkeypatch.setitem(sys.modules, beside.__name__, beside)
    for name, table in beside.tables.items():
        monkeypatch.setitem(TABLES, name, table)
    monkeypatch.setattr(estimates, "written_by", lambda _: beside.tables)
    return beside


def test_a_table_is_made_once_of_facts_and_of_other_tables_part_by_part(known):
    parts = [{"fact": pd.DataFrame({"x": [1, 2]})}, {"fact": pd.DataFrame({"x": [3]})}]
    whole = Estimates("made_up", {}, parts)
    assert whole["summed"]["x"].tolist() == [6.0, 6.0]
    assert whole["doubled"]["x"].tolist() == [2, 4, 6]
    assert known.calls == ["double"] * 2
    assert whole.together(known.tables) == [{"doubled", "summed"}]


def test_without_a_fact_that_it_needs_a_table_is_empty(known):
    made = Estimates("made_up", {"fact": None})["doubled"]
    assert made.empty
    assert dict(made.dtypes) == {"x": "int64"}


def test_a_table_with_a_heading_is_on_the_page(known):
    template = environment().get_template("further_tables.html.j2")
    row = (known.tables["summed"], "Their sum.", [{"x": 6.0}], 3)
    text = re.sub(r"\s+", " ", template.render(first="", further_tables=[row]))
    assert "<h3>Sums</h3>" in text
    assert 'Their sum. The first 1 rows, of 4. The same numbers: <a href="../tables/summed.csv">' in text
    assert '<td class="n" data-value="6.0">6.000</td>' in text
