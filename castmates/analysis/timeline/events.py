"""How often the kernel did something for a member, and how long that took: calls, faults, migrations, interrupts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from castmates.analysis.timeline.seen import NAN, SeenScene
from castmates.analysis.timeline.waits import of_member

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
