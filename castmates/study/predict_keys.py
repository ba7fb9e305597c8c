"""The key `predict` of a study: a grid of pairs of which a part is measured, and the rest predicted."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from castmates.study.written import Name, Percentage, Written

MEASURED = 0.4  # of the grid
Names = Annotated[list[Name], Field(min_length=2)]


class PredictKeys(Written):
    """Which pairs are predicted, and what is measured for that."""

    leads: Names = Field(description="the rows of the grid: each beside each of the antagonists")
    antagonists: Names | None = Field(default=None, description="its columns; the leads if left out")
    measure: Percentage = Field(
        default=MEASURED,
        description="how much is measured, as a share of the grid's pairs, the mixes with bubbles and reporters "
        "included; raising it adds pairs and takes none away",
    )
    bubbles: list[Name] = Field(
        default=[],
        description="dials, such as capacity-half-llc and bandwidth-2gbs, beside which every lead is measured: its "
        "sensitivity (docs/prediction.md)",
    )
    reporters: list[Name] = Field(
        default=[], description="leads that are measured beside every antagonist and bubble: the pressure of each"
    )
    check: int = Field(
        default=0,
        ge=0,
        description="further pairs, drawn at random, that are measured and kept from the fit: they show its error",
    )

    @property
    def columns(self) -> list[str]:
        """The antagonists of the grid."""
        return self.leads if self.antagonists is None else self.antagonists

    @property
    def named(self) -> dict[str, list[str]]:
        """The workloads of each of its keys."""
        return {
            "leads": self.leads,
            "antagonists": self.antagonists or [],
            "bubbles": self.bubbles,
            "reporters": self.reporters,
        }

    @model_validator(mode="after")
    def _can_be_fitted(self) -> Self:
        for key, names in (("leads", self.leads), ("antagonists", self.columns), ("bubbles", self.bubbles)):
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f"each name once, and '{twice}' is twice in '{key}'")
        if both := next((name for name in self.bubbles if name in self.columns), None):
            raise ValueError(f"bubbles beside the grid's antagonists, and '{both}' is among both")
        if not 0 < self.measure <= 1:
            raise ValueError("'measure' as a share of the grid above 0 and up to 100%")
        pairs, least = len(self.leads) * len(self.columns), self._least
        if int(self.measure * pairs + 1e-9) < least:
            raise ValueError(
                f"'measure' of at least {-(-100 * least // pairs)}%, because {least} mixes are needed to measure what "
                f"the other pairs of {len(self.leads)} leads and {len(self.columns)} antagonists are predicted from"
            )
        return self

    @property
    def _least(self) -> int:
        """The mixes with bubbles and reporters, and what is needed to have each lead and each antagonist in one."""
        with_bubbles = len({*self.leads, *self.reporters}) * len(self.bubbles)
        rows = 0 if self.bubbles else len({*self.leads} - {*self.reporters})
        columns = 0 if self.reporters else len(self.columns)
        return with_bubbles + len(self.reporters) * len(self.columns) + max(rows, columns)
