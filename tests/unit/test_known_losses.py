"""Known losses: when one counts as found, and what is said of all of them."""

import json

import pandas as pd
import pytest

from castmates.trials.known_losses import Found, judged, name, record_of
from tests.unit.snapshots import assert_as_before
from tests.unit.test_help import ask

NAN = float("nan")


def found(known, low, high):
    return Found(known, (low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (4.4, 5.9, "found"),  # it contains the known loss
        (5.05, 5.15, "found"),  # it does not, and all of it is near
        (4.85, 4.95, "found"),
        (5.05, 5.4, "not shown"),  # a part of it is near
        (4.4, 4.9, "not shown"),
        (5.25, 5.4, "wrong"),
        (4.4, 4.75, "wrong"),
        (3.9, 6.0, "not shown"),  # it contains the known loss, and is wider than ±1 point
        (6.0, 9.0, "wrong"),  # as wide as it is, the known loss is far from it
        (NAN, NAN, "not shown"),
    ],
)
def test_a_loss_is_found_where_its_interval_has_it_or_lies_beside_it(low, high, verdict):
    assert found(5.0, low, high).verdict == verdict


def test_the_worst_loss_decides_and_one_sentence_names_it():
    good, wide = found(0.0, -0.1, 0.2), found(1.0, -0.5, 2.5)
    cases = {
        "found": [good, found(1.0, 0.9, 1.2), found(5.0, 4.96, 5.16)],
        "wrong": [good, wide, found(5.0, 5.2, 5.6), found(10.0, 8.0, 8.5)],
        "not shown": [good, wide, found(5.0, 4.9, 5.2)],
        "no interval": [wide, found(5.0, NAN, NAN)],
    }
    judgements = {case: judged(every) for case, every in cases.items()}
    assert [verdict for verdict, _ in judgements.values()] == ["found", "wrong", "not shown", "not shown"]
    mistakes = ["doctor --minutes 3", "doctor --truth --verify-rdt"]
    refused = {words: str(ask(*words.split()).exception) for words in mistakes}
    assert_as_before("known-losses", {case: said for case, (_, said) in judgements.items()} | refused)


def test_a_record_without_any_window_that_counts_is_data_too():
    table = pd.DataFrame({"loss_pct": [NAN] * 3, "loss_low": [NAN] * 3, "loss_high": [NAN] * 3})
    record = record_of([], table)
    assert (record["verdict"], record["launches"], record["windows"], record["rejected"]) == ("not shown", 0, 0, 0)
    assert [row["known"] for row in record["losses"]] == [0.0, 1.0, 5.0]
    assert json.dumps(record)
    assert [name("sleeper", loss) for loss in (0.0, 0.005, 0.1)] == ["sleeper-0", "sleeper-0.5", "sleeper-10"]
