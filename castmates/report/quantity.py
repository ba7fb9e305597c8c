"""A number with its interval, which prints itself: as text in terminal, sentences and LaTeX, on the page, in JSON."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from castmates.english import number


@dataclass(frozen=True)
class Quantity:
    """A loss, a ratio, a latency: 12.0 % [10.0, 14.0]; its interval is NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    digits: int = 1

    @classmethod
    def of(cls, row: Mapping[str, Any], name: str, unit: str = "", digits: int = 1, stem: str = "") -> "Quantity":
        """A column with its interval, as tables name the three: loss_pct, loss_low, loss_high."""
        stem = stem or name.removesuffix("_pct")
        return cls(row[name], row[f"{stem}_low"], row[f"{stem}_high"], unit, digits)

    @classmethod
    def made(cls, three: Iterable[float], unit: str = "", digits: int = 1) -> "Quantity":
        """Of value, low and high."""
        value, low, high = three
        return cls(value, low, high, unit, digits)

    @classmethod
    def loss(cls, row: Mapping[str, Any], name: str = "slowdown", unit: str = "") -> "Quantity":
        """A slowdown as a loss in per cent."""
        return cls.made((as_loss(row[f"{name}{end}"]) for end in ("", "_low", "_high")), unit)

    def __mul__(self, factor: float) -> "Quantity":
        return Quantity.made((part * factor for part in self.parts), self.unit, self.digits)

    def __truediv__(self, size: float) -> "Quantity":
        return Quantity.made((part / size for part in self.parts), self.unit, self.digits)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.value, -self.high, -self.low, self.unit, self.digits)

    def __abs__(self) -> "Quantity":
        return -self if self.value < 0 else self

    @property
    def parts(self) -> tuple[float, float, float]:
        """What JSON has of it."""
        return self.value, self.low, self.high

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    @property
    def number(self) -> str:
        """12.0; a dash where there is none."""
        return number(self.value, self.digits)

    @property
    def amount(self) -> str:
        """12.0 %."""
        return f"{self.number} {self.unit}".rstrip()

    @property
    def ends(self) -> str:
        """[10.0, 14.0]; dashes for ends that are not known."""
        return f"[{number(self.low, self.digits)}, {number(self.high, self.digits)}]"

    @property
    def interval(self) -> str:
        """[10.0, 14.0]; "" where there is none."""
        return self.ends if self.known else ""

    @property
    def whole(self) -> str:
        """12.0 % [10.0, 14.0]; 12.0 % [–, –] where the ends are not known."""
        return f"{self.amount} {self.ends}"

    def cells(self, mark: str = "") -> tuple[str, str]:
        """The number and its interval beside it, in the table of a paper; a mark is behind the interval."""
        return self.amount, (self.interval or "–") + mark

    def __str__(self) -> str:
        return self.whole if self.known else self.amount

    def __html__(self) -> str:
        """For a cell of the page, where the interval is kept on one line."""
        return f'{self.amount} <span class="nb">{self.interval}</span>'


def as_loss(slowdown: float) -> float:
    """Slowdown -> loss in per cent."""
    return 100 * (1 - 1 / slowdown) if slowdown else math.nan
