"""Everything that is shown of a placement, from which sentences, figure and page are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from castmates.analysis.effects.stamps import origin_word
from castmates.analysis.grouping.advice import Advice, FreshLosses, groupings_table, ways_table
from castmates.analysis.grouping.problem import Group


@dataclass(frozen=True)
class Shown:
    """An advice with what fresh launches found of it."""

    advice: Advice
    fresh: Mapping[Group, FreshLosses]
    refused: tuple[str, ...] = ()  # why fresh launches do not count
    title: str = ""  # of the study
    command: str = ""  # that confirms it

    @cached_property
    def groupings(self) -> pd.DataFrame:
        """A row per job of the best groupings."""
        return groupings_table(self.advice, self.fresh)

    @cached_property
    def ways(self) -> pd.DataFrame:
        """A row per way to place the jobs, and kind of job."""
        return ways_table(self.advice)

    @property
    def origin(self) -> str:
        """What comes first where losses were not measured on a machine; "" otherwise."""
        return origin_word([self.advice.place.platform])

    @property
    def is_predicted(self) -> bool:
        """Whether some loss of the best groupings is predicted."""
        return bool((self.groupings["source"] == "predicted").any())
