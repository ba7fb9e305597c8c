"""The flag of scenes that were rejected more often than their baseline: the same in every table, and on the page."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.effects.system import ALONE, system_metrics
from castmates.analysis.explanations.services import latencies
from castmates.report.figures.index import FIGURES
from castmates.report.page.page import page
from castmates.report.results import Results
from castmates.report.text import latency, system
from tests.unit.windows_maker import cohort, mix, plan, written

OF = plan([cohort("c", mix("bert@0", "stream@1")), cohort("d", mix("bert@0", "chase@2"))], launches=4)
BIASED, OTHER = "bert+stream", "bert+chase"
SCENES = [
    "alone",
    "placebo:1",
    "antagonist-alone:stream@1",
    "antagonist-alone:chase@2",
    f"corun:{BIASED}",
    f"corun:{OTHER}",
]


def windows(lost, member="", **how):
    """Five rounds in each of four launches; of each scene (and member) the first so many windows are rejected."""

    def rate(launch, number, scene, name):
        first = (launch.number - 1) * 5 + number <= lost.get(scene, 0)
        return None if first and member in ("", name) else 1.0

    return written(OF, rate, rounds=5, **how)


def flagged(table, column):
    return set(table.loc[table["possibly_biased"], column])


@pytest.mark.parametrize("member", ["bert@0", "stream@1"])
def test_a_mix_is_flagged_where_any_of_its_members_is(member):
    found = system_metrics(OF, windows({f"corun:{BIASED}": 8}, member))
    assert flagged(found, "mix") == {BIASED}
    assert found.loc[found["mix"] == BIASED, "possibly_biased"].all(), "every metric rests on the same windows"


def test_a_scene_is_flagged_with_all_its_quantiles():
    found = latencies(OF, windows({"placebo:1": 8}), [])
    assert set(map(tuple, found.loc[found["possibly_biased"], ["member", "scene"]].to_numpy())) == {
        ("bert@0", "placebo:1")
    }
    assert found["possibly_biased"].sum() == 3


@pytest.mark.parametrize("lost", [{}, {"alone": 8, "antagonist-alone:stream@1": 8}, dict.fromkeys(SCENES, 8)])
def test_what_is_lost_alike_or_by_the_baseline_is_no_flag(lost):
    assert not system_metrics(OF, windows(lost))["possibly_biased"].any()
    assert flagged(latencies(OF, windows(lost), []), "kind") <= {"placebo"} - set(lost)


def test_a_scene_alone_is_never_rejected_more_often_than_itself():
    assert not flagged(latencies(OF, windows({"alone": 16}), []), "kind")


def test_the_flag_of_one_platform_is_not_that_of_another():
    both = pd.concat([windows({f"corun:{BIASED}": 8}), windows({}, platform="modelled")])
    for table in (system_metrics(OF, both), latencies(OF, both, [])):
        assert flagged(table, "platform") == {"measured"}


def test_slices_that_went_with_their_window_are_no_evidence_besides_it():
    """Two windows of twenty are no sign of bias; their sixteen slices would be one."""
    lost = windows({f"corun:{BIASED}": 2}).assign(slices=8)
    lost["slices_rejected"] = lost["slices"].where(~lost["valid"], 0)
    effects = estimate_effects(OF, lost, 0.02)
    assert effects["rejection_rate"].max() == pytest.approx(0.1)
    assert not effects["possibly_biased"].any()
    assert not system_metrics(OF, lost)["possibly_biased"].any()


def test_nothing_measured_is_no_flag():
    assert not system_metrics(OF, windows({})[:0])["possibly_biased"].any()
    only = windows({})
    assert not system_metrics(OF, only[only["cohort"] == "c"])["possibly_biased"].any()


@settings(max_examples=5, deadline=None)
@given(st.dictionaries(st.sampled_from(SCENES), st.integers(0, 20)), st.sampled_from(["", "bert@0", "stream@1"]))
def test_all_tables_go_by_one_rule(lost, member):
    table = windows(lost, member)
    effects = estimate_effects(OF, table, 0.02)
    effects = effects[effects["baseline"] == ALONE].set_index(["mix", "member"])["possibly_biased"]
    found = system_metrics(OF, table).drop_duplicates("mix").set_index("mix")["possibly_biased"]
    assert found.to_dict() == effects.groupby("mix").any().to_dict()
    steps = latencies(OF, table, []).query("kind == 'corun'").drop_duplicates(["mix", "member"])
    for row in steps.to_dict("records"):
        assert row["possibly_biased"] == effects[row["mix"], row["member"]]


def test_the_page_marks_both_tables_and_says_why():
    def made(lost):
        table = windows(lost)
        return Results(
            "synthetic", windows=table,
            system=system_metrics(OF, table), latency=latencies(OF, table, []),
        )  # fmt: skip

    results = made({f"corun:{BIASED}": 8})
    html = page(results, dict.fromkeys(FIGURES, "<svg></svg>"))
    for name in ("system metrics", "step latencies"):
        part = html.split(f'aria-label="Table of {name}"')[1].split("<h")[0]
        rows = [row for row in part.split("<tr>") if "†</td>" in row]
        assert rows, name
        assert all(BIASED in row and 'class="n biased"' in row for row in rows)
        assert "† Possibly biased: windows of this" in part
    said = [sentence for sentence in system.sentences(results) if "possibly biased by rejected windows" in sentence]
    assert len(said) == 1
    assert said[0].startswith("bert + stream")
    clean = made({})
    assert "†" not in page(clean, dict.fromkeys(FIGURES, "<svg></svg>"))
    assert len(latency.rows(clean)) == len(latency.rows(results))
