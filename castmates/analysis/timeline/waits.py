"""Where the time of threads went, by state and reason, and who ran instead of those that could have run.

And how often the kernel did something for a member, and for how long: calls, faults, migrations, interrupts. By pool of
threads: how many of them are busy at once, and whether CPUs idle while all of them are.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.timeline.families import PERF, WAKES
from castmates.analysis.timeline.seen import NAN, SeenScene, Spans, levels, quantile_of_time

RUNNING, RUNNABLE, PREEMPTED, BLOCKED, UNKNOWN = "running", "runnable", "preempted", "blocked", "unknown"
QUEUED = (RUNNABLE, PREEMPTED)  # it could run, and did not
BUSY = (RUNNING, *QUEUED)
SYSCALL, INTERRUPTS = "syscall", ("irq", "softirq")
INSTANTS = ("fault", "migration", "wakeup")
Cells = Any  # a column, or the one value that all rows have
MEMORY_CALLS = ("mmap", "mmap2", "munmap", "mremap", "brk", "madvise", "mprotect")
# What threads of an input pipeline are called: tf.data's, those of PyTorch's DataLoader, and of others by habit.
INPUT = re.compile(r"tf_data|pt_data|data_?loader|prefetch", re.IGNORECASE)
IO = "io"
# What of a thread's name is its number in its pool; the query `pools` has the same.
NUMBER = r"[\W_]*\d+$"
# Pools of TensorFlow whose size its settings have, by the setting in the record of a trace.
SETTINGS = {"inter": re.compile(r"tf_(Compute|inter_op)"), "intra": re.compile(r"(tf_.*)?Eigen$")}
OF_SIZE = ("at_once_p99", "used_share", "all_busy_share", "all_busy_idle_share")  # cells that need all of a pool


def of_member(rows: pd.DataFrame, member: str) -> pd.DataFrame:
    """The rows of this member."""
    return rows[rows["member"] == member]


def waits(seen: SeenScene, member: str, steps: float) -> Iterator[dict[str, object]]:
    """A row per state and reason, the longest first."""
    own = of_member(seen.states, member)
    table = pd.DataFrame(
        {
            "state": own["name"].astype("str"),
            "reason": own["detail"].astype("str"),
            "thread_seconds": (own["t1_ns"] - own["t0_ns"]) / 1e9,
            "times": own["begins"].astype(int),
        }
    )
    total = table["thread_seconds"].sum()
    each = table.groupby(["state", "reason"], as_index=False)[["times", "thread_seconds"]].sum()
    for row in each.sort_values("thread_seconds", ascending=False).to_dict("records"):
        share = row["thread_seconds"] / total if total else NAN
        ms = 1e3 * row["thread_seconds"] / steps if steps > 0 else NAN
        yield seen.names(member) | {str(name): cell for name, cell in row.items()} | {"share": share, "ms_per_step": ms}


def seconds_in(own: pd.DataFrame) -> dict[str, float]:
    """Thread-seconds by state."""
    lasts = (own["t1_ns"] - own["t0_ns"]).to_numpy() / 1e9
    state = own["name"].astype("str").to_numpy()
    return {name: float(lasts[state == name].sum()) for name in (RUNNING, RUNNABLE, PREEMPTED, BLOCKED, UNKNOWN)}


def running_within(own: pd.DataFrame, spans: pd.DataFrame) -> float:
    """Seconds for which threads ran in these intervals of theirs: in a call they may wait, or lose their CPU."""
    found = 0.0
    running = own[own["name"] == RUNNING]
    by_thread = dict(iter(running.groupby("track")))
    for track, each in spans.groupby("track"):
        if track not in by_thread:
            continue
        begin, end = (by_thread[track][edge].to_numpy(dtype=float) for edge in ("t0_ns", "t1_ns"))
        edges, so_far = np.column_stack([begin, end]).ravel(), np.cumsum(end - begin)
        ran = np.column_stack([so_far - (end - begin), so_far]).ravel()  # until each edge
        inside = (np.interp(each[edge].to_numpy(dtype=float), edges, ran) for edge in ("t1_ns", "t0_ns"))
        found += float(np.subtract(*inside).sum()) / 1e9
    return found


def behind(own: pd.DataFrame) -> dict[str, float]:
    """Thread-seconds for which threads could run and did not, by whose thread ran instead; "" where it is not known."""
    queued = own[own["name"].isin(QUEUED)]
    lasts = (queued["t1_ns"] - queued["t0_ns"]) / 1e9
    by_whom = lasts.groupby(queued["detail"].astype("str")).sum()
    return {str(who): float(each) for who, each in by_whom.items()}


def latencies_us(own: pd.DataFrame) -> np.ndarray:
    """From each wake-up until the thread ran, of those that were recorded whole."""
    woken = own[(own["name"] == RUNNABLE) & own["whole"]]
    return (woken["t1_ns"] - woken["t0_ns"]).to_numpy() / 1e3


def unwoken(own: pd.DataFrame) -> pd.DataFrame:
    """The waits that ended without a wake-up that was seen: blocked at first, and then in the queue of a CPU."""
    return own[(own["name"] == UNKNOWN) & (own["detail"].astype("str") != "")]


def events(seen: SeenScene, member: str, steps: float) -> Iterator[dict[str, object]]:
    """A row per kind and name, the most frequent first."""
    calls = calls_of(seen, member)
    points = of_member(seen.instants, member)
    points = points[points["kind"].isin(INSTANTS)]
    took = (calls["t1_ns"] - calls["t0_ns"]).to_numpy()
    counted = pd.concat([_named(calls, took, calls["begins"].to_numpy()), _named(points, np.nan, 1)])
    each = counted.groupby(["event", "name"], as_index=False).agg(
        count=("count", "sum"), ms=("ms", lambda ms: ms.sum(min_count=1)), longest_ms=("ms", "max")
    )
    for row in each.sort_values("count", ascending=False).to_dict("records"):
        yield seen.names(member) | {
            **{str(name): cell for name, cell in row.items() if name != "ms"},
            "per_s": row["count"] / seen.seconds if seen.seconds else NAN,
            "per_step": row["count"] / steps if steps > 0 else NAN,
            "ms_per_step": row["ms"] / steps if steps > 0 else NAN,
        }


def calls_of(seen: SeenScene, member: str) -> pd.DataFrame:
    """Its threads' system calls, and the interrupts on its CPUs."""
    calls = seen.calls
    own = (calls["member"] == member).to_numpy()
    on_cpus = (calls["on"] == "cpu") & calls["cpu_of_track"].isin(seen.trace.cpus(member))
    outermost = (calls["depth"] == 0).to_numpy()
    return calls[outermost & (own | on_cpus.to_numpy())]


def _named(rows: pd.DataFrame, took: Cells, count: Cells) -> pd.DataFrame:
    """Kind and name of each, milliseconds, and whether it counts: one that began earlier only takes time."""
    names = {"event": rows["kind"].astype("str"), "name": rows["name"].astype("str")}
    return pd.DataFrame(names | {"ms": np.asarray(took, float) / 1e6, "count": np.asarray(count, np.int64)})


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
