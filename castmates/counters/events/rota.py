"""Whose turn it is on the processor's counters, where not everything fits there at once.

Each round of a block belongs to one turn, the same for all its scenes, so that a scene and its baseline are compared
by the same events of the same round. Turns go on from block to block: a block of fewer rounds than turns would always
count the same ones.
"""


class Rota:
    """Deals out turns to those who want the counters, and says whose turn a round is."""

    def __init__(self, rounds_before: int = 0) -> None:
        self.turns = 0
        self._before = rounds_before  # in the blocks before this one

    def join(self, turns: int) -> list[int]:
        """Take so many turns; whoever joins first has the first ones."""
        taken = list(range(self.turns, self.turns + turns))
        self.turns += turns
        return taken

    def turn(self, round_number: int) -> int:
        """The turn of a round; rounds are counted from 1."""
        return (self._before + round_number - 1) % max(self.turns, 1)

    def first_round(self, turn: int) -> int:
        """The first round in which a turn comes."""
        return (turn - self._before) % max(self.turns, 1) + 1

    def when(self, turn: int) -> str:
        """Say in which rounds a turn comes."""
        return f"in round {self.first_round(turn)} of every {self.turns}" if self.turns > 1 else "in every round"
