"""What stands on a fold of the verdict: no more than its losses show."""

from castmates.report.text import verdict


def row(name, loss, low, high, word):
    ends = {"degradation_pct": loss, "degradation_low": low, "degradation_high": high}
    return {"lead": "bert", "antagonists": name, "verdict": word} | ends


def test_the_largest_certain_loss_is_no_bound_on_all_losses():
    rows = [row("stream", 3.1, 2.6, 3.6, "slower"), row("chase", 9.0, -1.0, 18.0, "unclear")]
    said = verdict._summary(rows)
    assert said == "2 mixes: 1 slower and 1 unclear; the largest certain loss 3.1 % [2.6, 3.6] beside stream"
