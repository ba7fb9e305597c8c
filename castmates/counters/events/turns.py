"""Splits events into turns that fit the processor's counters, so that none is counted for part of the time only."""

from collections.abc import Callable, Sequence

ANCHORS = ("cycles", "instructions")  # what most others are held against: in every turn, where they fit


def split(
    events: Sequence[str], fits: Callable[[Sequence[str]], bool], anchors: Sequence[str] = ANCHORS
) -> list[tuple[str, ...]]:
    """Put every event into the first turn that still has room for it, and the anchors into every turn that has.

    An event that does not even fit alone has a turn of its own: how long it counted is told with its value.
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
