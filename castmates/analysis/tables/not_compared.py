"""Which traces cannot be compared with the one of the lead alone, and why."""

from typing import TYPE_CHECKING

from castmates.results.columns.contract import Table, col, usual
from castmates.study import capabilities

if TYPE_CHECKING:
    import pandas as pd

    from castmates.analysis.operations.per_trace import Traces

NOT_COMPARED = Table(
    "not_compared",
    "tables/not_compared.csv: a row per trace that cannot be compared with the one of the lead alone.",
    *usual("study scene mix partition member platform cohort launch round"),
    col("different", float, "share of the step in operations that one of the two alone has, the larger one"),
    col("reason", str, "other threads, another graph"),
    rule="estimate_operations",
    asked=capabilities.PROFILE,
)


@NOT_COMPARED.estimated_by
def not_compared(traces: "Traces") -> "pd.DataFrame":
    """The traces beside others, without those that can be compared."""
    return traces.both[traces.both["reason"] != ""]
