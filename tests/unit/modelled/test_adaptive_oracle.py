"""Adaptive studies on the modelled machine, whose truth is known: intervals after stopping, bounds, errors, answers.

    python -m tests.unit.modelled.test_adaptive_oracle

prints the table of docs/methodology.md.
"""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from castmates.analysis.design.adaptive import CLEARLY, halves
from castmates.analysis.partitions.sensitivity import Measured, interpolate
from castmates.analysis.statistics.intervals import quantile
from castmates.study.budget_keys import FRESH
from castmates.study.curves import curves, questions
from tests.unit.modelled.adaptive_studies import TOGETHER, Came, Setting, play, printed
from tests.unit.printed_intervals import assert_told

SEED = 20261126
FULL, SHORT = 2000, 100  # studies of a setting
BUDGET = "adaptive: true, batch: 2, window: 0.3, settle: 0.1, mixes_per_launch: 64, longest_launch: 36000"
HEAD = """
name: example
platform: modelled
leads: [ranking]
controls: null
"""
WAYS = "antagonists: [flood]\ncache: {sweeps: [{split: all}, {lead_ways: all}]}\n"
QUOTAS = (
    "mixes: [{lead: ranking, antagonists: [flood], share: {quota: [10%, 20%, 30%, 40%, 50%, 60%, 70%, 80%, 90%]}}]\n"
)


def text_of(grid, first=4, most=12, way_size="1.5 MiB", limit=None):
    budget = f"budget: {{{BUDGET}, launches: {first}, most_launches: {most}}}\n"
    limited = f"recommend: {{lead_loss: {limit}%}}\n" if limit else ""
    return HEAD + grid + budget + limited + f"model: {{ways: 12, way_size: {way_size}}}\n"


SETTINGS = {
    "no limit": text_of(WAYS),
    "a limit far from most cells": text_of(WAYS, limit=4),
    "a cell at the limit": text_of(WAYS, limit=8),
    "a cell half a point from it": text_of(WAYS, limit=12, first=5, most=20),
    "larger ways, more launches": text_of(WAYS, way_size="2 MiB", limit=11, most=16),
    "quotas": text_of(QUOTAS, limit=12),
}


@dataclass
class Outcome:
    """What many studies of a setting came to."""

    saved: float  # share of the windows of the full grid
    covers: dict  # by cell: how often its printed interval holds the truth, and in how many studies it has one
    bounds: float  # share of bounds that hold the truth
    against_full: float  # mean error in points, all cells of curves
    largest: float
    against_truth: float
    interpolated: float  # share of these cells
    wrong: float  # share of answers
    saved_by: np.ndarray  # by study
    error_by: np.ndarray  # by study, mean over the cells

    @property
    def often(self):
        """How often the intervals of cells cover that a quarter of the studies measured, at least."""
        most = max(count for _, count in self.covers.values())
        return [share for share, count in self.covers.values() if count >= most / 4]

    @property
    def coverage(self):
        """Over all cells and studies."""
        return sum(share * count for share, count in self.covers.values()) / sum(
            count for _, count in self.covers.values()
        )


def simulated(text, studies, tmp_path, seed=SEED):
    setting = Setting.of(tmp_path, text)
    rng, came, drawn = np.random.default_rng(seed), [], []
    for _ in range(0, studies, TOGETHER):
        for values in setting.drawn(rng, TOGETHER):
            came.append(play(setting, values))
            drawn.append(values)
    return outcome_of(setting, came, drawn)


def outcome_of(setting: Setting, came: list[Came], drawn: list[np.ndarray]) -> Outcome:
    full = setting.looks[-1] * setting.rounds * setting.scenes_of(set(setting.cells))
    rows = printed(came, drawn)
    rows["true"] = setting.true[rows["cell"]]
    held = rows[rows["low"].notna()]
    held = held.assign(hit=(held["low"] <= held["true"]) & (held["true"] <= held["high"]))
    covers = {
        setting.names[cell]: (float(own["hit"].mean()), len(own)) for cell, own in held.groupby("cell")
    }  # fmt: skip
    errors = Errors(setting)
    by_study = []
    for number, own in rows.groupby("study"):
        begin = len(errors.to_full)
        errors.add(own.set_index("cell"), np.nanmean(drawn[number], axis=0))
        by_study.append(float(np.mean(errors.to_full[begin:])))
    asks = questions(setting.plan.mixes, setting.limit, setting.margin)
    true = dict(zip(setting.cells, setting.true, strict=True))
    answers = [
        (each.answer == "more") == (true[each.identity] > asks[each.identity].edge)
        for one in came for each in one.asked if each.answer in ("more", "less")
    ]  # fmt: skip
    return Outcome(
        saved=1 - float(np.mean([one.windows for one in came])) / full,
        covers=covers,
        bounds=float(np.mean(errors.within)) if errors.within else 1.0,
        against_full=float(np.mean(errors.to_full)),
        largest=float(np.max(errors.to_full)),
        against_truth=float(np.mean(errors.to_truth)),
        interpolated=len(errors.within) / len(errors.to_full),
        wrong=1 - float(np.mean(answers)),
        saved_by=np.array([1 - one.windows / full for one in came]),
        error_by=np.array(by_study),
    )


class Errors:
    """How far the curves of studies are from those of the full grid, and from the truth; in points."""

    def __init__(self, setting):
        place = {identity: number for number, identity in enumerate(setting.cells)}
        self.true = setting.true
        self.curves = [
            (np.array([place[cell.identity] for cell in curve.cells]), np.array([cell.amount for cell in curve.cells]))
            for curve in curves(setting.plan.mixes)
        ]
        self.to_full, self.to_truth, self.within = [], [], []

    def add(self, own, full):
        for cells, amounts in self.curves:
            rows = own.reindex(cells)
            there = rows["mean"].notna().to_numpy()
            value, true = rows["mean"].to_numpy().copy(), self.true[cells]
            if not there.all():
                ends = [rows[name].to_numpy()[there] for name in ("low", "high", "launches")]
                found = interpolate(Measured(amounts[there], value[there], *ends), amounts[~there])
                value[~there] = found.value
                self.within += list((found.low <= true[~there]) & (true[~there] <= found.high))
            self.to_full += list(abs(loss(value) - loss(full[cells])))
            self.to_truth += list(abs(loss(value) - loss(true)))


def loss(logs):
    return -100 * np.expm1(-logs)


def assert_kept(found, studies):
    """All promises; the scatter of so many studies, whose cells share their windows alone, is allowed for."""
    # Of independent shares the standard error would be sqrt(.95 * .05 / n); that of a whole study is at most this one.
    error = math.sqrt(0.95 * 0.05 / studies)
    assert 0.94 - 2 * error <= found.coverage <= 0.96 + 2 * error
    for name, (share, count) in found.covers.items():
        if count >= studies / 4:
            assert abs(share - 0.95) <= 0.01 + 4 * math.sqrt(0.95 * 0.05 / count), name
    assert found.bounds >= 0.95
    assert found.against_full < 1
    assert found.wrong < 0.01


@pytest.mark.parametrize("name", ["a cell at the limit", "quotas"])
def test_some_adaptive_studies_keep_what_the_documentation_promises(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    found = simulated(SETTINGS[name], SHORT, tmp_path)
    assert_kept(found, SHORT)
    assert found.saved > 0.5


@pytest.mark.simulation
@pytest.mark.parametrize("name", SETTINGS)
def test_adaptive_studies_keep_what_the_documentation_promises(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    found = simulated(SETTINGS[name], FULL, tmp_path)
    assert_kept(found, FULL)
    assert_told("curves", "loss_low", *found.often)


def table():
    """The table of docs/methodology.md."""
    lines = [
        "| study | covers | cells cover | bounds hold | windows saved | error to the full grid | largest | "
        "error to the truth | interpolated | wrong answers |",
        f"| --- {'| ---: ' * 9}|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for title, study in SETTINGS.items():
            one = simulated(study, FULL, Path(folder))
            lines.append(
                f"| {title} | {100 * one.coverage:.1f} | {100 * min(one.often):.1f} to {100 * max(one.often):.1f} | "
                f"{100 * one.bounds:.1f} | {100 * one.saved:.0f} | {one.against_full:.2f} | {one.largest:.2f} | "
                f"{one.against_truth:.2f} | {100 * one.interpolated:.0f} | {100 * one.wrong:.2f} |"
            )
    return "\n".join(lines)


OTHERS, DISTANCES, RATIOS = 10, (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6), (0.5, 1, 1.4, 2, 3)


def unlike(ratio, distance, studies=10_000, looks=(4, 6, 8, 10, 12)):
    """How often the interval of a cell covers that scatters so many times as much as the ten others of its lead.

    Its truth lies so many of its standard deviations from the edge. The rule is that of `decide`, for many at once.
    """
    rng = np.random.default_rng([SEED, int(100 * ratio), int(100 * distance)])
    values = ratio * (distance + rng.standard_normal((studies, looks[-1])))
    groups = np.repeat(np.arange(studies), OTHERS + 1)
    stops, due = np.full(studies, looks[-1]), np.full(studies, np.inf)
    for launches in looks:
        others = np.sqrt(rng.chisquare(launches - 1, (studies, OTHERS)) / (launches - 1))
        spread = np.column_stack([values[:, :launches].std(axis=1, ddof=1), others])
        half = halves(np.full(spread.size, float(launches)), spread.ravel(), groups).reshape(spread.shape)[:, 0]
        away = abs(values[:, :launches].mean(axis=1)) / half
        due = np.where(np.isinf(due) & (away > 1), launches + np.where(away > CLEARLY, 0, FRESH), due)
        stops = np.where(due <= launches, np.minimum(stops, launches), stops)
    counted = np.arange(looks[-1]) < stops[:, None]
    mean = np.where(counted, values, 0).sum(axis=1) / stops
    error = np.sqrt((np.where(counted, values - mean[:, None], 0) ** 2).sum(axis=1) / (stops - 1) / stops)
    return float((abs(mean - ratio * distance) < quantile(stops - 1.0) * error).mean())


@pytest.mark.simulation
@pytest.mark.parametrize(("ratio", "least"), [(0.5, 0.94), (1, 0.94), (1.4, 0.935), (2, 0.92), (3, 0.915)])
def test_a_cell_that_scatters_otherwise_is_covered_nearly_as_often(ratio, least):
    assert min(unlike(ratio, distance) for distance in DISTANCES) > least


if __name__ == "__main__":
    print(table())
    for times in RATIOS:
        often = [100 * unlike(times, distance) for distance in DISTANCES]
        print(f"scatter times {times}: {min(often):.1f} to {max(often):.1f}")
