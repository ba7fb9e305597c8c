"""Windows of open-loop services -> quantiles of the latency of their requests, of each launch."""

import numpy as np
import pandas as pd

from castmates.analysis.explanations.steps import PLACE, QUANTILES


def request_quantiles(windows: pd.DataFrame) -> pd.DataFrame:
    """The requests and quantiles in ms of every launch, scene and member, as `launch_quantiles` has those of steps.

    A quantile is the geometric mean over the launch's windows, as of effects. `left` is the share of these in which so
    many requests were unanswered that it is but a bound.
    """
    valid = windows[windows["valid"] & windows["offered"].notna()]
    columns = {str(share): 1000 * valid[f"{name}_s"] for name, share in QUANTILES.items()}
    logs = valid[PLACE].assign(**{name: np.log(column.where(column > 0)) for name, column in columns.items()})
    left = {f"left {share}": valid[f"{name}_s"].isna() for name, share in QUANTILES.items()}
    whole = logs.assign(steps=valid["requests"], **left)
    found = whole.groupby(PLACE, observed=True, sort=False).agg(
        {"steps": "sum", **dict.fromkeys(columns, "mean"), **dict.fromkeys(left, "mean")}
    )
    found[[*columns]] = np.exp(found[[*columns]])
    return found.reset_index().assign(odd=0, units=1.0)
