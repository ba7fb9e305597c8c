"""What a job loses beside several others, composed of what it loses beside each of them: slowdowns multiply.

The assumption is that each neighbour takes the same share of what is left, whoever else is there. It overstates losses
where neighbours take the same thing from a job (cache that is gone cannot be taken twice) and understates them where
together they fill what none of them fills alone (memory bandwidth). docs/place.md has how far off it is on the modelled
machine; `castmates place --confirm` measures it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from castmates.analysis.prediction.losses import Loss, Losses
from castmates.analysis.prediction.measured_losses import from_log, log_of


@dataclass(frozen=True)
class ComposedLosses:
    """Losses beside two or more, of those beside one. With separate ways nothing is composed: ways decide the traffic.

    The ends of the interval are those of the pairs, composed as well. All of a lead's pairs share its solo, so that
    their errors go together; added up, their ends hold whatever the errors have in common. They leave out how far the
    rule itself is off.
    """

    pairs: Losses

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """The product of the slowdowns beside each; None where one of them is not known."""
        if ways is not None or len(beside) < 2:
            return None
        logs = [0.0, 0.0, 0.0]
        for other in beside:
            loss = self.pairs.of(job, [other])
            if loss is None:
                return None
            logs = [log + log_of(end) for log, end in zip(logs, (loss.pct, loss.low, loss.high), strict=True)]
        pct, low, high = (math.nan if math.isnan(log) else from_log(log) for log in logs)
        return Loss(pct, low, high, "predicted")


@dataclass(frozen=True)
class FirstKnown:
    """Asks one after another: what is measured comes first."""

    sources: Sequence[Losses]

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What the first of them knows."""
        return next((loss for source in self.sources if (loss := source.of(job, beside, ways)) is not None), None)


def best_known(measured: Losses, predicted: Losses | None = None) -> Losses:
    """What is measured; else what is predicted; else composed of pairs, whichever of both these are."""
    pairs = FirstKnown([measured, predicted] if predicted else [measured])
    return FirstKnown([*pairs.sources, ComposedLosses(pairs)])
