"""The events that stand in no ratio for the leads, with the reason."""

import pandas as pd

from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, USABLE, Marks, events_in
from castmates.results.columns.block import Columns
from castmates.results.columns.study import frame

LEFT_OUT: Columns = {"event": "str", "status": "str", "reason": "str"}


class LeftOut:
    """Gathers them from some whole launches at a time; an event that stands in a ratio anywhere is none of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._good: set[str] = set()
        self._told: list[pd.DataFrame] = []

    def add(self, counts: pd.DataFrame, ours: Marks, usable: Marks) -> None:
        """Look at the rows that are of a lead's windows, and which of those are usable."""
        ours = ours & (counts["phase"] == "").to_numpy(dtype=bool)
        self._good |= set(events_in(counts, ours & usable & (counts["value"] > 0).to_numpy(dtype=bool)))
        rows = counts[ours & ~counts["event"].isin(list(self._good)).to_numpy(dtype=bool)]
        zeros = rows.assign(zero=rows["value"] == 0)
        names = ["event", "status", "note"]
        told = zeros.groupby(names, sort=False, observed=True, dropna=False).agg(
            rows=("zero", "size"), zeros=("zero", "sum"), share=("running", "sum"), shares=("running", "count")
        )
        self._told.append(told.reset_index().astype(dict.fromkeys(names, "str")).fillna({"note": ""}))

    def table(self) -> pd.DataFrame:
        """Each event with its status and the reason that was given most."""
        if not self._told:
            return frame([], LEFT_OUT)
        told = pd.concat(self._told, ignore_index=True)
        told = told[~told["event"].isin(list(self._good))]
        return frame([_row(str(event), rows) for event, rows in told.groupby("event", sort=False)], LEFT_OUT)


def _row(event: str, told: pd.DataFrame) -> dict[str, str]:
    spoilt = told["status"].isin(USABLE)
    if spoilt.all():
        rows, zeros, share, shares = (told[name].sum() for name in ("rows", "zeros", "share", "shares"))
        why = f"counted for {share / shares:.0%} of the member's time, where {FULLY_COUNTED:.0%} are needed"
        return {
            "event": event,
            "status": str(told.groupby("status")["rows"].sum().idxmax()),
            "reason": "0 in every window" if zeros == rows else why,
        }
    status, reason = most_told(told[~spoilt])
    return {"event": event, "status": status, "reason": reason}


def most_told(told: pd.DataFrame) -> tuple[str, str]:
    """The status and the note that most `rows` have."""
    most = told.groupby(["status", "note"])["rows"].sum().sort_values(ascending=False, kind="stable").reset_index()
    return str(most["status"].iloc[0]), str(most["note"].iloc[0])
