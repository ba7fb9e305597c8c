"""A study with a mask sweep, under Snakemake, on an emulated processor whose cache obeys masks.

What is found is compared with what the emulator says happened.
"""

import json

import pytest

from castmates.report.page.page import page, shown
from tests.lab.shapes import SHAPES
from tests.lab.swept import ALL_WAYS, LEAD, NIGHTLY, OTHER, PARTITIONS, WAYS, sweep, table
from tests.lab.truth import LINE

NOBODY = 65534
ENOUGH = 4  # a huge page fills four ways of each set
# By driver and seed; at landings the first.
SWEEPS = [(driver, seed) for driver in ("resctrl", "pqos") for seed in (1, 2, 3)]
SWEEPS = SWEEPS if NIGHTLY else SWEEPS[:1]


def aside(lab):
    """Run the sweeps, each in a guest."""
    return {(driver, seed): sweep(lab, SHAPES["server"], driver, {"seed": seed}) for driver, seed in SWEEPS}


@pytest.fixture(scope="module", params=SWEEPS, ids=lambda sweep: f"{sweep[0]}-{sweep[1]}")
def swept(request, beside):
    """One sweep."""
    found = beside[request.param]
    assert found.code == 0, found.told
    return found


@pytest.fixture(scope="module")
def plain(beside):
    """That of a plain user."""
    found = beside[SWEEPS[0]]
    assert found.code == 0, found.told
    return found


def test_every_window_carries_the_masks_that_were_read_back(swept):
    windows = swept.windows
    assert set(windows.partition) == set(PARTITIONS)
    for partition, ways in PARTITIONS.items():
        for member, wanted in zip((LEAD, OTHER), ways, strict=True):
            rows = windows[(windows.partition == partition) & (windows.member == member)]
            assert (rows.ways == wanted).all(), (partition, member, rows.ways.tolist())
            assert rows.schemata.str.contains("L3:0=").all()
    assert windows.valid.any(), windows.reasons.value_counts()  # how many depends on what else the host does
    assert set(windows.platform) == {"emulated"}


def test_readings_are_what_the_emulator_counted(swept):
    """What the lead holds beside the other, what it moves and what it misses in a second."""
    truth, key = swept.truth.by_ways(beside=True), ["launch", "window"]
    corun = swept.windows[(swept.windows.kind == "corun") & swept.windows.valid & (swept.windows.member == LEAD)]
    of_lead = corun[[*key, "partition"]].drop_duplicates()
    samples = table(swept.share, "samples").query("subject == @LEAD").merge(of_lead, on=key)
    read = samples.groupby(["partition", "metric"]).value.median().fillna(0)  # pqos shows no 0
    counts = table(swept.share, "counters").query("member == @LEAD").merge(of_lead, on=key)
    counted = counts.groupby(["partition", "event"]).value.sum()
    for partition in of_lead.partition.unique():
        happened = truth.loc[PARTITIONS[partition][0]]
        misses = 1e9 * counted[partition, "cache-misses"] / counted[partition, "task-clock"]
        assert misses == pytest.approx(happened.misses, rel=0.1, abs=3000), partition
        moved, held = LINE * (happened.read + happened.written), LINE * happened.lines
        # pqos counts in tenths of a MiB by CPU, and runs itself: what just fits is disturbed by it.
        beside_it = 2**20 if swept.driver == "resctrl" else 2**22
        assert read[partition, "mbm_total"] == pytest.approx(moved, rel=0.05, abs=beside_it), partition
        if swept.driver == "resctrl":  # pqos gives ids to what is filled from then on
            assert read[partition, "llc_occupancy"] == pytest.approx(held, rel=0.01, abs=2**16), partition


def test_losses_are_those_that_the_emulator_counted(swept):
    """The lead's rate under each partition, against its rate alone."""
    beside, alone = swept.truth.by_ways(beside=True), swept.truth.by_ways(beside=False)
    effects = swept.results.effects
    rows = effects[(effects.member == LEAD) & (effects.baseline == "alone") & (effects.antagonists != "")]
    assert set(rows.partition) == set(PARTITIONS) - {"lead-2"}
    for row in rows.itertuples():
        truth = beside.asked[PARTITIONS[row.partition][0]] / alone.asked[ALL_WAYS]
        assert 1 / row.slowdown == pytest.approx(truth, rel=0.02, abs=0.005), row.partition


def test_what_is_attributed_to_the_cache_is_what_the_emulator_counted(swept):
    """Between own ways and none; what own ways leave is next to nothing."""
    beside, alone = swept.truth.by_ways(beside=True), swept.truth.by_ways(beside=False)
    kept = 100 * beside.asked / alone.asked[ALL_WAYS]
    parts = swept.results.attribution.query("member == @LEAD").set_index("part").points
    assert parts["cache capacity"] == pytest.approx(kept[ENOUGH + 1] - kept[ALL_WAYS], abs=1)
    assert parts["not given back"] == pytest.approx(100 - kept[ENOUGH + 1], abs=1)


def test_the_ways_that_are_recommended_are_those_that_are_enough(swept):
    beside, alone = swept.truth.by_ways(beside=True), swept.truth.by_ways(beside=False)
    kept = beside.asked[list(WAYS)] / alone.asked[ALL_WAYS]
    enough = max(kept.index[kept < 0.95]) + 1
    (advice,) = swept.results.recommendations.itertuples()
    assert advice.verdict == "knee"
    assert abs(int(advice.partition.removeprefix("split-")) - enough) <= 1
    assert enough == ENOUGH + 1  # what else the lead touches needs some of a fifth way


def test_every_window_has_the_kernels_readings_of_its_members(plain):
    samples, key = table(plain.share, "samples"), ["launch", "window"]
    occupancy = samples[(samples.metric == "llc_occupancy") & (samples.source == "resctrl") & samples.value.notna()]
    readings = occupancy.groupby([*key, "subject"]).size()
    measured = plain.windows[plain.windows.valid].groupby([*key, "member"]).size()
    placebos = measured.index.get_level_values("member").str.startswith("placebo")
    assert set(measured.index[~placebos]) <= set(readings.index)
    assert readings.median() >= 3


def test_results_are_stamped_emulated(plain):
    effects = plain.results.effects
    assert set(effects.platform) == {"emulated"}
    of_partition = effects[(effects.partition == "split-3") & (effects.member == LEAD)]
    assert set(of_partition.lead_ways) == {3}
    assert {"alone", "placebo", "placebo@mask", "unmanaged"} <= set(of_partition.baseline)
    words = page(plain.results, dict.fromkeys(shown(plain.results), "<svg></svg>"))
    assert "Emulated: a real kernel, but its processor is a model" in words


def test_the_sweep_was_a_plain_users(plain):
    record = json.loads(next((plain.share / "results/small/launches").glob("*/*/launch.json")).read_text())
    assert record["freezer"] == "cgroup", record["freezer"]
    assert (plain.share / "results/small/plan.json").stat().st_uid == NOBODY
    assert "resctrl is mounted" in (plain.share / "granted").read_text()


def test_what_was_changed_is_taken_back(swept):
    assert "schemata: No such file" in (swept.share / "before").read_text()
    assert (swept.share / "after").read_text() == (swept.share / "before").read_text()
