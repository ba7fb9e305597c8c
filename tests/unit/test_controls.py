"""The A/A control, the word that it gives a study, and the tables that the script writes."""

import math

import pandas as pd
import pytest

from castmates.analysis.blocks import blocks_table
from castmates.analysis.controls import estimate_controls
from castmates.analysis.verdicts import study_verdict
from castmates.tables import BLOCKS, CONTROLS, WINDOWS, frame
from tests.unit.windows_maker import company, mix, plan, written

TWO = plan([company("a", mix("dlrm@0", "stream@1")), company("b", mix("bert@0", "stream@1"))], blocks=3)
STEADY = (0.001, -0.001, 0.0005)


def controls(losses, of=TWO, margin=0.02):
    """`losses` by lead: log rate(solo) - log rate(solo-again) in each block."""

    def rate(block, number, scene, member):
        again = scene == "solo-again"
        return math.exp(-losses[block.company.lead.workload][block.number - 1]) if again else 1.0

    return estimate_controls(of, written(of, rate), margin)


def test_ratio_and_interval_by_hand():
    table = controls({"dlrm": (0.1, 0.2, 0.3), "bert": STEADY})
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(CONTROLS)
    assert table["lead"].tolist() == ["dlrm", "bert"]
    half = 4.302652729696142 * 0.1 / math.sqrt(3)
    assert table.iloc[0][["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx(
        [math.exp(0.2), math.exp(0.2 - half), math.exp(0.2 + half)]
    )
    assert (table.iloc[0]["blocks"], table.iloc[0]["rounds"]) == (3, 9)


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        (STEADY, "passes"),
        ((0.1, 0.1001, 0.0999), "unstable"),
        ((0.0100, 0.0101, 0.0099), "unstable"),  # small, but certainly not the same
        ((0.1, -0.1, 0.05), "inconclusive"),
        ((0.03, 0.02, 0.027), "inconclusive"),  # narrow enough, but off by more than the margin
    ],
)
def test_verdicts(losses, verdict):
    assert controls({"dlrm": losses, "bert": STEADY})["verdict"].tolist() == [verdict, "passes"]


def test_holm_counts_the_leads():
    table = controls({"dlrm": (0.01, 0.02, 0.018), "bert": STEADY})
    assert table["p_holm"].min() == pytest.approx(2 * table["p_value"].min())


def test_a_lead_with_several_companies_is_one_row():
    lead = plan([company("a", mix("dlrm@0", "stream@1")), company("b", mix("dlrm@0", "chase@1"))], blocks=2)
    table = controls({"dlrm": (0.0, 0.001)}, lead)
    assert (len(table), table.iloc[0]["blocks"]) == (1, 4)


def test_too_few_blocks_and_no_data():
    one = plan([company("a", mix("dlrm@0", "stream@1"))], blocks=2)
    assert controls({"dlrm": (0.0, 0.0)}, one)["verdict"].tolist() == ["too few blocks"]
    assert estimate_controls(one, frame([], WINDOWS), 0.02)["verdict"].tolist() == ["no data"]


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        (["passes", "passes"], "trustworthy"),
        (["passes", "unstable"], "unstable"),
        (["no data", "unstable"], "unstable"),
        (["passes", "inconclusive"], "inconclusive"),
        (["too few blocks", "inconclusive"], "too few blocks"),
        (["no data", "passes"], "trustworthy"),
        (["no data", "no data"], "no data"),
        ([], "no data"),
    ],
)
def test_word_for_the_study(verdicts, word):
    table = pd.DataFrame({"lead": ["dlrm", "bert"][: len(verdicts)], "verdict": verdicts})
    found, sentence = study_verdict(table)
    assert found == word
    assert sentence.endswith(".")


def test_the_sentence_names_the_lead():
    table = pd.DataFrame({"lead": ["dlrm", "bert", "swim"], "verdict": ["passes", "unstable", "no data"]})
    assert "for bert:" in study_verdict(table)[1]
    table["verdict"] = ["passes", "passes", "no data"]
    assert "no control for swim" in study_verdict(table)[1]


def manifest(block, **changes):
    return {
        "status": "measured",
        "reason": "",
        "spec": block.model_dump(mode="json"),
        "started": "2026-11-20T10:00:00+00:00",
        "seconds": {"launch": 5.0, "measure": 20.0, "total": 26.5},
        "rounds": 3,
        "windows": 15,
        "windows_rejected": 1,
        "platform": "measured",
        **changes,
    }


def test_blocks_table():
    failed = {"status": "failed", "reason": "stream@1 ended with code 1.", "seconds": {}, "rounds": 0, "windows": 0}
    table = blocks_table([manifest(TWO.blocks[3], **failed), manifest(TWO.blocks[1]), manifest(TWO.blocks[0])])
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(BLOCKS)
    assert table[["company", "block"]].to_numpy().tolist() == [["a", 1], ["a", 2], ["b", 1]]
    assert table["lead"].tolist() == ["dlrm", "dlrm", "bert"]
    assert table["status"].tolist() == ["measured", "measured", "failed"]
    assert table["launch_seconds"].isna().tolist() == [False, False, True]
