"""What lies in the caches of a modelled machine while it is on its way from one balance to the next.

Every miss brings a line in. It takes free space first, then the place of a line whose holder has more than the scene's
balance gives it: one that is frozen, or that has lost these ways. A holder that has what the balance gives it replaces
its own lines. So a change of masks or of who runs evicts nothing by itself; places change hands only as fast as they
are filled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from castmates.runner.modelled.balance import Balance, speeds
from castmates.runner.modelled.sharing import Floats
from castmates.study.modelled import MachineModel

SLICES = 12  # in which one cache could be filled; the rates change little within one
SETTLED = 1e-4  # of a cache


@dataclass(frozen=True)
class Stretch:
    """A piece of time with constant rates."""

    seconds: float
    rates: tuple[float, ...]  # steps per second, by actor
    fills: tuple[tuple[float, ...], ...]  # lines brought in per second, by actor and cache


def run(
    held: Floats, numbers: Sequence[int], balance: Balance, machine: MachineModel, seconds: float
) -> tuple[Floats, list[Stretch]]:
    """Let the actors of this balance run; `numbers` are their rows in `held` (by process, cache and way)."""
    wanted = np.zeros_like(held)
    wanted[list(numbers)] = balance.lines
    stretches = []
    left = seconds
    while left > 0:
        now = _stretch(held[list(numbers)], balance, machine, left)
        stretches.append(now)
        fills = np.zeros(held.shape[:2])
        fills[list(numbers)] = now.fills
        held = filled(held, wanted, fills * now.seconds, machine.way_lines)
        left -= now.seconds
    return held, stretches


def _stretch(held: Floats, balance: Balance, machine: MachineModel, left: float) -> Stretch:
    """Return the rates that what the actors hold allows, for as long as that hardly changes."""
    cache = machine.way_lines * machine.ways
    change = np.abs(held - balance.lines).sum(axis=2)
    if change.max(initial=0.0) < SETTLED * cache:
        return Stretch(left, balance.rates, _fills(balance.rates, balance.misses, balance))
    misses = [
        [use.misses(use.age_of(lines, ways), ways) for use, lines, ways in zip(actor.uses, there, degrees, strict=True)]
        for actor, there, degrees in zip(balance.actors, held.sum(axis=2), balance.degrees, strict=True)
    ]
    rates = speeds(balance.actors, misses, machine).rates
    fills = _fills(rates, misses, balance)
    lacking = np.clip(balance.lines - held, 0, None).sum(axis=2)
    growing = np.array(fills)[lacking > SETTLED * cache]
    longest = cache / SLICES / growing.max() if growing.size and growing.max() > 0 else left
    return Stretch(min(left, longest), rates, fills)


def _fills(
    rates: Sequence[float], misses: Sequence[Sequence[float]], balance: Balance
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(rate * actor.model.accesses * weight * missed for weight, missed in zip(actor.weights, each, strict=True))
        for rate, actor, each in zip(rates, balance.actors, misses, strict=True)
    )


def filled(held: Floats, wanted: Floats, brought: Floats, way_lines: float) -> Floats:
    """Return what lies there after so many lines (by process and cache) were brought in."""
    lacking = np.clip(wanted - held, 0, None)
    total = lacking.sum(axis=2)
    part = np.divide(brought, total, out=np.zeros_like(total), where=total > 0)
    grown = held + lacking * np.minimum(part, 1.0)[:, :, None]
    too_many = np.clip(grown.sum(axis=0) - way_lines, 0, None)
    spare = np.clip(grown - wanted, 0, None)
    all_spare = spare.sum(axis=0)
    given_up = np.divide(too_many, all_spare, out=np.zeros_like(all_spare), where=all_spare > 0)
    return np.asarray(grown - spare * np.minimum(given_up, 1.0))
