"""The pressure benchmark's own arithmetic: who is chosen, who is compared, and what may be claimed."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import pressure
from benchmarks.pressure_figure import Bar, draw

NAMES = ["chase", "gups", "stencil", "ng-cache", "ng-lockbus"]


def losses(rows, duel=(), elsewhere=()):
    members = [SimpleNamespace(workload=name) for name in NAMES]
    found = pressure.Losses("chase", SimpleNamespace(members=members), [list(row) for row in rows], set(elsewhere))
    found.duellists, found.duel = pressure.strongest(found), [list(row) for row in duel]
    return found


def noisy(means, rounds=8, sd=0.01, seed=1):
    return np.random.default_rng(seed).normal(means, sd, (rounds, len(means)))


def test_the_strongest_of_both_sides_are_chosen():
    assert losses(noisy([0.1, 0.3, 0.1, 0.2])).duellists == ("stencil", "ng-lockbus")
    assert losses(noisy([0.3, 0.1, 0.2, 0.1])).duellists == ("gups", "ng-cache")


def test_the_duel_alone_decides():
    found = losses(noisy([0.9, 0.1, 0.2, 0.1]), noisy([0.1, 0.2]))
    assert "`gups` takes 9" in pressure.compared(found)
    assert pressure.duel_of(found).verdict == "missed"


@pytest.mark.parametrize(("means", "said"), [([0.3, 0.2], "met"), ([0.1, 0.2], "missed"), ([0.2, 0.2], "unresolved")])
def test_ours_hurts_more_only_when_the_whole_interval_says_so(means, said):
    assert pressure.duel_of(losses(noisy([0.3, 0.1, 0.1, 0.2]), noisy(means))).verdict == said


def test_a_stressor_on_the_leads_cpu_is_compared_with_nobody():
    rows = noisy([0.3, 0.1, 0.1, 0.9])
    assert losses(rows).duellists == ("gups", "ng-lockbus")
    assert losses(rows, elsewhere=["ng-lockbus"]).duellists == ("gups", "ng-cache")
    alone = losses(rows, elsewhere=["ng-lockbus", "ng-cache"])
    assert "there is nothing to compare with" in pressure.compared(alone)
    assert pressure.duel_of(alone) is None


def test_a_window_without_a_rate_is_left_out_and_few_launches_say_nothing():
    rows, duel = noisy([0.3, 0.1, 0.1, 0.2], rounds=4), noisy([0.3, 0.2], rounds=3)
    rows[2, 1] = duel[1, 1] = np.nan
    found = losses(rows, duel)
    assert [len(found.of(column)) for column in range(4)] == [4, 3, 4, 4]
    assert pressure.duel_of(found).verdict == "one run, no verdict"


def test_the_figure_has_a_row_for_everyone(tmp_path):
    bars = [Bar("gups", 20.0, 2.0, True, False), Bar("ng-cache", 5.0, 1.0, False, False)]
    draw([("chase", bars), ("stream", bars)], tmp_path / "pressure")
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".csv", ".pdf", ".png", ".svg"]
    assert len((tmp_path / "pressure.csv").read_text().splitlines()) == 1 + 4


MS = 1_000_000


@pytest.mark.parametrize("away", [(0, 0), (0, 40), (30, 70), (60, 100)])
def test_a_rate_is_the_same_whenever_in_the_window_others_took_the_cpu(away):
    """The lead makes a unit each ms that it has its CPU; others take it between two moments of the window."""
    units, records = 0, []
    for moment in range(-20, 105):
        if not away[0] <= moment < away[1]:
            units += 1
            records.append(((moment + 1) * MS, units))
    ran = (100 - (away[1] - away[0])) * MS
    assert pressure.rate_of(records, 0, 100 * MS, ran) == pytest.approx(1000.0)


def test_there_is_no_rate_without_cpu_time_units_or_a_beat_before_the_window():
    records = [(-1, 5), (50, 10), (150, 20)]
    assert pressure.rate_of(records, 0, 100, 20) == pytest.approx(5 / 20 * 1e9)
    assert np.isnan(pressure.rate_of(records, 0, 100, 19))
    assert np.isnan(pressure.rate_of(records, 60, 100, 40))
    assert np.isnan(pressure.rate_of(records, -2, 100, 100))
    assert np.isnan(pressure.rate_of([], 0, 100, 100))


def test_a_stressor_that_does_not_end_is_left_out(tmp_path, monkeypatch):
    program = tmp_path / "stress-ng"
    program.write_text('#!/bin/sh\n[ "$1" = --vm ] && exec /bin/sleep 20\n[ "$1" = --cpu ]\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pressure, "PATIENCE", 0.5)
    good, missing = pressure.usable(["vm", "cpu", "hdd"])
    assert good == ["cpu"]
    assert ["`vm` does not end" in missing[0], "`hdd` does not run here (status 1" in missing[1]] == [True, True]
