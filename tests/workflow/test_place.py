"""A modelled study whose jobs are placed, and whose best groups are measured afresh, under Snakemake and end to end."""

import json

import pandas as pd
import pytest

from tests.workflow.sweeps import Sweeps

STUDY = {
    "platform": "modelled",
    "model": {"domains": 2, "cores": 2},
    "leads": ["chase", "stream"],
    "antagonists": ["chase", "stream"],
    "controls": None,
    "budget": {"launches": 3, "rounds": 2, "window": 0.2, "settle": 0.1, "longest_launch": 3600},
    "place": {"jobs": {"chase": {"count": 2, "limit": "90%"}, "stream": 2}},
}


@pytest.mark.nightly
def test_the_best_groups_of_jobs_are_measured_afresh_and_hold_the_truth(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    sweeps.write_study(STUDY)
    sweeps.sweep("results/small/tables/effects.csv")
    before = json.loads(sweeps.castmates("advice", "--place", "--format", "json"))
    assert {row["fresh_pct"] for row in before["groupings"]} == {None}
    said = sweeps.castmates("advice", "--place", "--confirm", "--cores", "2")
    assert "Fresh launches of the best grouping: " in said
    after = pd.read_csv(sweeps.results / "place/groupings.csv")
    assert after["loss_pct"].tolist() == pytest.approx([row["loss_pct"] for row in before["groupings"]])
    best = after[after["rank"] == 1]
    assert set(best["confirmation"].dropna()) == {"confirmed"}
    (file,) = (sweeps.results / "place").glob("*.yaml")
    fresh = sweeps.folder / "results" / file.stem
    rates = {}
    for launch in fresh.glob("launches/*/1/launch.json"):
        record = json.loads(launch.read_text())
        for scene, members in record["truth"].items():
            for name, one in members.items():
                kind = scene.partition(":")[0]
                others = tuple(sorted(other.partition("@")[0] for other in members if other != name))
                alone = others == () and kind in ("alone", "antagonist-alone")
                rates[name.partition("@")[0], () if alone else others if kind == "corun" else None] = one["rate"]
    for row in after.itertuples():
        truth = 100 * (1 - rates[row.job, (row.beside,)] / rates[row.job, ()])
        assert row.fresh_pct == pytest.approx(truth, abs=3)
    seeds = [
        {json.loads(one.read_text())["spec"]["seed"] for one in folder.glob("launches/*/*/launch.json")}
        for folder in (sweeps.results, fresh)
    ]
    assert not seeds[0] & seeds[1]
