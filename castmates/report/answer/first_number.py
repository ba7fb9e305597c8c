"""What the first launches of a study show, stamped as a first number: its interval, and what it leaves out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from castmates.english import counted, duration, number
from castmates.report.quantity import Quantity
from castmates.report.results import records
from castmates.report.text.words import loss_seen, plain
from castmates.study.spec import UNMANAGED

STAMP = "FIRST NUMBER, not a result"


@dataclass(frozen=True)
class Loss:
    """What a program lost, in per cent; its interval is between rounds of these launches."""

    lead: str
    beside: str
    loss: float  # NaN where no measurement counts
    low: float
    high: float


@dataclass(frozen=True)
class Rate:
    """How fast a program is alone."""

    program: str
    rate: float  # units a second
    unit: str


@dataclass(frozen=True)
class FirstNumber:
    """What `launches` of those that are planned show, which took so many seconds; as JSON has it, too."""

    stamp: str
    launches: int
    planned: int
    rounds: int  # of the pair that has fewest, among those with an interval; 0 where none has one
    seconds: float
    losses: tuple[Loss, ...]
    alone: tuple[Rate, ...]


def seen(effects: pd.DataFrame, windows: pd.DataFrame, launches: int, planned: int, took: float) -> FirstNumber:
    """What the launches show."""
    own = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone") & (effects["partition"] == UNMANAGED)]
    rounds = int(own.loc[own["rounds"] > 1, "rounds"].min()) if (own["rounds"] > 1).any() else 0
    return FirstNumber(STAMP, launches, planned, rounds, took, tuple(_losses(own)), tuple(_rates(windows)))


def first_lines(found: FirstNumber) -> list[str]:
    """Lines for a terminal."""
    left, launches = counted(found.planned - found.launches, "launch"), counted(found.launches, "launch")
    return [
        f"{found.stamp}: {launches} of {found.planned}, no controls, {duration(found.seconds)}",
        "",
        *_loss_lines(found.losses),
        "",
        *(
            f"  {rate.program} alone: {number(rate.rate, 2)} {rate.unit}s a second, {1 / rate.rate:.3g} s each"
            for rate in found.alone
        ),
        f"  Loss of speed against running alone. {_interval(found)} Left "
        f"out: {left}, and the controls, which show whether this machine can be trusted; so there is no verdict.",
        "",
        f"Next  the same command without --quick measures the other {left} and the controls",
    ]


def _interval(found: FirstNumber) -> str:
    if not found.rounds:
        return "No pair has two rounds, and one shows no interval."
    launches = "this launch" if found.launches == 1 else "these launches"
    return f"The 95 % interval is from {found.rounds} rounds of {launches}: it does not cover how launches differ."


def _loss_lines(losses: tuple[Loss, ...]) -> Iterator[str]:
    """A line for each pair; a program is named once."""
    leads, beside = (max((len(getattr(loss, part)) for loss in losses), default=0) for part in ("lead", "beside"))
    before = ""
    for loss in losses:
        found = Quantity(loss.loss, loss.low, loss.high, "%")
        said = "no measurement counts" if math.isnan(loss.loss) else found.whole
        yield f"  {'' if loss.lead == before else loss.lead:<{leads}}  beside {loss.beside:<{beside}}  {said}"
        before = loss.lead


def _losses(own: pd.DataFrame) -> Iterator[Loss]:
    for row in records(own):
        found = loss_seen(row) if row["launches"] else Quantity(math.nan)
        yield Loss(plain(row["lead"]), plain(row["antagonists"]), found.value, found.low, found.high)


def _rates(windows: pd.DataFrame) -> Iterator[Rate]:
    alone = windows[windows["valid"] & (windows["role"] == "lead") & windows["scene"].isin(["alone", "alone-again"])]
    for (name, unit), own in alone.groupby(["workload", "unit"], observed=True):
        rate = float(own["rate"].mean())
        if rate > 0:
            yield Rate(plain(str(name)), rate, str(unit) or "unit")
