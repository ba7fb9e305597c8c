"""The judgement of counts, with made-up readings: right ones pass, and no wrong one does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.machine.topology import CacheDomain, Topology
from castmates.trials.counters import methods
from castmates.trials.counters.program import BEYOND, SOFTWARE, Judged, Portion, combined, judge, too_large, trials
from castmates.trials.counters.table import Outcome, record_of, summary, wrong

MIB = 1 << 20
TOPOLOGY = Topology(cpus=(), llcs=(CacheDomain(0, 3, 32 * MIB, 16, (0, 1)),), nodes=(), allowed=(0, 1))
ALL = [*trials(TOPOLOGY, 4096)]
COUNTING = [trial for trial in ALL if trial.per_unit > 0]
EXACT = [trial for trial in COUNTING if trial.high <= trial.per_unit * 1.006]
ids = {"ids": lambda trial: trial.name}


def portions(trial, value, start_up=(7, 7), account=None, **more):
    """Made-up readings of five short and five long portions, in which each unit counts so much."""
    return [
        [
            Portion(units, start + units * value, account=None if account is None else 2 + units * account, **more)
            for start in (*start_up, 90, 7, 1000)  # some are disturbed
        ]
        for units in (trial.short, trial.long)
    ]


@pytest.mark.parametrize("trial", ALL, **ids)
def test_what_counts_as_it_must_is_verified_however_long_the_start_takes(trial):
    account = trial.per_unit if trial.account else None
    assert judge(trial, *portions(trial, trial.per_unit, account=account)).verdict == "verified"


@pytest.mark.parametrize("factor", [1.01, 0.99, 1 / 3, 2, 0])
@pytest.mark.parametrize("trial", EXACT, **ids)
def test_a_count_that_is_off_by_one_per_cent_or_misses_threads_is_wrong(trial, factor):
    account = trial.per_unit if trial.account else None
    verdict = judge(trial, *portions(trial, factor * trial.per_unit, account=account)).verdict
    assert verdict == ("not checked" if trial.account == "CPU time" and 0.5 < factor < 1.5 else "wrong")


@pytest.mark.parametrize("trial", COUNTING, **ids)
def test_a_count_that_stays_zero_or_doubles_is_wrong(trial):
    for factor in (0, 2):
        assert judge(trial, *portions(trial, factor * trial.per_unit)).verdict == "wrong"


@given(st.sampled_from(COUNTING), st.floats(0.0, 3.0), st.floats(0, 1e6))
def test_a_verdict_follows_the_stated_band(trial, factor, start):
    judged = judge(trial, *portions(trial, factor * trial.per_unit, start_up=(start, start)))
    inside = trial.low * (1 - 1e-9) <= judged.measured <= trial.high * (1 + 1e-9)
    assert judged.verdict == ("verified" if inside else judged.verdict)
    assert judged.verdict == "wrong" or inside or trial.account == "CPU time"
    assert judged.measured == pytest.approx(factor * trial.per_unit, abs=1e-3)


@pytest.mark.parametrize("status", ["scaled", "not counted", "not supported"])
def test_what_was_not_counted_all_the_time_is_never_verified(status):
    trial = EXACT[0]
    value = 1000.0 if status == "scaled" else None
    judged = judge(trial, [Portion(trial.short, 10.0)], [Portion(trial.long, value, status, "why")])
    assert judged.verdict == "not checked"
    assert judged.why == f"{status}: why"


def test_a_kind_of_core_that_did_not_count_is_the_status_of_perf_stat():
    told = [
        f'{{"counter-value" : "{value}", "event" : "cpu_{kind}/cycles/", "pcnt-running" : 100.00}}'
        for kind, value in (("atom", "5.0"), ("core", "<not counted>"))
    ]
    script = f"echo done 0 0 0 0 0; echo '{told[0]}' >&2; echo '{told[1]}' >&2"
    one = methods._one_run(["sh", "-c", script], 100, EXACT[0])
    assert (one.value, one.status, one.note) == (None, "not counted", "perf stat")


def test_without_portions_or_with_equal_ones_nothing_is_checked():
    trial = EXACT[0]
    same = [Portion(trial.long, 10.0)]
    assert judge(trial, [], same).verdict == judge(trial, same, same).verdict == "not checked"


def test_a_disturbed_task_is_not_held_against_the_counter_when_the_kernel_itself_tells_the_same():
    trial = next(trial for trial in SOFTWARE if trial.task == "pingpong")
    assert judge(trial, *portions(trial, 2.2, account=2.2)).verdict == "not checked"
    assert judge(trial, *portions(trial, 2.2, account=2.0)).verdict == "wrong"
    assert judge(trial, *portions(trial, 2.0, account=2.2)).verdict == "wrong"


def test_clocks_that_differ_a_little_are_neither_verified_nor_called_wrong():
    trial = next(trial for trial in SOFTWARE if trial.task == "spin")
    for value, verdict in ((1004, "verified"), (1010, "not checked"), (985, "not checked"), (1040, "wrong")):
        assert judge(trial, *portions(trial, value, account=1000)).verdict == verdict


def test_user_mode_only_is_no_check_of_what_happens_in_the_kernel_but_silence_about_it_is_wrong():
    trial = next(trial for trial in SOFTWARE if trial.task == "kernel-touch")
    assert judge(trial, *portions(trial, 0, account=1, note="user mode only")).verdict == "not checked"
    assert judge(trial, *portions(trial, 0, account=1)).verdict == "wrong"


def test_every_way_must_be_right():
    right, off, untried = Judged("verified", 1.0), Judged("wrong", 1.5), Judged("not checked", why="no perf")
    assert combined(right, None) == combined(right, right) == combined(right, untried) == right
    assert combined(right, off).verdict == combined(off, right).verdict == "wrong"
    assert combined(untried, right).verdict == "not checked"


def test_an_event_is_verified_only_if_something_made_it_count(monkeypatch):
    zero = next(trial for trial in ALL if trial.per_unit == 0)
    one = next(trial for trial in COUNTING if trial.event == zero.event)
    right, off, untried = Judged("verified", 1.0), Judged("wrong", 2.0), Judged("not checked", why="no room")
    for of_zero, of_one, verdict in (
        (right, right, "verified"),
        (right, untried, "not checked"),
        (untried, right, "verified"),
        (off, right, "wrong"),
        (right, off, "wrong"),
    ):
        record = record_of([Outcome(zero, of_zero), Outcome(one, of_one)])
        assert record["events"] == {zero.event: verdict}
        assert wrong(record) == ([zero.event] if verdict == "wrong" else [])
        assert summary(record).startswith(f"{int(verdict == 'verified')} of 1 events are verified")


def test_working_sets_follow_the_machine_and_what_has_no_room_is_said():
    beyond = [trial for trial in ALL if trial.bytes == BEYOND * 32 * MIB]
    assert {trial.event for trial in beyond} >= {"cache-misses", "LLC-load-misses", "L1-dcache-load-misses"}
    assert "128 MiB" in too_large(beyond[0], 200 * MIB)
    assert not too_large(beyond[0], 1000 * MIB)
    untold = [*trials(Topology(cpus=(), llcs=(), nodes=(), allowed=()), 4096)]
    assert sum("not known" in too_large(trial, None) for trial in untold) == len(beyond)


def test_every_band_has_its_reason_and_contains_what_is_known():
    for trial in ALL:
        assert trial.low <= trial.per_unit <= trial.high
        assert len(trial.why) > 10
        assert trial.short < trial.long
    assert len({trial.name for trial in ALL}) == len(ALL)
