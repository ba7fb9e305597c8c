"""Events are split into turns that fit, and nobody is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from castmates.counters.events.budget import ANCHORS, Rota, split

EVENTS = [*ANCHORS, *(f"event-{number}" for number in range(10))]


@given(
    events=st.lists(st.sampled_from(EVENTS), unique=True),
    room=st.integers(0, 8),
    never=st.sets(st.sampled_from(EVENTS), max_size=2),
    enemies=st.sets(st.tuples(st.sampled_from(EVENTS), st.sampled_from(EVENTS)), max_size=6),
)
def test_every_event_has_a_turn_that_fits_unless_it_fits_nowhere(events, room, never, enemies):
    def fits(names):
        apart = {pair for pair in enemies if pair[0] != pair[1]}
        return len(names) <= room and not never & set(names) and not any(set(pair) <= set(names) for pair in apart)

    turns = split(events, fits)
    assert {name for turn in turns for name in turn} == set(events)
    for turn in turns:
        assert len(set(turn)) == len(turn) > 0
        assert fits(turn) or len(turn) == 1
    for name in set(events) - set(ANCHORS):
        assert sum(name in turn for turn in turns) == 1
    if all(fits((name,)) for name in events) and fits(tuple(events)):
        assert len(turns) <= 1


def test_anchors_are_in_every_turn_that_has_room():
    turns = split(["cycles", "instructions", "a", "b", "c"], lambda names: len(names) <= 3)
    assert turns == [("cycles", "instructions", "a"), ("cycles", "instructions", "b"), ("cycles", "instructions", "c")]
    assert split(["cycles"], lambda _: True) == [("cycles",)]
    assert split([], lambda _: True) == []


@given(wants=st.lists(st.integers(0, 4), max_size=4), rounds=st.integers(1, 40), before=st.integers(0, 40))
def test_every_round_is_the_turn_of_one(wants, rounds, before):
    rota = Rota(before)
    taken = [rota.join(turns) for turns in wants]
    assert [len(turns) for turns in taken] == wants
    holders = [sum(rota.turn(number) in turns for turns in taken) for number in range(1, rounds + 1)]
    assert set(holders) <= ({1} if sum(wants) else {0})
    if sum(wants):
        assert {rota.turn(number) for number in range(1, sum(wants) + 1)} == set(range(sum(wants)))
        assert all(rota.turn(rota.first_round(turn)) == turn for turns in taken for turn in turns)
        assert all(1 <= rota.first_round(turn) <= sum(wants) for turns in taken for turn in turns)
        assert rota.when(taken[-1][0] if taken[-1] else 0)


def test_few_rounds_in_each_launch_come_to_every_turn():
    rounds, turns, seen = 2, 5, set()
    for launch in range(1, 6):
        rota = Rota((launch - 1) * rounds)
        rota.join(turns)
        seen |= {rota.turn(number) for number in range(1, rounds + 1)}
    assert seen == set(range(turns))
