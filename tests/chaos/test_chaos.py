"""Whatever is killed, whenever: nothing remains, nothing is half, and the same command completes the study.

Three kills, one of them of a sweep. CASTMATES_SEED asks for others (a landing does), CASTMATES_CHAOS_KILLS for more.
"""

import os

import pytest

from tests.chaos.house import House
from tests.seeds import chance
from tests.workflow.test_interruptions import expected_rows, rows

KILLS = int(os.environ.get("CASTMATES_CHAOS_KILLS") or 3)
SWEEPS = 3  # one kill in so many is of a sweep


@pytest.mark.needs("two-cpus")
def test_kills_at_random_moments_leave_nothing_and_lose_nothing(tmp_path):
    house = House(tmp_path / "project", tmp_path / "cache", chance("kills"))
    try:
        for number in range(1, KILLS + 1):
            house.kill_a_sweep() if number % SWEEPS == 0 else house.kill_a_launch()
        house.complete()
        assert rows(house.sweeps) == expected_rows(house.sweeps)
    finally:
        house.end()
        print(*house.history, sep="\n")  # pytest shows it where the test fails
