"""Sessions under Snakemake: a session measures its launches and nothing else, and a plain sweep goes on from there.

When they begin, and how the command goes on, is tested without Snakemake (tests/unit/test_spread.py).
"""

import pytest

from tests.workflow.sweeps import Sweeps

BUDGET = {"launches": 3, "rounds": 1, "window": 0.1, "settle": 0.02}
DUE = ("sweep", "config/config.yaml", "--sessions", "2", "--over", "6h", "--due")


@pytest.mark.nightly
def test_a_session_measures_its_launches_and_a_plain_sweep_the_others(tmp_path):
    sweeps = Sweeps.make(tmp_path / "project", tmp_path / "cache")
    sweeps.write_study({"platform": "modelled", "budget": BUDGET})
    for dry in (["--dry-run"], ["--", "-n"]):
        assert "model_launch" in sweeps.castmates(*DUE[:-1], *dry)  # shown, and nothing is waited for
    assert sweeps.launches() == {}
    sweeps.castmates(*DUE)
    before = sweeps.launches()
    assert sorted(path.rpartition("/")[2] for path in before) == ["1", "2"]
    assert not (sweeps.results / "tables").exists()
    sweeps.castmates(*DUE)
    assert sweeps.launches() == before
    sweeps.castmates("sweep", "config/config.yaml", "--launches", "4")
    assert len(sweeps.launches()) == 4
    assert before.items() <= sweeps.launches().items()
    assert len(sweeps.effects())
    sweeps.castmates(*DUE)
    assert len(sweeps.launches()) == 4
