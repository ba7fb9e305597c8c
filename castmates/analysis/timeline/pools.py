"""Threads by pool: how many of them are busy at once, and whether CPUs idle while all of them are."""

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from castmates.analysis.timeline.families import PERF, WAKES
from castmates.analysis.timeline.seen import NAN, SeenScene, Spans, levels, quantile_of_time
from castmates.analysis.timeline.waits import BLOCKED, BUSY, QUEUED, RUNNABLE, RUNNING, UNKNOWN, of_member

# What threads of an input pipeline are called: tf.data's, those of PyTorch's DataLoader, and of others by habit.
INPUT = re.compile(r"tf_data|pt_data|data_?loader|prefetch", re.IGNORECASE)
IO = "io"
# What of a thread's name is its number in its pool; the query `pools` has the same.
NUMBER = r"[\W_]*\d+$"
# Pools of TensorFlow whose size its settings have, by the setting in the record of a trace.
SETTINGS = {"inter": re.compile(r"tf_(Compute|inter_op)"), "intra": re.compile(r"(tf_.*)?Eigen$")}
OF_SIZE = ("at_once_p99", "used_share", "all_busy_share", "all_busy_idle_share")  # cells that need all of a pool


@cache
def pool_of(thread: str) -> str:
    """`tf_Compute/12` and `worker 3` belong to tf_Compute and worker."""
    return re.sub(NUMBER, "", thread) or thread


def pools(seen: SeenScene, member: str) -> Iterator[dict[str, object]]:
    """A row per pool, the busiest first."""
    own = of_member(seen.states, member)
    own = own.assign(pool=own["thread"].astype("str").map(pool_of))
    cpus, busy = len(seen.trace.cpus(member)), _spans(own[own["name"].isin(BUSY)])
    more = unnamed(seen, own, member) + _silent(seen, own, member)
    rows = [_pool(seen, member, str(name), each, busy, cpus) for name, each in own.groupby("pool", sort=True)]
    rows = [row | _size(more, int(str(row["threads"])), set_size(seen, member, str(row["pool"]))) for row in rows]
    yield from sorted(rows, key=lambda row: -float(str(row["busy"])))


def _pool(seen: SeenScene, member: str, name: str, own: pd.DataFrame, every: Spans, cpus: int) -> dict[str, object]:
    busy = own[own["name"].isin(BUSY)]
    threads = own["track"].nunique()
    lasts, (at_once, all_at_once) = levels(seen.spans, _spans(busy), every)
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
        "all_busy_idle_share": float(lasts[all_busy & (all_at_once < cpus)].sum()) / time if cpus else NAN,
        "queued_share": _time(queued) / _time(busy) if len(busy) else NAN,
        "wakeups_per_s": _wakeups(own) / (seen.seconds or NAN) if WAKES in seen.families else NAN,
    }


def _wakeups(own: pd.DataFrame) -> int:
    return int(((own["name"] == RUNNABLE) & own["begins"]).sum())


def set_size(seen: SeenScene, member: str, pool: str) -> int:
    """How many threads the framework's settings give a pool; 0 where this is not known."""
    threads = dict((seen.trace.about.get("members") or {}).get(member) or {}).get("threads") or {}
    return next((int(threads.get(setting) or 0) for setting, name in SETTINGS.items() if name.match(pool)), 0)


def _size(more: int, threads: int, of_settings: int) -> dict[str, object]:
    """What a row has besides: where some of the member's threads have no name, a pool may lack threads.

    It is whole if as many of them were seen as the framework's settings give it.
    """
    cells: dict[str, object] = {"unnamed": more, "not_known": ""}
    if not more or threads == of_settings:
        return cells
    seen = f"; {threads} of its {of_settings} threads were seen" if of_settings else ""
    why = f"the size of its pools is not known: {more} more of its threads have no name but the program's{seen}"
    return cells | dict.fromkeys(OF_SIZE, NAN) | {"not_known": why}


def unnamed(seen: SeenScene, own: pd.DataFrame, member: str) -> int:
    """How many threads that were seen are called as their process is, and so may belong to any pool.

    Frameworks keep the names of their threads to themselves: a profile shows those of the threads that had work in it.
    """
    tracks = seen.trace.of_track.loc[own["track"].unique()]
    every = seen.trace.tracks
    processes = every[(every["kind"] == "process") & (every["member"] == member)]
    called = dict(zip(processes["pid"], processes["name"].astype("str"), strict=True))
    alike = tracks["name"].astype("str") == tracks["pid"].map(called)
    return int((alike & (tracks["tid"] != tracks["pid"])).fillna(value=False).sum())


def _silent(seen: SeenScene, own: pd.DataFrame, member: str) -> int:
    """How many of its threads perf knew of that did nothing while it recorded: they have no track, and no name."""
    recordings = [each for each in seen.trace.about.get("scenes") or () if each.get("scene") == seen.scene]
    sources = [source for each in recordings for source in each.get("sources") or () if source.get("name") == PERF]
    known = [int(dict(source.get("threads_of") or {}).get(member) or 0) for source in sources]
    return max(0, max(known, default=0) - int(own["track"].nunique()))


def input_only_share(seen: SeenScene, own: pd.DataFrame, member: str) -> float:
    """Of the time, in which threads of the input work or read, and no other thread does; NaN without such threads.

    Where threads have no names, which of them are of the input is not known.
    """
    if unnamed(seen, own, member):
        return NAN
    of_input = own["thread"].astype("str").map(lambda thread: bool(INPUT.search(thread))).to_numpy(dtype=bool)
    if not of_input.any():
        return NAN
    works = own["name"].isin(BUSY).to_numpy()
    reads = (own["name"].isin((BLOCKED, UNKNOWN)) & (own["detail"] == IO)).to_numpy()
    lasts, (feeding, others) = levels(
        seen.spans, _spans(own[of_input & (works | reads)]), _spans(own[~of_input & works])
    )
    return float(lasts[(feeding > 0) & (others == 0)].sum() / lasts.sum()) if len(lasts) else NAN


def _spans(rows: pd.DataFrame) -> Spans:
    return rows["t0_ns"].to_numpy(np.int64), rows["t1_ns"].to_numpy(np.int64)


def _time(rows: pd.DataFrame) -> float:
    return float((rows["t1_ns"] - rows["t0_ns"]).sum())
