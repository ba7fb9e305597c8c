"""A whole modelled sweep under Snakemake: nothing is built, nothing is started, everything is stamped."""

import json
import shutil

import pandas as pd
import pytest

from castmates.machine import trial_records
from tests.workflow.conftest import MODELLED
from tests.workflow.sweeps import Sweeps


@pytest.mark.core
def test_every_table_and_figure_says_that_it_is_modelled(modelled, arranged):
    tables, stamped = set(), set()
    for sweeps in (modelled, arranged):
        for file in [file for suffix in ("csv", "parquet") for file in sweeps.results.rglob(f"*.{suffix}")]:
            table = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
            said = set(table["platform"].dropna())
            assert said == ({"modelled"} if len(table) else set()), file
            tables.add(file.name)
            stamped |= {file.name} if said else set()
        for figure in sweeps.results.glob("figures/*.csv"):
            assert "Source: modelled." in figure.with_suffix(".txt").read_text()
    assert {"effects.csv", "stamps.parquet", "partitions.csv", "steps.parquet", "samples.parquet"} <= stamped
    assert {"distances.csv", "mitigations.csv", "mitigations.parquet", "system_over_mixes.csv"} <= stamped
    # What a launch on a modelled machine lacks; every other table has rows in one of the two studies.
    lacking = {"counters", "topdown", "layers"}
    assert {name.partition(".")[0] for name in tables - stamped} == lacking
    assert {"distances.svg", "mitigations.svg", "system_mixes.svg"} <= {
        file.name for file in arranged.results.glob("figures/*.svg")
    }


@pytest.mark.core
def test_the_effects_hold_the_truth_of_the_model(modelled):
    effects = modelled.effects()
    assert {"split-4", "split-10", "lead-4", "unmanaged"} == set(effects["partition"])
    record = json.loads(next(modelled.results.glob("launches/*/1/launch.json")).read_text())
    truth = {scene: {name: one["rate"] for name, one in them.items()} for scene, them in record["truth"].items()}
    lead = "chase@1"
    for scene, row in {
        "corun:chase+stream": ("unmanaged", "chase+stream"),
        "corun:chase+stream@split-10": ("split-10", "chase+stream"),
        "alone@lead-4": ("lead-4", "chase"),
    }.items():
        own = effects[(effects["partition"] == row[0]) & (effects["mix"] == row[1]) & (effects["member"] == lead)]
        found = own[own["baseline"] == "alone"].iloc[0]
        assert found["slowdown"] == pytest.approx(truth["alone"][lead] / truth[scene][lead], rel=0.03)


@pytest.mark.core
def test_nothing_was_built_and_nothing_is_left_to_do(modelled):
    assert not modelled.cache.exists()
    modelled.assert_finished()


@pytest.mark.parametrize("name", ["tables/pareto.parquet", "tables/effects.csv", "figures/heatmap.svg"])
def test_what_was_removed_is_made_again_though_the_page_is_there(modelled, name):
    file, aside = modelled.results / name, modelled.results / "aside"
    file.rename(aside)
    try:
        assert "Nothing to be done" not in modelled.run("--dry-run").stdout
    finally:
        aside.rename(file)


def test_launches_with_a_lost_table_or_a_damaged_record_are_measured_again_and_no_other(modelled, tmp_path):
    copy = modelled.copy(tmp_path / "project")
    first, second, *others = sorted(copy.results.glob("launches/*/*/launch.json"))
    before = {file: file.stat().st_mtime_ns for file in others}
    table = first.with_name("layers.parquet")
    table.unlink()
    second.write_text(second.read_text()[:-100])
    targets = [str(file.relative_to(copy.folder)) for file in (first, second, *others)]
    copy.sweep(*targets)
    assert table.is_file()
    assert json.loads(second.read_text())["status"] == "measured"
    assert {file: file.stat().st_mtime_ns for file in others} == before
    copy.assert_finished(*targets)


def test_results_that_were_copied_say_that_they_were_measured_with_another_window(modelled, tmp_path):
    """As everybody does who moves a study to another machine: what was measured is known to its records alone."""
    copy = modelled.copy(tmp_path / "project")
    shutil.rmtree(copy.folder / ".snakemake")
    assert "measured with" not in copy.castmates("show", "--progress")
    count = len(copy.launches())
    copy.write_study(MODELLED | {"budget": MODELLED["budget"] | {"window": 0.13}})
    sentence = f"{count} launches were measured with 'budget.window' 0.2, where the study now says 0.13."
    for command in (["show", "--progress"], ["plan"]):
        assert sentence in copy.castmates(*command)
    plan = copy.results / "plan.json"
    copy.sweep("--force", str(plan.relative_to(copy.folder)))
    assert sentence in " ".join(note["text"] for note in json.loads(plan.read_text())["notes"]), (
        "of which the page is made"
    )
    assert len(copy.launches()) == count, "nothing that is measured is thrown away unasked"
    assert f"{count} launches discarded" in copy.discard(changed=True)
    assert "measured with" not in copy.castmates("show", "--progress")


def test_a_study_is_chosen_by_either_option_and_by_one_of_them(modelled):
    named = ["--config", "study=config/config.yaml"]
    filed = ["--configfile", "config/config.yaml"]
    for option in (named, filed):
        modelled.assert_finished(*option)
    both = modelled.run("--dry-run", *named, *filed)
    assert both.returncode != 0
    assert "one study at a time" in both.stdout + both.stderr


def test_a_trial_of_this_machine_makes_nothing_of_a_modelled_one_anew(modelled, tmp_path):
    copy = Sweeps(modelled.copy(tmp_path / "project").folder, tmp_path / "cache")
    trial_records.RDT.write(copy.cache, {"identity": trial_records.RDT.identity()})
    facts = copy.results / "machine.json"
    facts.unlink()
    target = str(facts.relative_to(copy.folder))
    copy.sweep(target)
    copy.assert_finished(target)
