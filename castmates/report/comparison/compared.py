"""Studies side by side: what terminal, figures and page of a comparison are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from castmates.analysis.effects.stamps import origin_word
from castmates.report.comparison.details import NOTHING, Details, Difference
from castmates.report.results import records
from castmates.report.text.words import Quantity, Row, as_loss, chance, counted
from castmates.results.columns.comparison import COMPARISON_HISTORY, COMPARISONS
from castmates.results.columns.study import frame
from castmates.study.spec import UNMANAGED


@dataclass(frozen=True)
class Described:
    """One of the studies, in words."""

    letter: str  # A, B, …: A is the baseline
    name: str  # of the study
    folder: str
    launches: int
    platforms: tuple[str, ...]
    hosts: tuple[str, ...]
    failed: tuple[str, ...] = ()  # why each launch failed that did
    date: str = ""  # ISO 8601, UTC: the middle of its launches; "" where none was recorded
    slices: tuple[float, float] | None = None  # the shortest and the longest, in seconds; None where none was recorded

    @property
    def sentence(self) -> str:
        """A is quick (results/quick): 9 launches, measured, on vm."""
        where = f", on {' and '.join(self.hosts)}" if self.hosts and self.platforms == ("measured",) else ""
        count = counted(self.launches, "launch")
        facts = ", ".join([count, *([" and ".join(self.platforms)] if self.platforms else [])])
        return f"{self.letter} is {self.name} ({self.folder}): {facts}{where}{self._failures}."

    @property
    def _failures(self) -> str:
        """; 3 more failed (it ended with status 1). What fails in one study only is a difference too."""
        reasons = "; ".join(dict.fromkeys(filter(None, self.failed)))
        return f"; {len(self.failed)} more failed" + (f" ({reasons})" if reasons else "") if self.failed else ""


@dataclass(frozen=True)
class Compared:
    """Two studies: the table of their comparison and what stands around it."""

    a: Described
    b: Described
    table: pd.DataFrame
    margin: float
    differences: Sequence[Difference]  # machines, versions, designs
    work: Sequence[Difference]  # commands, programs, CPUs
    masks: Sequence[str]  # where partitions of one name are not the same
    equal: Sequence[str] = ()  # which partitions are one, because the processor held the same under each
    traffic: Sequence[str] = ()  # why memory traffic is not the same quantity in both
    antagonists: Sequence[str] = ()  # in the order that gives each its colour

    @cached_property
    def origin(self) -> str:
        """What comes first where not all is measured: modelled (not measured)."""
        return origin_word({*self.a.platforms, *self.b.platforms})

    @property
    def mixed(self) -> bool:
        """Whether the two come from different platforms."""
        return self.a.platforms != self.b.platforms

    @property
    def both(self) -> pd.DataFrame:
        """The rows that both studies have."""
        return self.table[self.table["where"] == "both"]

    def leads(self, partitioned: bool, baseline: str = "alone") -> pd.DataFrame:
        """The leads' rows of both against one baseline, with or without a partition."""
        rows = self.both[(self.both["role"] == "lead") & (self.both["baseline"] == baseline)]
        return rows[(rows["partition_a"] != UNMANAGED) == partitioned]


@dataclass(frozen=True)
class Several:
    """A baseline with one study or more beside it."""

    pairs: Sequence[Compared]  # the baseline, always A, with each of the others
    means: pd.DataFrame  # geometric means over the pairs that all have
    differences: Sequence[Difference]  # of all studies, in the order of `studies`
    work: Sequence[Difference]
    antagonists: Sequence[str] = ()  # of all studies, the baseline's first: their order gives each its colour
    details: Details = NOTHING  # counters, phases, operations, quantiles

    @cached_property
    def studies(self) -> list[Described]:
        """The baseline, then the others."""
        return [self.pairs[0].a, *(pair.b for pair in self.pairs)]

    @cached_property
    def origin(self) -> str:
        """What comes first where not all is measured."""
        return origin_word({name for study in self.studies for name in study.platforms})

    @property
    def margin(self) -> float:
        """The largest change that counts as none."""
        return self.pairs[0].margin

    @cached_property
    def table(self) -> pd.DataFrame:
        """The rows of all pairs of studies, one below the other."""
        parts = [
            pair.table.assign(letter=pair.b.letter, study_a=pair.a.name, study_b=pair.b.name) for pair in self.pairs
        ]
        return pd.concat(parts, ignore_index=True)[list(COMPARISONS)].astype(dict(COMPARISONS))

    @cached_property
    def history(self) -> pd.DataFrame:
        """What each study's leads lose against alone, in the order of time; studies without a date are left out."""
        parts = [self._losses(study) for study in self.studies if study.date]
        if not parts:
            return frame([], COMPARISON_HISTORY)
        table = pd.concat(parts, ignore_index=True).sort_values("date", kind="stable", ignore_index=True)
        return table[list(COMPARISON_HISTORY)].astype(dict(COMPARISON_HISTORY))

    def _losses(self, study: Described) -> pd.DataFrame:
        """One study's own losses, of every lead beside every antagonist."""
        side = "a" if study is self.pairs[0].a else "b"
        own = self.pairs if side == "a" else [pair for pair in self.pairs if pair.b is study]
        rows = pd.concat([pair.table for pair in own]).drop_duplicates(
            ["mix", "member", "baseline", f"partition_{side}"]
        )
        wanted = (rows["role"] == "lead") & (rows["baseline"] == "alone") & (rows[f"partition_{side}"] == UNMANAGED)
        rows = rows[wanted & rows[f"slowdown_{side}"].notna()]
        numbers = {f"slowdown{end}": rows[f"slowdown_{side}{end}"] for end in ("", "_low", "_high")}
        about = {"letter": study.letter, "study": study.name, "date": study.date, "host": " and ".join(study.hosts)}
        return rows.assign(**numbers, **about, platform=rows[f"platform_{side}"], launches=rows[f"launches_{side}"])


# The rows of a comparison, as terminal and page show them.


def rows(compared: Compared) -> list[dict[str, Any]]:
    """What both studies have: numbers with their intervals, in words."""
    return [_row(row) for row in records(compared.both)]


def _row(row: Row) -> dict[str, Any]:
    name = row["partition_a"]
    return {
        **row,
        "partition": name if name == row["partition_b"] else f"{name} / {row['partition_b']}",
        "loss_a": as_loss(row["slowdown_a"]),
        "loss_b": as_loss(row["slowdown_b"]),
        "said_a": str(Quantity.loss(row, "slowdown_a")),
        "said_b": str(Quantity.loss(row, "slowdown_b")),
        "said_ratio": str(Quantity.of(row, "ratio", digits=3)),
        "said_rate": str(Quantity.of(row, "baseline_rate_ratio", digits=3)),
        "said_p": chance(row["p_holm"]),
    }
