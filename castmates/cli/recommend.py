"""`castmates show --partitions`, `--limit`: the lead mask that is advised."""

from dataclasses import asdict
from pathlib import Path

import typer

from castmates.cli.arguments import limit_of
from castmates.cli.screen import rows_of, show_json


def show_advised(study: Path, limit: str, as_json: bool) -> None:
    """Name the smallest share of the cache that keeps a loss within a limit, or the knee, for each mix that loses."""
    from castmates.pipeline.advised import advised
    from castmates.project import load
    from castmates.report.results import records
    from castmates.report.text import recommendation
    from castmates.results.columns.partitions import PARETO
    from castmates.results.columns.study import EFFECTS
    from castmates.results.find import find, study_file
    from castmates.results.plans import read_plan
    from castmates.results.tables import Tables

    study = study_file(study)
    find(study)
    project = load(study)
    advice = advised(project, read_plan(project.results.plan_file), limit_of(limit))
    tables = Tables(project.results, project.study_file)
    effects = tables.read(EFFECTS)
    command = f"castmates sweep {study} --confirm" + (f" --limit {limit_of(limit):g}%" if limit else "")
    if as_json:
        prices = [[asdict(one) for one in recommendation.paid(row, effects)] for row in records(advice)]
        rows = [row | {"paid": price} for row, price in zip(rows_of(advice), prices, strict=True)]
        show_json({"study": project.study.name, "recommended": rows, "confirm": command})
        return
    refused = recommendation.refusals(tables.read(PARETO))
    typer.echo(recommendation.texts(advice, effects, command, refused), nl=False)
