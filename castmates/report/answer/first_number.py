"""What the first launches of a study show, stamped as a first number: its interval, and what it leaves out."""

from collections.abc import Iterator

import pandas as pd

from castmates.english import counted, duration, number
from castmates.report.results import records
from castmates.report.text.words import loss_seen, plain
from castmates.study.spec import UNMANAGED

STAMP = "FIRST NUMBER, not a result"


def first_lines(effects: pd.DataFrame, windows: pd.DataFrame, launches: int, planned: int, took: float) -> list[str]:
    """Lines for a terminal: `launches` of those that are planned were measured, which took so many seconds."""
    own = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone") & (effects["partition"] == UNMANAGED)]
    rounds = int(own["rounds"].max()) if len(own) else 0
    left = counted(planned - launches, "launch")
    return [
        f"{STAMP}: {counted(launches, 'launch')} of {planned}, no controls, {duration(took)}",
        "",
        *_losses(own),
        "",
        *(f"  {line}" for line in _rates(windows)),
        f"  Loss of speed against running alone. The 95 % interval is from {counted(rounds, 'round')} of "
        f"{'this launch' if launches == 1 else 'these launches'}: it does not cover how launches differ. Left out: "
        f"{left}, and the controls, which show whether this machine can be trusted; so there is no verdict.",
        "",
        f"Next  the same command without --quick measures the other {left} and the controls",
    ]


def _losses(own: pd.DataFrame) -> Iterator[str]:
    """A line for each pair; a program is named once."""
    leads, beside = (max((len(plain(name)) for name in own[column]), default=0) for column in ("lead", "antagonists"))
    before = ""
    for row in records(own):
        name = plain(row["lead"])
        said = loss_seen(row, "%").whole if row["launches"] else "no measurement counts"
        yield f"  {'' if name == before else name:<{leads}}  beside {plain(row['antagonists']):<{beside}}  {said}"
        before = name


def _rates(windows: pd.DataFrame) -> Iterator[str]:
    """How fast each program is alone."""
    alone = windows[windows["valid"] & (windows["role"] == "lead") & windows["scene"].isin(["alone", "alone-again"])]
    for (name, unit), own in alone.groupby(["workload", "unit"], observed=True):
        rate = float(own["rate"].mean())
        if rate > 0:
            yield f"{plain(str(name))} alone: {number(rate, 2)} {unit or 'unit'}s a second, {1 / rate:.3g} s each"
