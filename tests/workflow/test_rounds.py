"""With `rounds: auto` the first two launches of each cohort decide how many rounds its others have, once for all.

What is decided, and when, is tested without Snakemake (tests/unit/test_sweep_decisions.py).
"""

import json
import shutil

import pytest

from tests.workflow.sweeps import TABLES, Sweeps

BUDGET = {"launches": 4, "rounds": "auto", "window": 0.1, "settle": 0.02}
NOISY = {"noise": {"window": "20%", "scene": "0.1%", "launch": "0.1%", "drift": 0}}
# With this seed the first launches decide on another number than the one that they had.
STUDY = {"seed": 4, "platform": "modelled", "antagonists": ["stream"], "model": NOISY, "budget": BUDGET}


def rounds(sweeps: Sweeps) -> list[int]:
    """The rounds of the only cohort's measured launches, in their order."""
    return [sweeps.record(launch)["spec"]["design"]["rounds"] for launch in sweeps.launches()]


@pytest.mark.nightly
def test_the_first_launches_decide_everything_shows_it_and_one_that_is_measured_again_changes_nothing(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    sweeps.write_study(STUDY)
    said = sweeps.castmates("plan", "--all")
    assert "the first 2 launches decide how many rounds the others have" in " ".join(said.split())
    sweeps.sweep()
    (file,) = sweeps.results.glob("rounds/*.json")
    text, had = file.read_text(), rounds(sweeps)
    decision = json.loads(text)
    assert had[0] == had[1] != decision["rounds"]
    assert had[2:] == [decision["rounds"]] * 2
    sweeps.assert_finished()
    words = f"{decision['rounds']} rounds in each launch after the first ones: in the first 2 the loss varies by"
    assert words in " ".join(sweeps.castmates("plan", "--all").split())
    assert words in (sweeps.results / "report/index.html").read_text()
    plan = json.loads((sweeps.results / "plan.json").read_text())
    assert sorted(design["rounds"] for design in plan["designs"].values()) == [0, had[0]]

    before, first = sweeps.launches(), f"{file.stem}/1"
    shutil.rmtree(sweeps.results / "launches" / first)
    sweeps.write_study(STUDY | {"budget": BUDGET | {"launches": 5}})
    sweeps.sweep(TABLES)
    after = sweeps.launches()
    assert {launch for launch in before if after[launch] != before[launch]} == {first}
    assert rounds(sweeps) == [*had, decision["rounds"]]
    assert file.read_text() == text
