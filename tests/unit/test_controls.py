"""The A/A control, the word that it gives a study, and the tables that the script writes."""

import math

import numpy as np
import pandas as pd
import pytest

from castmates.analysis.effects.effects import estimate_controls, estimate_effects
from castmates.analysis.effects.pooling import launches_table
from castmates.analysis.effects.stamps import sensitivity, study_verdict
from castmates.analysis.effects.verdicts import CONTROL_LEVEL
from castmates.analysis.statistics.intervals import estimate, more_than
from castmates.results.columns.launch import WINDOWS
from castmates.results.columns.study import CONTROLS, LAUNCHES, frame
from tests.unit.windows_maker import cohort, mix, plan, written

TWO = plan([cohort("a", mix("dlrm@0", "stream@1")), cohort("b", mix("bert@0", "stream@1"))], launches=3)
STEADY = (0.001, -0.001, 0.0005)


def controls(losses, of=TWO, margin=0.02):
    """`losses` by lead: log rate(alone) - log rate(alone-again) in each launch."""

    def rate(launch, number, scene, member):
        again = scene == "alone-again"
        return math.exp(-losses[launch.cohort.lead.workload][launch.number - 1]) if again else 1.0

    return estimate_controls(of, written(of, rate), margin)


def test_ratio_and_interval_by_hand():
    table = controls({"dlrm": (0.1, 0.2, 0.3), "bert": STEADY})
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(CONTROLS)
    assert table["lead"].tolist() == ["dlrm", "bert"]
    half = 4.302652729696142 * 0.1 / math.sqrt(3)
    assert table.iloc[0][["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx(
        [math.exp(0.2), math.exp(0.2 - half), math.exp(0.2 + half)]
    )
    assert (table.iloc[0]["launches"], table.iloc[0]["rounds"]) == (3, 9)


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        (STEADY, "passes"),
        ((0.1, 0.1001, 0.0999), "unstable"),
        ((0.0100, 0.0101, 0.0099), "unstable"),  # small, but certainly not the same
        ((0.1, -0.1, 0.05), "inconclusive"),
        ((0.03, 0.02, 0.027), "inconclusive"),  # narrow enough, but off by more than the margin
        ((0.017, 0.007, 0.012), "inconclusive"),  # narrow, and its middle within, but it reaches beyond the margin
    ],
)
def test_verdicts(losses, verdict):
    assert controls({"dlrm": losses, "bert": STEADY})["verdict"].tolist() == [verdict, "passes"]


def test_holm_counts_the_leads():
    table = controls({"dlrm": (0.01, 0.02, 0.018), "bert": STEADY})
    assert table["p_holm"].min() == pytest.approx(2 * table["p_value"].min())


def test_a_lead_with_several_cohorts_is_one_row():
    lead = plan([cohort("a", mix("dlrm@0", "stream@1")), cohort("b", mix("dlrm@0", "chase@1"))], launches=2)
    table = controls({"dlrm": (0.0, 0.001)}, lead)
    assert (len(table), table.iloc[0]["launches"]) == (1, 4)


def test_too_few_launches_and_no_data():
    one = plan([cohort("a", mix("dlrm@0", "stream@1"))], launches=2)
    assert controls({"dlrm": (0.0, 0.0)}, one)["verdict"].tolist() == ["too few launches"]
    assert estimate_controls(one, frame([], WINDOWS), 0.02)["verdict"].tolist() == ["no data"]


def judged(*verdicts):
    """A/A controls of the study's own leads."""
    rows = [known("A/A", word, lead, True) for word, lead in zip(verdicts, ["dlrm", "bert", "swim"], strict=False)]
    return pd.DataFrame(rows, columns=list(known("A/A", ""))).astype({"study_lead": bool})


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        (["passes", "passes"], "trustworthy"),
        (["passes", "unstable"], "unstable"),
        (["no data", "unstable"], "unstable"),
        (["passes", "inconclusive"], "inconclusive"),
        (["too few launches", "inconclusive"], "too few launches"),
        (["no data", "passes"], "trustworthy"),
        (["no data", "no data"], "no data"),
        ([], "no data"),
    ],
)
def test_word_for_the_study(verdicts, word):
    table = judged(*verdicts)
    found, sentence = study_verdict(table)
    assert found == word
    assert sentence.endswith(".")


def test_the_sentence_names_the_lead():
    assert "for bert:" in study_verdict(judged("passes", "unstable", "no data"))[1]
    assert "no control for swim" in study_verdict(judged("passes", "passes", "no data"))[1]


def test_what_passes_is_told_by_the_largest_difference_that_it_leaves_possible():
    table = judged("passes", "passes")
    table["ratio_low"], table["ratio_high"] = [0.9876, 0.999], [1.001, 1.008]
    assert study_verdict(table)[1] == (
        "The same scene was run twice: no difference larger than 1.3 % was seen for dlrm and bert."
    )


def known(kind, verdict, lead="chase", study_lead=False):
    ends = {"ratio_low": 0.99, "ratio_high": 1.01}
    return {"lead": lead, "control": kind, "verdict": verdict, "study_lead": study_lead, "mix": f"{lead}+x"} | ends


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (known("A/A", "unstable"), "unstable"),  # it is the same machine
        (known("negative", "unstable", "compute"), "unstable"),
        (known("A/A", "inconclusive"), "trustworthy"),  # how coarse chase is shows nothing of the study's leads
        (known("A/A", "too few launches"), "trustworthy"),
        (known("negative", "inconclusive", "compute"), "trustworthy"),
        (known("positive", "no sensitivity shown here"), "trustworthy"),  # a separate word
    ],
)
def test_what_the_controls_of_a_study_say_of_it(row, word):
    found, sentence = study_verdict(pd.concat([judged("passes"), pd.DataFrame([row])]))
    assert found == word
    assert ("No answer yet" in sentence) is (row["verdict"] in ("inconclusive", "too few launches"))


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        (["sensitive"], "sensitive"),
        (["no sensitivity shown here"], "no sensitivity shown here"),
        (["sensitive", "no sensitivity shown here"], "no sensitivity shown here"),
        (["too few launches"], "too few launches"),
        (["no data"], "not measured"),
        ([], "not measured"),
    ],
)
def test_word_for_the_sensitivity(verdicts, word):
    rows = [pd.DataFrame([known("positive", verdict)]) for verdict in verdicts]
    found, sentence = sensitivity(pd.concat([judged("passes"), *rows]))
    assert found == word
    assert sentence.endswith(".")


POSITIVE, NEGATIVE = mix("chase@0", "stream@1"), mix("compute@0", "compute@1")
FOUR = plan(
    [cohort("a", POSITIVE), cohort("b", NEGATIVE), cohort("c", mix("dlrm@0", "stream@1"))],
    launches=4,
    controls={"positive": POSITIVE, "negative": NEGATIVE},
)


def outcomes(positive=0.2, negative=0.0, placebo=0.05, of=FOUR):
    """The controls where these are the losses against placebo."""

    def rate(launch, number, scene, member):
        wobble = 0.001 * ((launch.number + len(scene)) % 3)
        if scene.startswith("placebo"):
            return math.exp(-placebo - wobble)
        loss = {"chase": placebo + positive, "compute": placebo + negative, "dlrm": 0.1}[launch.cohort.lead.workload]
        return math.exp(-wobble - (loss if scene.startswith("corun") and member.endswith("@0") else 0))

    return estimate_controls(of, written(of, rate), 0.02)


def varied(launch, number, scene, member):
    return 1.0 + 0.01 * len(scene) * launch.number


def row_of(table, control):
    (row,) = table[table["control"] == control].to_dict("records")
    return row


def test_the_studys_own_leads_come_first_and_every_control_has_a_row():
    table = outcomes()
    assert table[["control", "lead", "mix", "baseline", "study_lead"]].to_numpy().tolist() == [
        ["A/A", "dlrm", "", "alone", True],
        ["A/A", "chase", "", "alone", False],
        ["A/A", "compute", "", "alone", False],
        ["positive", "chase", "chase+stream", "placebo", False],
        ["negative", "compute", "compute+compute", "placebo", False],
    ]
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(CONTROLS)


def test_a_positive_control_must_lose_more_than_the_margin_and_by_itself():
    found = row_of(outcomes(positive=0.2), "positive")
    assert (found["verdict"], found["p_holm"]) == ("sensitive", found["p_value"])
    assert found["ratio"] == pytest.approx(math.exp(0.2), rel=2e-3)
    # 1 % is a loss for certain (launches scatter by a tenth of it), and the study would call it none.
    for loss in (0.01, 0.0, -0.2):
        assert row_of(outcomes(positive=loss), "positive")["verdict"] == "no sensitivity shown here"
    assert row_of(outcomes(positive=-0.2), "positive")["p_value"] > 0.99


@pytest.mark.parametrize("placebo", [0.0, 0.3])
def test_what_a_busy_core_costs_by_itself_is_no_sensitivity(placebo):
    """Turbo and power that a placebo takes too passed for a loss, when the control was held against alone."""
    assert row_of(outcomes(positive=0.0, placebo=placebo), "positive")["verdict"] == "no sensitivity shown here"
    assert row_of(outcomes(positive=0.2, placebo=placebo), "positive")["verdict"] == "sensitive"


@pytest.mark.parametrize(("loss", "verdict"), [(0.0, "passes"), (0.1, "unstable"), (-0.1, "unstable")])
def test_the_negative_control_is_judged_against_its_placebo(loss, verdict):
    """What the placebo costs too, such as the turbo that any busy antagonist takes, is no fault."""
    assert row_of(outcomes(negative=loss, placebo=0.3), "negative")["verdict"] == verdict


def test_all_that_must_not_differ_is_one_family():
    table = outcomes(negative=0.004)
    same = table[table["control"] != "positive"]
    smallest = same["p_value"].idxmin()
    assert same.loc[smallest, "p_holm"] == pytest.approx(min(1, len(same) * same.loc[smallest, "p_value"]))


def test_a_control_that_is_also_a_result_is_both():
    both = plan([cohort("a", POSITIVE)], launches=4, mixes=[POSITIVE], controls={"positive": POSITIVE})
    table = outcomes(of=both)
    assert table[["control", "study_lead"]].to_numpy().tolist() == [["A/A", True], ["positive", True]]
    windows = written(both, varied)
    assert set(estimate_effects(both, windows, 0.02)["mix"]) == {"chase+stream"}


def test_controls_are_no_effects_and_count_in_no_family_of_theirs():
    windows = written(FOUR, varied)
    found = estimate_effects(FOUR, windows, 0.02)
    assert set(found["mix"]) == {"dlrm+stream"}
    assert found["p_holm"].tolist() == found["p_value"].tolist()


def manifest(launch, **changes):
    return {
        "status": "measured",
        "reason": "",
        "spec": launch.model_dump(mode="json"),
        "started": "2026-11-20T10:00:00+00:00",
        "seconds": {"launch": 5.0, "measure": 20.0, "total": 26.5},
        "rounds": 3,
        "windows": 15,
        "windows_rejected": 1,
        "platform": "measured",
        **changes,
    }


def test_launches_table():
    failed = {"status": "failed", "reason": "stream@1 ended with code 1.", "seconds": {}, "rounds": 0, "windows": 0}
    table = launches_table([manifest(TWO.launches[3], **failed), manifest(TWO.launches[1]), manifest(TWO.launches[0])])
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(LAUNCHES)
    assert table[["cohort", "launch"]].to_numpy().tolist() == [["a", 1], ["a", 2], ["b", 1]]
    assert table["lead"].tolist() == ["dlrm", "dlrm", "bert"]
    assert table["status"].tolist() == ["measured", "measured", "failed"]
    assert table["launch_seconds"].isna().tolist() == [False, False, True]


@pytest.mark.simulation
def test_a_positive_control_is_seldom_called_sensitive_where_its_loss_is_the_margin():
    """One time in a hundred; docs/methodology.md has the shares that are found of larger losses."""
    chance, studies, edge = np.random.default_rng(20261123), 4000, math.log1p(0.03)

    def found(loss: float, launches: int, spread: float = 0.015) -> float:
        logs = chance.normal(loss, spread, (studies, launches))
        pairs = pd.DataFrame(
            {
                "row": np.repeat(np.arange(studies), launches),
                "cohort": "c",
                "launch": np.tile(np.arange(launches), studies),
                "difference": logs.ravel(),
            }
        )
        estimates = estimate(pairs, by=["row"])
        return float((more_than(estimates, edge) < CONTROL_LEVEL).mean())

    for launches in (3, 6, 10):
        assert found(edge, launches) == pytest.approx(0.01, abs=0.005)
    assert found(0.06, 6) == pytest.approx(0.89, abs=0.02)
    assert found(0.10, 6) > 0.99
