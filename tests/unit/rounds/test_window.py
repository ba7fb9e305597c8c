"""A window is the sum of its slices that count."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.protocols import Count, Sample
from castmates.study.reasons import Reason, ReasonKind
from tests.unit.rounds.makers import BESIDE, LEAD, MS, cpu_time, scene_of, slice_of, window_of


def three(**more):
    """Three slices of 100 ms with 20 ms to settle; those of another scene lie between them."""
    return [slice_of(begin, cycle=number, **more) for number, begin in enumerate((0, 500, 1000), start=1)]


def test_units_and_time_are_those_inside_the_slices():
    total = window_of(three()).total(LEAD)
    assert total.beats == 27  # nine in each, at 20, 30 … 100
    assert total.units == 24
    assert total.seconds == pytest.approx(0.24)
    assert total.rate == pytest.approx(100)
    assert total.open_s == pytest.approx(0.24)
    assert (total.first_ns, total.last_ns) == (20 * MS, 1100 * MS)


def test_the_rate_is_of_all_units_and_not_the_mean_of_rates():
    slices = [slice_of(0, step=10), slice_of(500, step=40)]
    total = window_of(slices).total(LEAD)
    assert total.units == 8 + 1  # 20 … 100 and 40, 80
    assert total.seconds == pytest.approx(0.08 + 0.04)
    assert total.rate == pytest.approx(9 / 0.12)


STEAL, NO_PROGRESS = Reason(ReasonKind.STEAL, "much"), Reason(ReasonKind.NO_PROGRESS, "x")
FEW = Reason(ReasonKind.TOO_FEW_CYCLES, "0 of 2 are left")


@pytest.mark.parametrize("spoil", [{"reasons": [STEAL]}, {"dropped": True}])
def test_what_does_not_count_is_in_no_sum(spoil):
    slices = three()
    slices[1] = slice_of(500, step=50, cycle=2, samples=cpu_time(600, 9.0), **spoil)
    window = window_of(slices)
    assert window.total(LEAD).rate == pytest.approx(100)
    assert window.total(LEAD).open_s == pytest.approx(0.16)
    assert [sample.value for sample in window.samples()] == [pytest.approx(0.1)]
    assert len(window.all_slices_of(LEAD)) == 3
    assert window.reasons_of(LEAD) == []


def test_who_makes_no_step_has_no_rate():
    total = window_of(three(step={LEAD: 10, BESIDE: 90})).total(BESIDE)
    assert (total.beats, total.first_ns) == (3, 90 * MS)
    assert all(map(math.isnan, (total.units, total.seconds, total.rate)))


def test_a_slow_member_is_measured_in_the_watched_slice_alone():
    usual = three(step={LEAD: 10, BESIDE: 90})
    watched = slice_of(2000, step={LEAD: 20, BESIDE: 90}, length=1000)
    window = window_of(usual, watched, slow=[BESIDE])
    assert window.total(BESIDE).rate == pytest.approx(1000 / 90)
    assert window.total(BESIDE).open_s == pytest.approx(0.98)
    assert window.total(LEAD).rate == pytest.approx(100), "the long slice is no part of the lead's window"
    assert window.all_slices == [*usual, watched]


def test_a_slow_member_loses_its_window_with_the_watched_slice_and_the_lead_does_not():
    watched = slice_of(2000, length=1000, reasons=[STEAL])
    window = window_of(three(), watched, slow=[BESIDE])
    assert window.reasons_of(BESIDE) == [STEAL]
    assert window.reasons_of(LEAD) == []
    assert math.isnan(window.total(BESIDE).rate)
    assert window.total(LEAD).rate == pytest.approx(100)


def test_a_scene_with_no_usual_slice_has_its_watched_one():
    alone = scene_of("antagonist-alone:beside@1", (BESIDE,), "antagonist-alone")
    window = window_of([], slice_of(0, alone, step=100, length=1000), slow=[BESIDE])
    assert window.all_slices_of(BESIDE) == [window.watched]
    assert window.total(BESIDE).rate == pytest.approx(10)
    assert [sample.value for sample in window.samples()] == [0.05]


def test_reasons_of_the_window_come_first_and_none_twice():
    slices = [slice_of(begin, reasons=[STEAL, NO_PROGRESS]) for begin in (0, 500)]
    window = window_of(slices)
    window.reasons = [FEW]
    assert window.reasons_of(LEAD) == [
        FEW,
        STEAL,
        NO_PROGRESS,
    ]


def _leave_out(window, seconds):
    for each in window.all_slices:
        each.steady_s = lambda _: seconds


def test_more_is_left_out_once_rates_are_known_to_settle_slowly():
    watched = slice_of(2000, length=300)
    window = window_of(three(), watched)
    _leave_out(window, 0.055)
    assert [part.records[0][0] for part in window.total(LEAD).parts] == [60 * MS, 560 * MS, 1060 * MS]
    assert watched.progress(LEAD).records[0][0] == 2060 * MS
    _leave_out(window, 0.001)  # evidence begins where the slice was opened, and so does progress
    assert window.total(LEAD).first_ns == 20 * MS


def test_counts_are_those_of_the_slices_that_give_the_progress():
    def counts(value):
        return [Count(name, "cycles", value, "counted", "perf_event_open", running=1.0) for name in (LEAD, BESIDE)]

    usual = [slice_of(begin, counts=counts(1.0)) for begin in (0, 500, 1000)]
    usual[1].dropped = True
    share = Count(LEAD, "Retiring", 0.5, "counted", "toplev", "metric")
    watched = slice_of(2000, length=1000, counts=[*counts(50.0), share])
    found = window_of(usual, watched, slow=[BESIDE]).counts()
    assert {one.subject: one.value for one in found if one.kind == "event"} == {LEAD: 2.0, BESIDE: 50.0}
    assert [one for one in found if one.kind == "metric"] == [share]


def test_counts_of_time_that_the_rate_leaves_out_bear_a_note():
    """They were counted from the opening edge on; the rate begins where it was found to be steady, later."""
    usual = [slice_of(begin, counts=[Count(LEAD, "cycles", 1.0, "counted", "perf")]) for begin in (0, 500, 1000)]
    window = window_of(usual)
    assert [count.note for count in window.counts()] == [""]
    _leave_out(window, 0.06)
    assert [count.note for count in window.counts()] == ["counted in 0.240 s, 0.120 s of which the rate leaves out"]


def test_what_only_the_watched_slice_reads_is_the_windows():
    dear = Sample(0, "procstat", LEAD, "major_faults", 4.0)
    usual = three()
    usual[-1].samples.append(dear)
    found = window_of(usual).samples()
    assert found.count(dear) == 1
    assert {sample.metric: sample.value for sample in found} == {"cpu_s": pytest.approx(0.15), "major_faults": 4.0}


def test_what_only_a_rejected_slice_has_read_is_no_result():
    """It was rejected because somebody disturbed it: its occupancy and shares are those of the disturbance."""
    usual, dear = three(), Sample(0, "procstat", LEAD, "major_faults", 4.0)
    usual[-1].samples.append(dear)
    usual[-1].counts = [Count(LEAD, "Retiring", 0.5, "counted", "toplev", "metric")]
    window = window_of(usual)
    window.watched.reasons.append(STEAL)
    assert {sample.metric for sample in window.samples()} == {"cpu_s"}
    (share,) = window.counts()
    assert (share.value, share.status) == (None, "not counted")
    assert share.note == "the watched slice does not count: steal: much"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.data())
def test_what_slices_did_is_what_lies_between_their_first_and_last_heartbeats(gaps, data):
    """However heartbeats fall: no step is counted twice, and none that crosses an edge or a settle time."""
    times = [sum(gaps[: number + 1]) for number in range(len(gaps))]
    records = [(t * MS, number) for number, t in enumerate(times)]
    edges = sorted(data.draw(st.sets(st.integers(0, times[-1] + 5), min_size=2, max_size=10)))
    slices = []
    for begin, end in pairwise(edges):
        settle = data.draw(st.integers(0, end - begin))
        since = {LEAD: [one for one in records if begin * MS <= one[0] <= end * MS]}
        slices.append(slice_of(begin, scene_of(active=(LEAD,)), length=end - begin, settle=settle, since_switch=since))
    total = window_of(slices).total(LEAD)
    inside = [
        (a, b) for a, b in pairwise(times) if any(each.open_ns <= a * MS and b * MS <= each.close_ns for each in slices)
    ]
    if inside:
        assert total.units == len(inside)
        assert total.seconds == pytest.approx(sum(b - a for a, b in inside) / 1e3)
    else:
        assert math.isnan(total.rate)
