"""The events that stand in no ratio for the leads, with the reason."""

import pandas as pd

from castmates.analysis.explanations.counted_metrics import FULLY_COUNTED, USABLE, Marks, events_in
from castmates.results.columns.contract import Columns
from castmates.results.columns.study import frame

LEFT_OUT: Columns = {"event": "str", "status": "str", "reason": "str"}


class LeftOut:
    """Gathers them from some whole launches at a time, without the events that stand in a ratio anywhere."""

    def __init__(self) -> None:
        """Begin with none."""
        self._good: set[str] = set()
        self._reasons: list[pd.DataFrame] = []

    def add(self, counts: pd.DataFrame, ours: Marks, usable: Marks) -> None:
        """Take in some rows: `ours` are those of a lead's windows."""
        ours = ours & (counts["phase"] == "").to_numpy(dtype=bool)
        self._good |= set(events_in(counts, ours & usable & (counts["value"] > 0).to_numpy(dtype=bool)))
        rows = counts[ours & ~counts["event"].isin(list(self._good)).to_numpy(dtype=bool)]
        zeros = rows.assign(zero=rows["value"] == 0)
        names = ["event", "status", "note"]
        reasons = zeros.groupby(names, sort=False, observed=True, dropna=False).agg(
            rows=("zero", "size"), zeros=("zero", "sum"), share=("running", "sum"), shares=("running", "count")
        )
        self._reasons.append(reasons.reset_index().astype(dict.fromkeys(names, "str")).fillna({"note": ""}))

    def table(self) -> pd.DataFrame:
        """Each event with its status and its most frequent reason."""
        if not self._reasons:
            return frame([], LEFT_OUT)
        reasons = pd.concat(self._reasons, ignore_index=True)
        reasons = reasons[~reasons["event"].isin(list(self._good))]
        return frame([_row(str(event), rows) for event, rows in reasons.groupby("event", sort=False)], LEFT_OUT)


def _row(event: str, reasons: pd.DataFrame) -> dict[str, str]:
    spoilt = reasons["status"].isin(USABLE)
    if spoilt.all():
        rows, zeros, share, shares = (reasons[name].sum() for name in ("rows", "zeros", "share", "shares"))
        why = f"counted for {share / shares:.0%} of the member's time, where {FULLY_COUNTED:.0%} are needed"
        return {
            "event": event,
            "status": str(reasons.groupby("status")["rows"].sum().idxmax()),
            "reason": "0 in every window" if zeros == rows else why,
        }
    status, reason = most_frequent(reasons[~spoilt])
    return {"event": event, "status": status, "reason": reason}


def most_frequent(reasons: pd.DataFrame) -> tuple[str, str]:
    """The status and the note that most `rows` have."""
    most = reasons.groupby(["status", "note"])["rows"].sum().sort_values(ascending=False, kind="stable").reset_index()
    return str(most["status"].iloc[0]), str(most["note"].iloc[0])
