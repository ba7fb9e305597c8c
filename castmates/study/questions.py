"""What an adaptive study asks of each mix: the question that stops it when it is answered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from castmates.study.curves import WAYS, curves
from castmates.study.spec import Mix

Kind = Literal["limit", "knee", "margin", "order"]
LIMIT: Kind = "limit"
KNEE: Kind = "knee"
MARGIN: Kind = "margin"
ORDER: Kind = "order"
KEPT_PCT = 95.0  # of the rate alone, at the knee


@dataclass(frozen=True)
class Question:
    """On which side of an edge a lead's slowdown lies; or in an order, which of the partitions of a mix is best."""

    kind: Kind
    edge: float  # log of the slowdown
    mix: str = ""  # in an order: whose partitions compete


def questions(mixes: Sequence[Mix], limit_pct: float | None, margin: float) -> dict[str, Question]:
    """The question of each mix, by identity.

    The loss of a mix without partitions against the margin; under a partition, the limit where the study has one. Else
    the knee of a curve over ways, the margin on other curves, and the order of partitions that lie on no curve.
    """
    of_margin = Question(MARGIN, math.log1p(margin))
    of_limit = None if limit_pct is None else Question(LIMIT, -math.log1p(-limit_pct / 100))
    of_knee = Question(KNEE, -math.log(KEPT_PCT / 100))
    on_ways = {cell.identity: curve.unit == WAYS for curve in curves(mixes) for cell in curve.cells}
    found: dict[str, Question] = {}
    for mix in mixes:
        if not mix.partitions:
            found[mix.identity] = of_margin
        elif not mix.antagonists:
            found[mix.identity] = of_knee
        elif of_limit is not None:
            found[mix.identity] = of_limit
        elif mix.identity not in on_ways:
            found[mix.identity] = Question(ORDER, math.nan, mix.name)
        else:
            found[mix.identity] = of_knee if on_ways[mix.identity] else of_margin
    return found
