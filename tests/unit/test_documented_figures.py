"""The simulated figures in docs/ are those that the simulations print: `make figures-check`."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = {
    "test_coverage": "methodology.md",
    "test_attribution_coverage": "methodology.md",
    "test_carryover": "methodology.md",
    "test_coverage_of_rounds": "methodology.md",
    "test_system_coverage": "methodology.md",
    "test_coverage_of_shapes": "methodology.md",
    "test_coverage_of_mixes": "methodology.md",
    "test_sessions": "methodology.md",
    "test_prediction_coverage": "methodology.md",
    "modelled.test_cache": "modelled-machine.md",
    "modelled.test_published": "modelled-machine.md",
    "modelled.test_adaptive_oracle": "methodology.md",
}


@pytest.mark.nightly
@pytest.mark.parametrize("module", TABLES)
def test_the_documented_figures_are_these(module):
    name = f"{__package__}.{module}"
    page = ROOT / "docs" / TABLES[module]
    table = importlib.import_module(name).table()
    assert table in page.read_text(), f"put the output of `python -m {name}` into {page.name}"
