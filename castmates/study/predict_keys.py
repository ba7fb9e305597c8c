"""The key `predict` of a study: a grid of pairs of which a part is measured, and the rest predicted."""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from castmates.study.written import Name, PositivePercentage, Written

MEASURED = 0.4  # of the grid
FEWEST_PAIRS = 6  # measured mixes of two, below which nothing is predicted
Names = Annotated[list[Name], Field(min_length=2)]


class PredictKeys(Written):
    """Which pairs are predicted, and what is measured for that."""

    leads: Names = Field(description="the rows of the grid: each beside each of the antagonists")
    antagonists: Names | None = Field(default=None, description="its columns; the leads if left out")
    bubbles: list[Name] = Field(
        default=[],
        description="dials, such as capacity-half-llc and bandwidth-2gbs, beside which every lead is measured: its "
        "sensitivity (castmates help prediction)",
    )
    reporters: list[Name] = Field(
        default=[], description="leads that are measured beside every antagonist and bubble: the pressure of each"
    )
    measure: PositivePercentage = Field(
        default=MEASURED,
        description="how much is measured, as a share of the grid's pairs, the mixes with bubbles and reporters "
        "included; raising it adds pairs and takes none away",
    )
    check: int = Field(
        default=0,
        ge=0,
        description="further pairs, at random among those that no other mix shows, that are measured and kept from the "
        "fit: they show its error",
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

    @field_validator("leads", "antagonists", "bubbles", "reporters")
    @classmethod
    def _each_once(cls, names: list[str] | None) -> list[str] | None:
        if len(set(names or ())) < len(names or ()):
            raise ValueError("each name once")
        return names

    @field_validator("bubbles")
    @classmethod
    def _beside_the_grid(cls, bubbles: list[str], info: ValidationInfo) -> list[str]:
        leads = info.data.get("leads") or ()
        columns = info.data.get("antagonists") or leads
        if both := next((name for name in bubbles if name in columns), None):
            raise ValueError(f"dials beside the grid's antagonists, which have '{both}' too")
        if lead := next((name for name in bubbles if name in leads), None):
            raise ValueError(f"no lead of the grid: '{lead}' is to hold its rate, so it has hardly a loss to show")
        return bubbles

    @field_validator("reporters")
    @classmethod
    def _no_dials(cls, reporters: list[str], info: ValidationInfo) -> list[str]:
        if both := next((name for name in reporters if name in info.data.get("bubbles", ())), None):
            raise ValueError(f"no dial: '{both}' is to hold its rate, so it has hardly a loss to show")
        return reporters

    @field_validator("measure")
    @classmethod
    def _can_be_fitted(cls, measure: float, info: ValidationInfo) -> float:
        if {"leads", "antagonists", "bubbles", "reporters"} <= set(info.data):
            leads, columns = info.data["leads"], info.data["antagonists"] or info.data["leads"]
            pairs = len(leads) * len(columns)
            least = _least(leads, columns, info.data["bubbles"], info.data["reporters"])
            if least > pairs:
                raise ValueError(
                    f"fewer 'bubbles' and 'reporters': they need {least} measured mixes, which is more than the grid's "
                    f"{pairs} pairs"
                )
            if int(measure * pairs + 1e-9) < least:
                raise ValueError(
                    f"at least {-(-100 * least // pairs)}%, because the other pairs of {len(leads)} leads and "
                    f"{len(columns)} antagonists need {least} measured mixes to be predicted from"
                )
        return measure


def _least(leads: list[str], columns: list[str], bubbles: list[str], reporters: list[str]) -> int:
    """The mixes with bubbles and reporters, and what is needed to have each lead and each antagonist in one."""
    rows = 0 if bubbles else len({*leads} - {*reporters})
    return (
        len({*leads, *reporters}) * len(bubbles)
        + len(reporters) * len(columns)
        + max(rows, 0 if reporters else len(columns))
    )
