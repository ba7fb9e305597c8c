"""What the emulator says really happened: its file of truth, which knows nothing of programs, scenes and windows."""

from pathlib import Path

import pandas as pd

COUNTS = ["asked", "hits", "misses", "read", "written"]
LINE = 64  # bytes
BUSY = 1000  # lines that a program asks the cache for between two rows, at least


class Truth:
    """The rows of a file of truth (tests/lab/kit/processor/rdt.c), for two programs that are on one CPU each."""

    def __init__(self, file: Path, lead: int, other: int) -> None:
        self._rows = pd.read_csv(file, on_bad_lines="skip")  # its last line may be cut off
        self._lead, self._other = self._on(lead), self._on(other)

    def _on(self, cpu: int) -> pd.DataFrame:
        """Return what was done on a CPU between two rows of the same class and id, where that was something."""
        rows = self._rows[(self._rows.kind == "cpu") & (self._rows.number == cpu)].sort_values("ns")
        own = rows[["rmid", "class"]]
        spans = rows[COUNTS].diff().assign(ns=rows.ns.diff(), at=rows.ns, rmid=rows.rmid, ways=self._ways(rows))
        return spans[(own == own.shift()).all(axis=1) & (spans.asked >= BUSY)]

    def _ways(self, rows: pd.DataFrame) -> pd.Series:
        """Return how many ways each row's class had, by the last mask that was written before."""
        masks = self._rows[self._rows.kind == "mask"][["ns", "class", "value"]]
        asked = rows[["ns", "class"]].astype("int64")
        found = pd.merge_asof(asked, masks.astype("int64").sort_values("ns"), on="ns", by="class").value
        return found.map(lambda mask: int(mask).bit_count()).set_axis(rows.index)

    def by_ways(self, beside: bool) -> pd.DataFrame:
        """Return medians of what the lead did in a second, and what is held of it, by its ways."""
        spans = self._lead[self._lead["at"].isin(self._other["at"]) == beside]
        rates = spans[COUNTS].div(spans.ns / 1e9, axis=0).assign(ways=spans.ways, lines=self._lines(spans))
        return rates.groupby("ways").median().assign(spans=rates.groupby("ways").size())

    def _lines(self, spans: pd.DataFrame) -> pd.Series:
        ids = self._rows[self._rows.kind == "id"].set_index(["ns", "rmid"]).value
        return pd.Series(ids.reindex(pd.MultiIndex.from_frame(spans[["at", "rmid"]])).to_numpy(), spans.index)
