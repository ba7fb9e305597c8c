"""A sweep over untested masks is stamped so wherever its numbers stand; no other study is."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from castmates.analysis.effects.stamps import stamps_table
from castmates.report.figures.index import FIGURES
from castmates.report.page.page import page
from castmates.report.results import read_results
from castmates.report.text.stamps import caveat, stamped
from castmates.study.partitions.partitions import masked
from castmates.study.spec import UNMANAGED, Mix, Partition, Share
from tests.unit.caches import cache
from tests.unit.rdt_trials import trial
from tests.unit.results_maker import MACHINE, make

TRIED = trial()


def swept(folder, rdt_trial=None, platform="measured", partition="split-4", bandwidth=None):
    make(folder, platform=platform, machine=MACHINE | {"rdt_trial": rdt_trial})
    file = folder / "tables/effects.parquet"
    effects = pd.read_parquet(file)
    effects.loc[effects.index[-1], "partition"] = partition
    effects.to_parquet(file, index=False)
    results = read_results(folder)
    shares = (Share(member="a@0", ways=0xF, bandwidth=bandwidth),) if partition != UNMANAGED else ()
    tried = Partition(name=partition, shares=shares)
    mix = Mix(name="a+b", identity="tried", lead="a@0", antagonists=("b@1",), partitions=(tried,))
    return replace(results, plan=results.plan.model_copy(update={"mixes": (mix,), "cache": cache()}))


def html_of(results):
    return page(results, dict.fromkeys(FIGURES, "<svg></svg>"))


@pytest.mark.parametrize(
    ("rdt_trial", "state", "words"),
    [
        (None, "bad", "cache partitions unverified"),
        (TRIED, "good", "cache partitions verified"),
        (
            trial(isolation="not isolated"),
            "bad",
            "cache partitions unverified",
        ),
    ],
)
def test_a_sweep_is_stamped_on_page_and_figures(tmp_path, rdt_trial, state, words):
    results = swept(tmp_path / "study", rdt_trial)
    html = html_of(results)
    assert words in re.findall(rf'<span class="stamp {state}"[^>]*>([^<]*)</span>', html)
    assert words in stamped(results)
    assert (words in caveat(results)) == (state == "bad")
    assert ("Cache partitions are not verified" in html) == (state == "bad"), "a card of the first screen"
    if rdt_trial and state == "bad":
        assert "Of isolation." in html


@pytest.mark.parametrize(("platform", "partition"), [("measured", "unmanaged"), ("modelled", "split-4")])
def test_no_other_study_is(tmp_path, platform, partition):
    results = swept(tmp_path / "study", platform=platform, partition=partition)
    assert not re.search(r"cache partitions (un)?verified", html_of(results))
    assert "partitions" not in stamped(results) + caveat(results)


def test_the_tables_have_it_beside_them(tmp_path):
    results = swept(tmp_path / "study")
    table = stamps_table("study", results.controls, masked(results.plan), results.platforms, MACHINE)
    row = table.set_index("stamp").loc["masks"]
    assert (row["word"], row["good"]) == ("unverified", False)
    assert "castmates doctor --verify-rdt" in row["sentence"]
    tried = stamps_table("study", results.controls, masked(results.plan), ["measured"], MACHINE | {"rdt_trial": TRIED})
    assert tried.set_index("stamp").loc["masks"]["sentence"].startswith("Verified on this machine, at ")
    table = stamps_table("study", results.controls, set(), results.platforms, MACHINE)
    assert table["stamp"].tolist() == ["control", "sensitivity"]


@pytest.mark.parametrize(
    ("platform", "bandwidth", "unit", "said"),
    [
        ("measured", 30, "%", "Streams keep this share of their rate: at 30 %, 60 % on 1 core and 84 % on 8 cores."),
        ("measured", None, "%", ""),
        ("measured", 20, "%", ""),  # a step that was not tried
        ("measured", 30, "MB/s", ""),  # the study's cache has another unit
        ("modelled", 30, "%", ""),
        ("rehearsed", 30, "%", ""),  # where a throttle did nothing
    ],
)
def test_the_page_says_what_throttles_of_the_study_were_measured_to_leave(tmp_path, platform, bandwidth, unit, said):
    curves = [
        {"cores": cores, "curve": [{"step": 100, "bytes_per_s": free}, {"step": 30, "bytes_per_s": slowed}]}
        for cores, free, slowed in [(1, 12e9, 7.2e9), (8, 28.66e9, 23.95e9)]
    ]
    record = trial() | {"caches": [{"throttles": {"curves": curves}}], "equal_steps": {"unit": unit, "steps": []}}
    html = html_of(swept(tmp_path / "study", record, platform=platform, bandwidth=bandwidth))
    assert ("Streams keep" in html) == bool(said)
    assert said in html.replace("\N{NO-BREAK SPACE}", " ")
