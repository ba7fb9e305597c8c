"""The modelled cache against an exact simulator, and what must hold of it whatever the users are.

`python -m tests.unit.modelled.test_cache` prints the table of docs/modelled-machine.md.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castmates.runner.modelled.power import Reuse, User, share_out, spread
from tests.unit.modelled.simulator import simulate

SETS, WAYS, STEPS = 1024, 12, 3000
FULL = (1 << WAYS) - 1
# What differences of misses and of occupancies (as a share of the cache) may come to: a little more than was seen.
APART, ACROSS = 0.02, 0.06  # with masks that are the same or disjoint; with others


def user(speed, mask, *sets):
    """Sets are (lines in each set of the cache, share of accesses); the rest streams."""
    streaming = 1 - sum(share for _, share in sets)
    return User(Reuse(tuple((size * SETS, share) for size, share in sets), max(0.0, round(streaming, 9))), speed, mask)


LEAD = ((4, 0.6), (16, 0.3))  # and a tenth streams
CASES = {
    "alone, all ways": [user(1, FULL, *LEAD)],
    "alone, 4 ways": [user(1, 0xF, *LEAD)],
    "alone, 1 way": [user(1, 0x1, *LEAD)],
    "alone, fits": [user(1, FULL, (8, 1.0))],
    "alone, just too large": [user(1, 0xFF, (10, 1.0))],
    "shared with a stream": [user(1, FULL, *LEAD), user(1, FULL)],
    "shared, stream 4 times as fast": [user(1, FULL, *LEAD), user(4, FULL)],
    "shared, stream 16 times as fast": [user(1, FULL, *LEAD), user(16, FULL)],
    "shared by two alike": [user(1, FULL, *LEAD), user(1, FULL, *LEAD)],
    "split 8 and 4": [user(1, 0xFF, *LEAD), user(4, 0xF00)],
    "split 2 and 10": [user(1, 0x3, *LEAD), user(4, 0xFFC)],
    "overlap of 4": [user(1, 0xFF, *LEAD), user(1, 0xFF0, *LEAD)],
    "overlap of 4, stream": [user(1, 0xFF, *LEAD), user(4, 0xFF0)],
    "overlap of 8, stream": [user(1, 0x3FF, *LEAD), user(2, 0xFFC)],
    "stream capped at 2": [user(1, FULL, *LEAD), user(4, 0xC00)],
    "stream capped at 6": [user(1, FULL, *LEAD), user(1, 0xFC0)],
    "slow stream capped at 6": [user(1, FULL, *LEAD), user(0.1, 0xFC0)],
    "three: shared": [user(1, FULL, *LEAD), user(1, FULL, (12, 1.0)), user(2, FULL)],
    "three: lead apart": [user(1, 0x3F, *LEAD), user(1, 0xFC0, (12, 1.0)), user(2, 0xFC0)],
    "three: nested": [user(1, FULL, *LEAD), user(1, 0xFF0, (12, 1.0)), user(2, 0xF00)],
}


@cache
def compared(name):
    """(simulated, modelled) misses and occupancies of each user; occupancies as a share of the cache."""
    users = CASES[name]
    found = share_out(users, SETS)
    seen = simulate(users, SETS, WAYS, STEPS)
    return [
        (sim.misses, held.misses(one), sim.lines / SETS / WAYS, held.lines / SETS / WAYS)
        for one, held, sim in zip(users, found, seen, strict=True)
    ]


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_near_the_simulator(name):
    masks = {one.mask for one in CASES[name]}
    overlap = any(a & b for a in masks for b in masks - {a})
    for sim_misses, misses, sim_lines, lines in compared(name):
        assert misses == pytest.approx(sim_misses, abs=ACROSS if overlap else APART)
        assert lines == pytest.approx(sim_lines, abs=ACROSS if overlap else APART)


@st.composite
def users_of_a_cache(draw):
    users = []
    for _ in range(draw(st.integers(1, 4))):
        sets = draw(st.lists(st.tuples(st.floats(10, 1e6), st.floats(0.01, 1)), max_size=3))
        scale = sum(share for _, share in sets) / draw(st.floats(0.1, 1)) if sets else 1
        streaming = max(0.0, 1 - sum(share / scale for _, share in sets))
        reuse = Reuse(tuple((lines, share / scale) for lines, share in sets), streaming)
        users.append(User(reuse, draw(st.floats(1e-3, 1e3)), draw(st.integers(1, FULL))))
    return users


@settings(deadline=None, max_examples=200)
@given(users_of_a_cache(), st.floats(100, 1e5))
def test_nobody_holds_more_than_there_is(users, way_lines):
    held = share_out(users, way_lines)
    table = spread(users, held, way_lines, WAYS)
    union = 0
    for one, has in zip(users, held, strict=True):
        assert has.lines <= one.mask.bit_count() * way_lines * (1 + 1e-6)
        assert 0 <= has.misses(one) <= 1 + 1e-12
        assert has.mask & ~one.mask == 0
        union |= one.mask
    assert sum(has.lines for has in held) <= union.bit_count() * way_lines * (1 + 1e-6)
    assert (table.sum(axis=0) <= way_lines * (1 + 1e-6)).all()
    assert np.allclose(table.sum(axis=1), [has.lines for has in held], rtol=0.02, atol=way_lines * 0.02)


@settings(deadline=None, max_examples=200)
@given(users_of_a_cache())
def test_more_ways_never_hurt_who_is_alone(users):
    one = users[0]
    found = [share_out([User(one.reuse, one.speed, (1 << ways) - 1)], 1000)[0] for ways in range(1, WAYS + 1)]
    misses = [held.misses(one) for held in found]
    assert all(after <= before + 1e-6 for before, after in pairwise(misses))


@settings(deadline=None, max_examples=200)
@given(users_of_a_cache(), st.floats(0.1, 10))
def test_only_the_proportion_of_speeds_matters(users, factor):
    faster = [User(one.reuse, one.speed * factor, one.mask) for one in users]
    for a, b in zip(share_out(users, 1000), share_out(faster, 1000), strict=True):
        assert a.lines == pytest.approx(b.lines, rel=1e-4, abs=1e-3)


def test_disjoint_masks_shut_others_out():
    alone = share_out([CASES["alone, 4 ways"][0]], SETS)[0]
    for speed in (0.01, 1, 100):
        beside = share_out([user(1, 0xF, *LEAD), user(speed, 0xFF0)], SETS)[0]
        assert beside == alone


def table():
    """The figures as the rows of a Markdown table."""
    rows = ["| case | user | misses, simulated | modelled | occupancy, simulated | modelled |", "|" + " --- |" * 6]
    for name in CASES:
        for number, values in enumerate(compared(name), start=1):
            rows.append(f"| {name} | {number} | " + " | ".join(f"{100 * value:.1f} %" for value in values) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
