"""The command `castmates recommend`: the lead mask that is advised."""

from dataclasses import asdict

import typer

from castmates.cli.arguments import AsJson, LeadLoss, StudyFile, limit_of
from castmates.cli.screen import rows_of, show_json


def recommend(study: StudyFile, lead_loss: LeadLoss = "", as_json: AsJson = False) -> None:
    """Name the smallest share of the cache that keeps a loss within a limit, or the knee, for each pair that loses."""
    from castmates.pipeline.recommend_partitions import advised
    from castmates.project import load
    from castmates.report.results import records
    from castmates.report.text import recommendation
    from castmates.results.columns.partitions import PARETO
    from castmates.results.columns.study import EFFECTS
    from castmates.results.plans import read_plan
    from castmates.results.tables import Tables

    project = load(study)
    advice = advised(project, read_plan(project.results.plan_file), limit_of(lead_loss))
    tables = Tables(project.results, project.study_file)
    effects = tables.read(EFFECTS)
    command = f"castmates confirm {study}" + (f" --lead-loss {lead_loss}" if lead_loss else "")
    if as_json:
        prices = [[asdict(one) for one in recommendation.paid(row, effects)] for row in records(advice)]
        rows = [row | {"paid": price} for row, price in zip(rows_of(advice), prices, strict=True)]
        show_json({"study": project.study.name, "recommended": rows, "confirm": command})
        return
    refused = recommendation.refusals(tables.read(PARETO))
    typer.echo(recommendation.texts(advice, effects, command, refused), nl=False)
