"""Turns at the processor's counters, where not everything fits there at once: who is in which, and when each comes.

Each round of a launch belongs to one turn, the same for all its scenes, so that a scene and its baseline are compared
by the same events of the same round. Turns go on from launch to launch: a launch of fewer rounds than turns would
always count the same ones.
"""

from collections.abc import Callable, Sequence

ANCHORS = ("cycles", "instructions")  # what most others are compared with: in every turn, where they fit


class Rota:
    """Deals out turns to those who want the counters, and knows whose turn a round is."""

    def __init__(self, rounds_before: int = 0) -> None:
        self.turns = 0
        self._before = rounds_before  # in the launches before this one

    def join(self, turns: int) -> list[int]:
        """Take so many turns; the first to join has the first ones."""
        numbers = list(range(self.turns, self.turns + turns))
        self.turns += turns
        return numbers

    def turn(self, round_number: int) -> int:
        """Return the turn of a round; rounds are counted from 1."""
        return (self._before + round_number - 1) % max(self.turns, 1)

    def first_round(self, turn: int) -> int:
        """Return the first round in which a turn comes."""
        return (turn - self._before) % max(self.turns, 1) + 1

    def when(self, turn: int) -> str:
        """Describe in which rounds a turn comes."""
        return f"in round {self.first_round(turn)} of every {self.turns}" if self.turns > 1 else "in every round"


def split(
    events: Sequence[str], fits: Callable[[Sequence[str]], bool], anchors: Sequence[str] = ANCHORS
) -> list[tuple[str, ...]]:
    """Put every event into the first turn that still has room for it, and the anchors into every turn that has.

    An event that does not even fit alone has a turn to itself: how long it counted stands beside its value.
    """
    everywhere = _growing((), [name for name in anchors if name in events], fits)
    turns: list[tuple[str, ...]] = []
    for name in events:
        if name in everywhere:
            continue
        for place, turn in enumerate(turns):
            if fits((*turn, name)):
                turns[place] = (*turn, name)
                break
        else:
            beside = (*everywhere, name)
            turns.append(beside if everywhere and fits(beside) else (name,))
    if everywhere and not any(set(everywhere) <= set(turn) for turn in turns):
        turns.insert(0, everywhere)
    return turns


def _growing(turn: tuple[str, ...], names: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """As many of these, in their order, as fit together."""
    for name in names:
        if fits((*turn, name)):
            turn = (*turn, name)
    return turn
