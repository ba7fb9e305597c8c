"""Where the time of threads went, by state and reason, and who ran instead of those that could have run."""

from collections.abc import Iterator

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
