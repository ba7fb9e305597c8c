"""Threads by pool: how many of them are busy at once, and whether CPUs idle while all of them are."""

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from castmates.analysis.timeline.levels import Spans, levels, quantile_of_time
from castmates.analysis.timeline.seen import NAN, Seen
from castmates.analysis.timeline.waits import BLOCKED, QUEUED, RUNNABLE, RUNNING, of_member

# What threads of an input pipeline are called: tf.data's, those of PyTorch's DataLoader, and of others by habit.
INPUT = re.compile(r"tf_data|pt_data|data_?loader|prefetch", re.IGNORECASE)
IO = "io"


@cache
def pool_of(thread: str) -> str:
    """`tf_Compute/12` and `worker 3` belong to tf_Compute and worker."""
    return re.sub(r"[\W_]*\d+$", "", thread) or thread


def pools(seen: Seen, member: str) -> Iterator[dict[str, object]]:
    """A row per pool, the busiest first."""
    own = of_member(seen.states, member)
    own = own.assign(pool=own["thread"].astype("str").map(pool_of))
    cpus, running = len(seen.trace.cpus(member)), _spans(own[own["name"] == RUNNING])
    rows = [_pool(seen, member, str(name), each, running, cpus) for name, each in own.groupby("pool", sort=True)]
    yield from sorted(rows, key=lambda row: -float(str(row["busy"])))


def _pool(seen: Seen, member: str, name: str, own: pd.DataFrame, running: Spans, cpus: int) -> dict[str, object]:
    busy = own[own["name"] != BLOCKED]
    threads = own["track"].nunique()
    lasts, (at_once, running_at_once) = levels(seen.spans, _spans(busy), running)
    all_busy = at_once >= threads
    time = float(lasts.sum()) or NAN
    queued = own[own["name"].isin(QUEUED)]
    most = quantile_of_time(lasts, at_once, 0.99)
    return seen.names(member) | {
        "pool": name,
        "threads": threads,
        "running": _time(own[own["name"] == RUNNING]) / time,
        "busy": _time(busy) / time,
        "at_once_p99": most,
        "used_share": most / threads,
        "all_busy_share": float(lasts[all_busy].sum()) / time,
        "all_busy_idle_share": float(lasts[all_busy & (running_at_once < cpus)].sum()) / time if cpus else NAN,
        "queued_share": _time(queued) / _time(busy) if len(busy) else NAN,
        "wakeups_per_s": int(((own["name"] == RUNNABLE) & own["begins"]).sum()) / seen.seconds,
    }


def input_only_share(seen: Seen, own: pd.DataFrame) -> float:
    """Of the time, in which threads of the input work or read, and no other thread does; NaN without such threads."""
    of_input = own["thread"].astype("str").map(lambda thread: bool(INPUT.search(thread))).to_numpy(dtype=bool)
    if not of_input.any():
        return NAN
    works = (own["name"] != BLOCKED).to_numpy()
    reads = ((own["name"] == BLOCKED) & (own["detail"] == IO)).to_numpy()
    lasts, (feeding, others) = levels(
        seen.spans, _spans(own[of_input & (works | reads)]), _spans(own[~of_input & works])
    )
    return float(lasts[(feeding > 0) & (others == 0)].sum() / lasts.sum()) if len(lasts) else NAN


def _spans(rows: pd.DataFrame) -> Spans:
    return rows["t0_ns"].to_numpy(np.int64), rows["t1_ns"].to_numpy(np.int64)


def _time(rows: pd.DataFrame) -> float:
    return float((rows["t1_ns"] - rows["t0_ns"]).sum())
