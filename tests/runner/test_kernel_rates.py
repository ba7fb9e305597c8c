"""Held rates: never more than was asked for, that much where nothing disturbs, and a word where it cannot be."""

import re
import signal
import time

import pytest

from castmates.workloads.heartbeat import Reader, State, create
from tests.runner.programs import PATIENCE, run, start, wait_until

pytestmark = pytest.mark.quiet


def best_rate(records, seconds=0.1):
    """Return the highest rate of any stretch that lasts at least so long, in units a second."""
    best, begin = 0.0, 0
    for now, units in records:
        while begin + 1 < len(records) and now - records[begin + 1][0] >= seconds * 1e9:
            begin += 1
        since, before = records[begin]
        if now - since >= seconds * 1e9:
            best = max(best, (units - before) / (now - since) * 1e9)
    return best


def beats_of(command, path, seconds, then=None):
    """Let a kernel run for a while, and return its beats."""
    create(path)
    process = start(command, path)
    with Reader(path) as reader:
        wait_until(lambda: reader.state is State.READY)
        time.sleep(seconds)
        if then is not None:
            then(process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        return reader.beats(0).records, err


@pytest.mark.parametrize(
    ("arguments", "rate"),
    [
        ("bandwidth --bytes 1M --rate 100MB/s", 100e6 / 1024),
        ("capacity --bytes 64K --rate 2M", 2e6),
        ("chase --bytes 64K --rate 64MB/s", 1e6),
        ("stream --bytes 96K --rate 60", 60),
        ("bandwidth --bytes 1M --rate 100MB/s --threads 2", 100e6 / 1024),
    ],
)
def test_a_rate_is_never_exceeded_and_held_for_a_stretch_at_least(kernels, tmp_path, arguments, rate):
    program, *options = arguments.split()
    records, _ = beats_of([kernels / program, *options], tmp_path / "beats", 0.6)
    (begin, first), (end, last) = records[0], records[-1]
    due = rate * (end - begin) / 1e9
    assert last - first <= due * 1.05 + rate * 0.05  # it may make up for 20 ms, and a chunk may be under way
    assert best_rate(records) >= 0.9 * rate  # other programs may disturb it all the rest of the time


def test_a_thaw_is_not_followed_by_a_burst(kernels, tmp_path):
    def freeze(process):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.3)

    rate = 100e6 / 1024
    command = [kernels / "bandwidth", "--bytes", "1M", "--rate", "100MB/s"]
    records, _ = beats_of(command, tmp_path / "beats", 0.2, freeze)
    (begin, first), (end, last) = records[0], records[-1]
    assert last - first <= rate * ((end - begin) / 1e9 - 0.4)


def test_what_is_beyond_reach_is_said_at_the_end(kernels):
    command = [kernels / "bandwidth", "--bytes", "1M", "--rate", "100000GB/s", "--units", "4M"]
    status, out, err = run(command)
    assert (status, out) == (0, "")
    said = re.fullmatch(r"bandwidth: wanted 9\.76562e\+10 units a second, held (\S+) \(1e\+05 and (\S+) GB/s\)\n", err)
    assert said
    assert float(said[2]) == pytest.approx(float(said[1]) * 1024 / 1e9, rel=0.001)
    assert 0 < float(said[2]) < 1e4
