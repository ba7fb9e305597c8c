"""The schedule of requests to a job, in a time that the tests make: queues with a known answer, stalls, scenes."""

from math import exp, factorial

import numpy as np
import pytest
from scipy import stats

from castmates.runner.rounds.requests import Recorded
from castmates.workloads import request_file
from castmates.workloads.heartbeat import HeartbeatError
from castmates.workloads.jobs.serving import Arrivals

SERVICE = 5_000_000  # ns that an answer takes


class Clock:
    """Time that passes while a job sleeps or works."""

    def __init__(self) -> None:
        self.now = 10**12

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(1, round(seconds * 1e9))


@pytest.fixture
def file(tmp_path):
    request_file.create(tmp_path / "requests")
    return tmp_path / "requests"


def opened(file, load, seed=1):
    clock, runner = Clock(), request_file.Runners(file)
    return clock, runner, Arrivals(load, seed, request_file.Writer(file), clock, clock.sleep)


def served(clock, arrivals, count, takes=lambda _: SERVICE):
    for number in range(count):
        assert arrivals.wait(lambda: False)
        clock.now += takes(number)
        arrivals.answered()


def records(runner):
    return np.frombuffer(runner.read(0).data, np.uint64).reshape(-1, 3).astype(np.int64)


def md1_waits_no_longer(waited: float, share: float) -> float:
    """Erlang's formula for a queue of Poisson's arrivals and one server: P(wait <= t); times in services."""
    terms = range(int(waited) + 1)
    return (1 - share) * sum(
        (share * (k - waited)) ** k / factorial(k) * exp(-share * (k - waited)) for k in terms
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_latencies_are_those_of_a_queue_with_a_known_answer(share, file):
    """M/D/1: the mean is Pollaczek's and Khinchine's, and the 99th percentile Erlang's."""
    count = 200_000
    clock, runner, arrivals = opened(file, share / SERVICE * 1e9, seed=11)
    served(clock, arrivals, count)
    due, sent, answered = records(runner).T
    latency = (answered - due) / SERVICE
    assert len(due) == count
    # Neighbours in a queue are alike: batches of 2,000 are not.
    means = latency.reshape(100, -1).mean(axis=1)
    expected = 1 + share / (2 * (1 - share))
    assert abs(means.mean() - expected) < 4 * means.std() / 10
    p99 = np.quantile(latency, 0.99)
    errors = np.quantile(latency.reshape(100, -1), 0.99, axis=1).std() / 10
    assert md1_waits_no_longer(p99 - 1 - 5 * errors, share) < 0.99 < md1_waits_no_longer(p99 - 1 + 5 * errors, share)
    assert stats.kstest(np.diff(due) * share / SERVICE, "expon").pvalue > 0.001
    assert (sent >= due).all()


def test_a_stall_is_seen_in_full_by_all_that_were_due_in_it(file):
    """No coordinated omission: one answer of 100 ms in a second of 1 ms each makes a p99 of nearly 100 ms.

    Counted from when they were sent, only one of the thousand requests would be late.
    """
    clock, runner, arrivals = opened(file, 500)
    served(clock, arrivals, 500, lambda number: 100_000_000 if number == 250 else 1_000_000)
    due, sent, answered = records(runner).T
    late = np.flatnonzero(answered - due > 5_000_000)
    stalled = 250
    assert late[0] == stalled
    assert answered[stalled] - due[stalled] >= 100_000_000
    assert np.sum((due > sent[stalled]) & (due < answered[stalled])) == pytest.approx(50, abs=4 * 50**0.5)
    window = Recorded(records(runner).astype(np.uint64)).within([(due[0], due[-1] + 1, answered[-1])])
    assert window.columns["p99_s"] == pytest.approx(np.quantile(answered - due, 0.99) / 1e9, rel=0.02)
    assert window.columns["p99_s"] > 0.08
    assert np.quantile(answered - sent, 0.99) == 1_000_000


def test_the_schedule_ends_with_a_scene_and_another_begins_with_the_next(file):
    clock, runner, arrivals = opened(file, 1000)
    served(clock, arrivals, 100)  # five times as many as it can answer
    assert arrivals.wait(lambda: False)
    runner.scene_ends(clock.now)
    ended = clock.now
    clock.now += 10**9  # it stands frozen in the middle of an answer
    runner.scene_begins()
    thawed = clock.now
    clock.now += SERVICE
    arrivals.answered()
    served(clock, arrivals, 10)
    due, sent, answered = records(runner).T
    assert not ((due > ended) & (due < thawed)).any()
    given_up = answered == 0
    assert (sent[given_up] == 0).all()
    assert given_up.sum() == pytest.approx(400, abs=4 * 500**0.5)  # half a second of arrivals, 100 answered
    assert (np.diff(due) >= 0).all()
    assert due[-10] > thawed + SERVICE


def test_a_job_that_is_to_end_waits_for_no_request(file):
    clock, _, arrivals = opened(file, 1e-6)
    looks = iter([False, False, True])
    begun = clock.now
    assert not arrivals.wait(lambda: next(looks))
    assert clock.now - begun < 50_000_000


def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path):
    (tmp_path / "x").write_bytes(b"something else" * 10)
    with pytest.raises(HeartbeatError, match="not a whole Castmates requests file of version 1"):
        request_file.Writer(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"something else" * 10
