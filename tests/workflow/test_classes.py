"""Two modelled classes of nodes, swept to tables: separate rows, each true of its own machine, and a stamp."""

import json

import pandas as pd
import pytest

from tests.workflow.conftest import MODELLED
from tests.workflow.sweeps import Sweeps

CLASSES = {"small": {"model": {"cores": 4, "ways": 8}}, "large": {"model": {"cores": 8, "ways": 16}}}
LEADS = {"chase~small", "chase~large"}


def test_classes_have_separate_rows_and_a_stamp(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    changes = {"machines": CLASSES, "cache": {"sweeps": [{"split": 4}]}, "recommend": {"lead_loss": "60%"}}
    sweeps.write_study(MODELLED | changes)
    sweeps.sweep("results/small/tables/recommendations.csv")
    tables = {
        name: pd.read_parquet(sweeps.results / f"tables/{name}.parquet")
        for name in ("effects", "windows", "launches", "stamps", "recommendations", "sensitivity")
    }
    for name in ("effects", "launches", "recommendations", "sensitivity"):
        found = tables[name][["machine", "lead"]].drop_duplicates()
        assert set(found.itertuples(index=False, name=None)) == {(lead.partition("~")[2], lead) for lead in LEADS}, name
    assert set(tables["windows"]["machine"]) == set(CLASSES)
    stamp = tables["stamps"].set_index("stamp").loc["machines"]
    assert stamp["word"] == "2 classes of nodes"
    assert "large and small: each has separate rows" in stamp["sentence"]
    assert set(json.loads((sweeps.results / "machine.json").read_text())["classes"]) == set(CLASSES)

    records = [json.loads(file.read_text()) for file in sweeps.results.glob("launches/*/1/launch.json")]
    effects = tables["effects"].set_index(["lead", "role", "partition", "baseline"])["slowdown"]
    for record in records:
        truth = record["truth"]
        lead = next(name for name in truth["alone"] if name.startswith("chase~"))
        name = lead.partition("@")[0]
        rates = [truth[scene][lead]["rate"] for scene in ("alone", f"corun:{name}+stream")]
        assert effects[(name, "lead", "unmanaged", "alone")] == pytest.approx(rates[0] / rates[1], rel=0.03)
    assert len(records) == len(LEADS)
    losses = [effects[(lead, "lead", "unmanaged", "alone")] for lead in LEADS]
    assert abs(losses[0] - losses[1]) > 0.05, "else rows that were pooled would pass too"
