"""Curves of a mix: partitions that give more and more of one thing, over which a rate only rises or only falls.

A curve is what an adaptive study need not measure in full: what lies between two measured cells is bounded by them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from castmates.study import masks
from castmates.study.schemata import mask_of
from castmates.study.spec import UNMANAGED, Mix, Partition, Share

WAYS, OTHERS_WAYS, QUOTA, BANDWIDTH = "ways", "ways of the others", "quota", "bandwidth of the others"
ALL_OF_IT = 100.0  # per cent of CPU time: what antagonists have without a quota
FEWEST = 4  # cells of a curve that is not measured in full from the start
FIRST_GRID = 5  # cells of a long curve that are measured first
LONG = 9  # cells


@dataclass(frozen=True)
class Cell:
    """One partition of a mix; of an unmanaged mix, UNMANAGED."""

    identity: str  # of the mix that has it
    mix: str
    partition: str
    amount: float


@dataclass(frozen=True)
class Curve:
    """The cells of one kind of partition, in the order in which the lead's rate does not fall."""

    mix: str
    family: str  # what they are called without the amount
    unit: str
    cells: tuple[Cell, ...]

    @property
    def first_grid(self) -> list[Cell]:
        """The cells that are measured first: both ends, and some between them at equal distances."""
        count = len(self.cells)
        if count < FEWEST:
            return list(self.cells)
        wanted = FIRST_GRID if count >= LONG else FEWEST if count > FIRST_GRID else FEWEST - 1
        places = {round(step * (count - 1) / (wanted - 1)) for step in range(wanted)}
        return [self.cells[place] for place in sorted(places)]


def curves(mixes: Iterable[Mix]) -> list[Curve]:
    """The curves of these mixes; partitions that lie on none are not in them, nor are mixes without partitions."""
    unmanaged: dict[tuple[str, ...], Mix] = {}
    kinds: dict[tuple[str, str, object], list[Cell]] = {}
    members: dict[str, tuple[str, ...]] = {}
    for mix in mixes:
        members[mix.name] = (mix.lead, *mix.antagonists)
        if not mix.partitions:
            unmanaged[members[mix.name]] = mix
        for partition in mix.partitions:
            if (found := _amount(mix, partition)) is not None:
                unit, amount, kind = found
                cell = Cell(mix.identity, mix.name, partition.name, amount)
                kinds.setdefault((mix.name, unit, kind), []).append(cell)
    return [
        Curve(name, kind if isinstance(kind, str) else unit, unit, _in_order(cells, unit, unmanaged.get(members[name])))
        for (name, unit, kind), cells in kinds.items()
        if len({cell.amount for cell in cells}) == len(cells) > 1
    ]


def measured_later(mixes: Sequence[Mix]) -> tuple[str, ...]:
    """Identities of the mixes that an adaptive study does not measure at first, in the order of the mixes."""
    waiting = {cell.identity for curve in curves(mixes) for cell in curve.cells}
    waiting -= {cell.identity for curve in curves(mixes) for cell in curve.first_grid}
    return tuple(dict.fromkeys(mix.identity for mix in mixes if mix.identity in waiting))


def _in_order(cells: Iterable[Cell], unit: str, unmanaged: Mix | None) -> tuple[Cell, ...]:
    """From the cell where the lead is slowest; quotas end at the mix without one, which is all of the CPU time."""
    own = list(cells)
    if unit == QUOTA and unmanaged is not None:
        own.append(Cell(unmanaged.identity, unmanaged.name, UNMANAGED, ALL_OF_IT))
    return tuple(sorted(own, key=lambda cell: cell.amount, reverse=unit != WAYS))


def _amount(mix: Mix, partition: Partition) -> tuple[str, float, object] | None:
    """What a partition gives so much of, where the lead's rate follows from that alone; and what else it is."""
    shares = {share.member: share for share in partition.shares}
    others = [shares.get(name) for name in mix.antagonists]
    if (own := mask_of(shares.get(mix.lead))) is not None:
        return WAYS, float(masks.popcount(own)), partition.curve or partition.name
    if mix.lead in shares or not others or None in others:
        return None
    alike: Mapping[str, set[float | None]] = {
        QUOTA: {share.quota for share in others if share},
        OTHERS_WAYS: {_ways(share) for share in others if share},
        BANDWIDTH: {share.bandwidth for share in others if share},
    }
    given = {unit: values for unit, values in alike.items() if values != {None}}
    if len(given) != 1:
        return None
    unit, values = given.popitem()
    amount = values.pop()
    kind = {(share.period, bool((mask_of(share) or 0) & 1)) for share in others if share}  # where masks begin
    return None if values or amount is None else (unit, float(amount), frozenset(kind))


def _ways(share: Share) -> float | None:
    mask = mask_of(share)
    return None if mask is None else float(masks.popcount(mask))
