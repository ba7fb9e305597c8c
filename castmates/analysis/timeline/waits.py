"""Where the time of threads went, by state and reason, and who ran instead of those that could have run.

And how often the kernel did something for a member, and for how long: calls, faults, migrations, interrupts.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.timeline.seen import NAN, SeenScene

RUNNING, RUNNABLE, PREEMPTED, BLOCKED, UNKNOWN = "running", "runnable", "preempted", "blocked", "unknown"
QUEUED = (RUNNABLE, PREEMPTED)  # it could run, and did not
BUSY = (RUNNING, *QUEUED)


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


SYSCALL, INTERRUPTS = "syscall", ("irq", "softirq")
INSTANTS = ("fault", "migration", "wakeup")
Cells = Any  # a column, or the one value that all rows have
MEMORY_CALLS = ("mmap", "mmap2", "munmap", "mremap", "brk", "madvise", "mprotect")


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
