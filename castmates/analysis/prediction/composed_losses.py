"""What a job loses beside several others, composed of what it loses beside each of them: the extra time adds up.

It overstates losses where antagonists take the same thing from a job (cache that is gone cannot be taken twice) and
understates them where together they fill what none of them fills alone (memory bandwidth). docs/benchmarks.md has how
far off it is on the modelled machine; `castmates advice --place --confirm` measures it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from castmates.analysis.prediction.losses import Loss, Losses
from castmates.analysis.prediction.predicted import combined_loss
from castmates.analysis.statistics.power import log_of, loss_pct


@dataclass(frozen=True)
class ComposedLosses:
    """Losses beside two or more, of those beside one. With separate ways nothing is composed: ways decide the traffic.

    The ends of the interval are those of the pairs, composed too. All pairs of a lead share its `alone` scene, so that
    their errors go together; such ends hold whatever the errors have in common. They leave out how far the
    rule itself is off.
    """

    pairs: Losses

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """From what is lost beside each; None where one of that is not known."""
        if ways is not None or len(beside) < 2:
            return None
        known = [loss for other in beside if (loss := self.pairs.of(job, [other])) is not None]
        if len(known) < len(beside):
            return None
        ends = zip(*((log_of(loss.pct), log_of(loss.low), log_of(loss.high)) for loss in known), strict=True)
        logs = [math.nan if any(map(math.isnan, end)) else combined_loss(end) for end in ends]
        pct, low, high = (math.nan if math.isnan(log) else loss_pct(log) for log in logs)
        return Loss(pct, low, high, "predicted")


@dataclass(frozen=True)
class FirstKnown:
    """Asks one after another: what is measured comes first."""

    sources: Sequence[Losses]

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What the first of them knows."""
        return next((loss for source in self.sources if (loss := source.of(job, beside, ways)) is not None), None)


@dataclass(frozen=True)
class WithIntervals:
    """Predictions; beside several jobs only those with an interval, because without it the ends of pairs give one."""

    predicted: Losses

    def of(self, job: str, beside: Sequence[str], ways: int | None = None) -> Loss | None:
        """What is predicted."""
        loss = self.predicted.of(job, beside, ways)
        return None if loss is not None and len(beside) > 1 and math.isnan(loss.high) else loss


def best_known(measured: Losses, predicted: Losses | None = None) -> Losses:
    """What is measured; else what is predicted; else composed of pairs, whichever of both these are."""
    pairs = FirstKnown([measured, WithIntervals(predicted)] if predicted else [measured])
    return FirstKnown([*pairs.sources, ComposedLosses(pairs)])
