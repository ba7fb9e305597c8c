"""Variants of leads: the leads that a study gets, what it refuses, and whether one is more or less sensitive."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from castmates import project
from castmates.analysis.comparison.launches import variant_effects
from castmates.analysis.statistics.intervals import holm
from castmates.report.results import read_results
from castmates.report.text.variants import sentences
from castmates.study.confirmation import confirming
from castmates.study.replaying import catalogue_text, self_contained, workloads_of
from castmates.study.spec import Partition, Share, Variant
from tests.unit.printed_intervals import assert_told
from tests.unit.results_maker import make
from tests.unit.snapshots import assert_as_before, refusal
from tests.unit.windows_maker import cohort, mix, plan, written

ROOT = Path(__file__).parents[2]
STUDY = """
name: quantised
platform: modelled
leads: [net]
antagonists: [stream]
mixes: [{lead: net, antagonists: [stream, compute]}]
variants:
  net:
    - {name: int8, title: eight bits, model: {compute: 0.004, accesses: 100_000}}
    - {name: large, work: 4, cores: 2, options: {batch: 32}, variables: {TURBO: "1"}}
workloads:
  net:
    title: a net
    tags: [nets]
    variables: {QUIET: "1"}
    options: {batch: 8, size: tiny}
    model: {compute: 0.008, accesses: 200_000}
budget: {launches: 3, rounds: 2}
"""


HALF = Share(member="stream@1", quota=50, period=10)


def loaded(folder, monkeypatch, text=STUDY, name="quantised"):
    monkeypatch.chdir(ROOT)
    (folder / f"{name}.yaml").write_text(text)
    return project.load(folder / f"{name}.yaml")


def test_a_variant_is_a_lead_beside_everything_that_its_lead_is_beside(tmp_path, monkeypatch):
    ours = loaded(tmp_path, monkeypatch)
    assert ours.study.leads == ["net", "net.int8", "net.large"]
    planned = ours.plan()
    beside = {mix.name for mix in planned.mixes}
    assert beside == {f"{lead}+{who}" for lead in ours.study.leads for who in ("stream", "compute+stream")}
    assert planned.titles["net.int8"] == "eight bits"
    assert planned.titles["net.large"] == "a net, large"
    large = ours.study.workloads["net.large"]
    assert (large.cores, large.tags, large.options) == (2, [], {"batch": 32, "size": "tiny"})
    assert ours.workloads["net"].tags == ["nets"]
    assert [(each.workload, each.work) for each in planned.variants] == [("net.int8", 1.0), ("net.large", 4.0)]
    assert planned.variants[1].words == "batch 32, TURBO=1, 2 CPUs"
    # Nothing of the lead itself changes, so that a study that gets variants later measures its lead no second time.
    without = STUDY[: STUDY.index("variants:")] + STUDY[STUDY.index("workloads:") :]
    identities = {mix.identity for mix in loaded(tmp_path, monkeypatch, without, "before").plan().mixes}
    assert identities < {mix.identity for mix in planned.mixes}


def test_studies_that_castmates_writes_have_the_variants_and_no_more(tmp_path, monkeypatch):
    ours = loaded(tmp_path, monkeypatch)
    again = loaded(tmp_path, monkeypatch, ours.study.model_copy(update={"name": "again"}).text("again"), "again")
    assert again.study.leads == ours.study.leads
    assert len(again.plan().mixes) == len(ours.plan().mixes)
    (tmp_path / "workloads").mkdir()
    published = catalogue_text(workloads_of(ours.plan(), ours.workloads), "published")
    (tmp_path / "workloads" / "published.yaml").write_text(published)
    text = self_contained(ours.study, ours.plan()).model_copy(update={"name": "published"}).text("published")
    published = loaded(tmp_path, monkeypatch, text, "published")
    assert published.plan().variants == ours.plan().variants
    assert {mix.identity for mix in published.plan().mixes} == {mix.identity for mix in ours.plan().mixes}
    (tmp_path / "workloads" / "published.yaml").unlink()
    one = next(mix for mix in ours.plan().mixes if mix.name == "net.int8+stream")
    under = one.model_copy(update={"partitions": (Partition(name="quota-50", shares=(HALF,)),)})
    text = confirming(ours.study, ours.plan(), under, 3).text("confirmed")
    confirmed = loaded(tmp_path, monkeypatch, text, "confirmed").plan()
    assert {mix.name for mix in confirmed.mixes} == {"net.int8+stream"}


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path, monkeypatch):
    changes = [
        ("variants:\n  net:", "variants:\n  nets:"), ("name: large", "name: int8"), ("name: large", "name: base"),
        ("work: 4, ", ""), ("workloads:", "workloads:\n  net.int8: {model: {compute: 0.1}}"),
    ]  # fmt: skip

    def said(before, after):
        assert before in STUDY
        return refusal(loaded, tmp_path, monkeypatch, STUDY.replace(before, after, 1)).replace(str(tmp_path), "")

    assert_as_before("variants-refused", {f"{before!r} -> {after!r}": said(before, after) for before, after in changes})


BOTH = plan([cohort("c", mix("net@0", "stream@1")), cohort("d", mix("net.int8@0", "stream@1"))], launches=6).model_copy(
    update={"variants": (Variant(lead="net", name="int8", workload="net.int8", work=2.0, words="precision int8"),)}
)


def measured(losses, speeds):
    """The windows of both leads: by lead what the launches lose, on the log scale, and how fast they are alone."""

    def rate(launch, number, scene, member):
        lead = launch.cohort.lead.workload
        return math.exp(speeds[lead][launch.number - 1] - losses[lead][launch.number - 1] * scene.startswith("corun"))

    return written(BOTH, rate)


BASE_LOSSES, LOSSES = [0.30, 0.32, 0.29, 0.31, 0.30, 0.33], [0.10, 0.14, 0.11, 0.12, 0.09, 0.13]
SLOW, FAST = [0.0, 0.01, 0.02, 0.0, 0.01, 0.02], [0.5, 0.52, 0.48, 0.5, 0.51, 0.49]


def test_losses_and_speeds_are_compared_by_welch():
    windows = measured({"net": BASE_LOSSES, "net.int8": LOSSES}, {"net": SLOW, "net.int8": FAST})
    (row,) = variant_effects(BOTH, windows, 0.02).to_dict("records")
    wanted = stats.ttest_ind(LOSSES, BASE_LOSSES, equal_var=False)
    assert row["ratio"] == pytest.approx(math.exp(np.mean(LOSSES) - np.mean(BASE_LOSSES)))
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx(tuple(np.exp(wanted.confidence_interval(0.95))))
    assert row["p_holm"] == pytest.approx(wanted.pvalue)
    assert row["base_slowdown"] == pytest.approx(math.exp(np.mean(BASE_LOSSES)))
    assert (row["lead"], row["variant"], row["antagonists"]) == ("net", "int8", "stream")
    assert row["verdict"] == "less sensitive"
    speeds = stats.ttest_ind(FAST, SLOW, equal_var=False).confidence_interval(0.95)
    assert row["speed"] == pytest.approx(2 * math.exp(np.mean(FAST) - np.mean(SLOW)), rel=1e-6)
    assert (row["speed_low"], row["speed_high"]) == pytest.approx(tuple(2 * np.exp(speeds)))
    assert row["speed_beside"] == pytest.approx(row["speed"] / row["ratio"])
    turned = measured({"net": LOSSES, "net.int8": BASE_LOSSES}, {"net": SLOW, "net.int8": FAST})
    assert variant_effects(BOTH, turned, 0.02)["verdict"].to_list() == ["more sensitive"]
    alike = measured({"net": LOSSES, "net.int8": LOSSES}, {"net": SLOW, "net.int8": SLOW})
    assert variant_effects(BOTH, alike, 0.05)["verdict"].to_list() == ["no difference"]
    assert variant_effects(BOTH.model_copy(update={"variants": ()}), windows, 0.02).empty


PAIRS = 600


@pytest.mark.simulation
def test_the_intervals_of_variants_hold_the_truth():
    """600 leads, each with a variant: three launches of a quiet lead, eight of a variant that scatters more."""
    rng = np.random.default_rng(20261127)
    cohorts = [
        cohort(f"{lead}-c", mix(f"{lead}@0", "stream@1"))
        for pair in range(PAIRS)
        for lead in (f"n{pair}", f"n{pair}.int8")
    ]
    whole = plan(cohorts, launches=8)
    launches = tuple(launch for launch in whole.launches if launch.number <= 3 or launch.cohort.id.endswith("int8-c"))
    variants = tuple(Variant(lead=f"n{pair}", name="int8", workload=f"n{pair}.int8") for pair in range(PAIRS))
    whole = whole.model_copy(update={"launches": launches, "variants": variants})
    drawn = {
        launch.path: (rng.normal(0.1, 0.03), rng.normal(0.5, 0.05))
        if ".int8" in launch.cohort.id
        else (rng.normal(0.3, 0.01), rng.normal(0.0, 0.02))
        for launch in launches
    }

    def rate(launch, number, scene, member):
        loss, speed = drawn[launch.path]
        return math.exp(speed - loss * scene.startswith("corun"))

    table = variant_effects(whole, written(whole, rate, rounds=1), 0.02)
    truths = {"ratio": -0.2, "slowdown": 0.1, "base_slowdown": 0.3, "speed": 0.5, "speed_beside": 0.7}
    shares = {
        name: float(((table[f"{name}_low"] < math.exp(log)) & (math.exp(log) < table[f"{name}_high"])).mean())
        for name, log in truths.items()
    }
    assert_told("variant_effects", "ratio_low", shares["ratio"])
    assert_told("variant_effects", "slowdown_low", shares["slowdown"], shares["base_slowdown"])
    assert_told("variant_effects", "speed_low", shares["speed"], shares["speed_beside"])


def results(folder, launches):
    """A study whose lead has a variant that loses less, in up to six launches."""
    table = variant_effects(
        BOTH, measured({"net": BASE_LOSSES, "net.int8": LOSSES}, {"net": SLOW, "net.int8": FAST}), 0.02
    )
    own = table.assign(launches=launches, base_launches=launches)
    return replace(read_results(make(folder, launches=launches)), variant_effects=own)


def test_sentences_say_what_is_proven(tmp_path):
    found = results(tmp_path / "study", 3)
    assert_as_before("variants", {"a variant that loses less": sentences(found)})
    table = found.variant_effects
    assert table["p_holm"].to_numpy() == pytest.approx(holm(table["p_value"]))
