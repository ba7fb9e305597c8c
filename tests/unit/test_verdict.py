"""What stands on a fold of the verdict: no more than its losses show."""

from dataclasses import replace

from castmates.report.results import read_results
from castmates.report.text.verdict import READABLE, verdict
from tests.unit.results_maker import make


def test_the_largest_certain_loss_is_no_bound_on_all_losses(tmp_path):
    names = [f"beside-{number}" for number in range(READABLE + 1)]
    results = read_results(make(tmp_path / "study", leads=["bert"], antagonists=names, blocks=3, rounds=1))
    effects = results.effects.assign(verdict="equivalent")
    for name, loss, low, high, word in (
        ("beside-0", 3.1, 2.6, 3.6, "slower"),
        ("beside-1", 9.0, -1.0, 18.0, "unclear"),
    ):
        columns = ["degradation_pct", "degradation_low", "degradation_high", "verdict"]
        effects.loc[effects["antagonists"] == name, columns] = loss, low, high, word
    (group,) = verdict(replace(results, effects=effects)).groups
    assert group.lead == "bert"
    assert group.summary == (
        f"{READABLE + 1} mixes: {READABLE - 1} equivalent, 1 slower and 1 unclear; "
        "the largest certain loss 3.1 % [2.6, 3.6] beside beside-0"
    )
