"""`castmates plan --predict`: losses of pairs that were not measured, from those that were."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from castmates.cli.arguments import limit_of
from castmates.cli.screen import rows_of, show, show_json
from castmates.errors import CastmatesError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


def predict_losses(study: Path, lead: str, beside: str, limit: str, every: bool, as_json: bool) -> None:
    """Predict what pairs lose that were not measured, with intervals, and show how far off predictions are.

    They follow from the measured pairs of the study, most precisely where its key `predict` has chosen them.
    """
    from castmates.pipeline.predicted import Asked, Predicting
    from castmates.project import load
    from castmates.report.text import prediction

    known = Predicting.of(load(study))
    table = known.predictions()
    if beside:
        names = [each.strip() for each in beside.split(",")]
        if not all(names):
            raise CastmatesError(f"--beside is '{beside}', expected names, separated by commas.")
        shown = known.one(Asked(lead, names))
    else:
        shown = _of(table, lead, str(study))
        shown = shown if every else shown[shown["source"] != "measured"]
    most = limit_of(limit) or known.project.study.recommend.lead_loss
    quality = [*prediction.quality_words(table), *prediction.role_words(known.effects)]
    worth = [] if beside else prediction.worth_measuring(shown, most)
    if as_json:
        show_json({"study": known.plan.study, "losses": rows_of(shown), "quality": quality, "worth_measuring": worth})
        return
    if len(shown):
        show(_table(shown))
    else:
        typer.echo("Every pair is measured; --all shows each beside its prediction.")
    typer.echo("\n" + "\n".join(quality))
    if worth:
        typer.echo("\nWorth measuring next\n" + "\n".join(f"  {line}" for line in worth))


def _of(table: "pd.DataFrame", lead: str, study: str) -> "pd.DataFrame":
    """The rows of one lead, on each class of nodes unless it names one."""
    from castmates.study.class_names import without_class

    if not lead:
        return table
    own = table[(table["lead"] == lead) | (table["lead"].map(without_class) == lead)]
    if own.empty:
        raise CastmatesError(f"{study}: '{lead}' is no lead here; there are {', '.join(sorted(set(table['lead'])))}.")
    return own


def _table(shown: "pd.DataFrame") -> "Table":
    from rich.table import Table

    from castmates.english import number
    from castmates.report.results import records
    from castmates.report.text.prediction import loss_of, source_of
    from castmates.report.text.words import plain

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    compared = bool(shown["without_pct"].notna().any())
    table.add_column("", style="bold", overflow="fold")
    for name in ("beside", "loss", "", *(("predicted", "off by") if compared else ())):
        table.add_column(name, justify="right" if name in ("predicted", "off by") else "left", overflow="fold")
    for row in records(shown):
        cells = [plain(row["lead"]), plain(row["antagonists"]), loss_of(row), source_of(row)]
        if compared:
            known = row["error"] == row["error"]
            cells += [f"{number(row['without_pct'])} %", number(row["error"])] if known else ["", ""]
        table.add_row(*cells)
    return table
