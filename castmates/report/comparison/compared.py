"""Two studies side by side: what terminal, figure and page of a comparison are made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from castmates.analysis.effects.stamps import origin_word
from castmates.report.comparison.differences import Difference
from castmates.study.spec import UNMANAGED


@dataclass(frozen=True)
class Described:
    """One of the two, in words."""

    letter: str  # A, B
    name: str  # of the study
    folder: str
    blocks: int
    platforms: tuple[str, ...]
    hosts: tuple[str, ...]
    failed: tuple[str, ...] = ()  # why each block failed that did

    @property
    def sentence(self) -> str:
        """A is quick (results/quick): 9 blocks, measured, on vm."""
        where = f", on {' and '.join(self.hosts)}" if self.hosts and self.platforms == ("measured",) else ""
        count = f"{self.blocks} block{'' if self.blocks == 1 else 's'}"
        facts = ", ".join([count, *([" and ".join(self.platforms)] if self.platforms else [])])
        return f"{self.letter} is {self.name} ({self.folder}): {facts}{where}{self._failures}."

    @property
    def _failures(self) -> str:
        """; 3 more failed (it ended with status 1). What fails in one study only is a difference too."""
        reasons = "; ".join(dict.fromkeys(filter(None, self.failed)))
        return f"; {len(self.failed)} more failed" + (f" ({reasons})" if reasons else "") if self.failed else ""


@dataclass(frozen=True)
class Compared:
    """The table of the comparison and what stands around it."""

    a: Described
    b: Described
    table: pd.DataFrame
    margin: float
    differences: Sequence[Difference]  # machines, versions, designs
    work: Sequence[Difference]  # commands, programs, CPUs
    masks: Sequence[str]  # where partitions of one name are not the same

    @cached_property
    def origin(self) -> str:
        """What is said first where not all is measured: modelled (not measured)."""
        return origin_word({*self.a.platforms, *self.b.platforms})

    @property
    def mixed(self) -> bool:
        """Whether the two come from different platforms."""
        return self.a.platforms != self.b.platforms

    @property
    def both(self) -> pd.DataFrame:
        """The rows that both studies have."""
        return self.table[self.table["where"] == "both"]

    def leads(self, partitioned: bool, baseline: str = "solo") -> pd.DataFrame:
        """The leads' rows of both against one baseline, with or without a partition."""
        rows = self.both[(self.both["role"] == "lead") & (self.both["baseline"] == baseline)]
        return rows[(rows["partition_a"] != UNMANAGED) == partitioned]
