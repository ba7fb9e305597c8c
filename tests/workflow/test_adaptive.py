"""An adaptive study: looks decide what launches measure, and everything shows it.

What looks decide, also after a kill, is tested without Snakemake (tests/unit/test_sweep_decisions.py).
"""

import json

import pandas as pd

from tests.workflow.sweeps import Sweeps

BUDGET = {"adaptive": True, "launches": 4, "batch": 4, "most_launches": 8, "rounds": 1, "window": 0.1, "settle": 0.02,
          "mixes_per_launch": 64, "longest_launch": 3600}  # fmt: skip
STUDY = {
    "platform": "modelled",
    "model": {"ways": 8},
    "antagonists": ["stream"],
    "cache": {"monitor": 0, "sweeps": [{"split": "all"}]},
    "recommend": {"lead_loss": "20%"},
    "budget": BUDGET,
}


def test_looks_decide_what_launches_measure_and_everything_shows_it(tmp_path):
    adaptive = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    adaptive.write_study(STUDY)
    shown = adaptive.sweep().stderr
    first = json.loads((adaptive.results / "looks/1.json").read_text())
    decided = {cell["partition"]: cell for cell in first["cells"]}
    assert len(decided) < 8, "not all of the grid"
    curves = pd.read_csv(adaptive.results / "tables/curves.csv")
    assert {"measured", "interpolated"} == set(curves["source"])
    assert set(curves["platform"]) == {"modelled"}
    unmeasured = set(curves.loc[curves["source"] == "interpolated", "partition"])
    for name in ("effects", "windows", "pareto", "sensitivity"):
        table = pd.read_csv(adaptive.results / f"tables/{name}.csv")
        known = table if "launches" not in table else table[table["launches"] > 0]
        assert not unmeasured & set(known["partition"]), f"only measured cells are in {name}"
    page = (adaptive.results / "report/index.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "% fewer" in page
    assert "cells of curves are interpolated" in page
    assert "hollow with dotted bars: interpolated" in page
    assert "Look 1:" in shown
    assert "% fewer" in shown
    assert "measured mixes and partitions have their answer" in adaptive.castmates("show", "--progress")
    adaptive.assert_finished()
