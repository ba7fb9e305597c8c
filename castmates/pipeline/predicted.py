"""A measured study -> what its pairs lose that were not measured."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from castmates.analysis.prediction.pairs import RATE
from castmates.analysis.prediction.table import GRID, KnownGrid, estimate_predictions, name_on, never_pooled
from castmates.errors import CastmatesError
from castmates.project import Project
from castmates.results.columns.prediction import PREDICTIONS
from castmates.results.columns.study import EFFECTS, frame
from castmates.results.plans import read_plan
from castmates.results.tables import Tables
from castmates.study.class_names import without_class
from castmates.study.dials import dials_of
from castmates.study.placement_keys import FEWEST_PAIRS
from castmates.study.spec import UNMANAGED, Plan, Prediction


@dataclass(frozen=True)
class Asked:
    """A combination that somebody wants to know: a job and all that runs beside it."""

    lead: str
    beside: Sequence[str]


@dataclass(frozen=True)
class Predicting:
    """A study with its effects and the grid that is predicted."""

    project: Project
    plan: Plan
    effects: pd.DataFrame

    @classmethod
    def of(cls, project: Project) -> "Predicting":
        """Of a study with tables. Without the key `predict` its grid is all that has been a lead or an antagonist."""
        plan = read_plan(project.results.plan_file)
        effects = Tables(project.results, project.study_file).read(EFFECTS)
        if plan.prediction is None:
            plan = plan.model_copy(update={"prediction": _everything(effects, dials_of(plan))})
        return cls(project, plan, effects)

    def predictions(self) -> pd.DataFrame:
        """The table of the whole grid."""
        table = estimate_predictions(self.plan, self.effects)["predictions"]
        if table["without_pct"].isna().all() and (table["source"] != "predicted").all():
            mixes = self.effects.loc[_pairs(self.effects), "mix"].nunique()
            raise CastmatesError(
                f"{self.project.study_file}: {mixes} mixes of two programs were measured, and {FEWEST_PAIRS} are the "
                "fewest from which others are predicted; add pairs, or the key `predict` (castmates help prediction)."
            )
        return table

    def one(self, asked: Asked) -> pd.DataFrame:
        """The rows of one combination: of each class of nodes and platform."""
        rows, grid = [], self.plan.prediction or _everything(self.effects, ())
        for platform, machine, own in never_pooled(self.effects):
            row = KnownGrid(own, grid, self.plan).row((asked.lead, tuple(sorted(asked.beside))), GRID)
            about = {"study": self.plan.study, "platform": platform, "machine": machine}
            if row["source"]:
                rows.append(row | about | {"lead": name_on(self.plan, machine)(asked.lead)})
        if not rows:
            known = sorted({*map(without_class, self.effects["lead"]), *grid.leads, *grid.antagonists})
            raise CastmatesError(
                f"{self.project.study_file}: nothing was measured from which the loss of {asked.lead} beside "
                f"{' and '.join(asked.beside)} follows; programs of this study are {', '.join(known)}."
            )
        return frame(rows, PREDICTIONS)


def _pairs(effects: pd.DataFrame) -> "pd.Series[bool]":
    plain = (effects["partition"] == UNMANAGED) & (effects["role"] == "lead") & effects["slowdown"].notna()
    return (
        plain
        & (effects["metric"] == RATE)
        & (effects["antagonists"] != "")
        & ~effects["antagonists"].str.contains(r"[+:]")
    )


def _everything(effects: pd.DataFrame, dials: Collection[str]) -> Prediction:
    """A grid of all that has been a lead, without those that hold their rate, or an antagonist."""
    pairs = effects[_pairs(effects)]
    leads = [name for name in dict.fromkeys(map(without_class, pairs["lead"])) if name not in dials]
    return Prediction(leads=tuple(leads), antagonists=tuple(dict.fromkeys(map(without_class, pairs["antagonists"]))))
