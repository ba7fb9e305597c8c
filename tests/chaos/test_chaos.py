"""Whatever is killed, whenever: nothing remains, nothing is half, and the same command completes the study.

`make chaos` kills 200 times; CASTMATES_CHAOS_KILLS and CASTMATES_CHAOS_SEED choose another number and another course.
"""

import os
import random

import pytest

from tests.chaos.house import House
from tests.workflow.test_interruptions import expected_rows, rows

KILLS = int(os.environ.get("CASTMATES_CHAOS_KILLS") or 6)
SEED = int(os.environ.get("CASTMATES_CHAOS_SEED") or random.SystemRandom().randrange(10**6))
SWEEPS = 12  # one kill in so many is of a sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]


def test_kills_at_random_moments_leave_nothing_and_lose_nothing(tmp_path):
    house = House(tmp_path / "project", tmp_path / "cache", SEED)
    try:
        for number in range(1, KILLS + 1):
            house.kill_a_sweep() if number % SWEEPS == 0 else house.kill_a_block()
        house.complete()
        assert rows(house.sweeps) == expected_rows(house.sweeps)
    finally:
        house.end()
        print(*house.history, sep="\n")  # pytest shows it where the test fails
