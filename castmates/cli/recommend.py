"""The command `castmates recommend`: the smallest lead mask that keeps a limit."""

import typer

from castmates.cli.arguments import AsJson, LeadLoss, StudyFile, limit_of
from castmates.cli.screen import rows_of, show_json


def recommend(study: StudyFile, lead_loss: LeadLoss = "", as_json: AsJson = False) -> None:
    """Name the smallest share of the cache that keeps a loss within a limit, for each pair of a measured study."""
    from castmates.pipeline.recommend_partitions import advised, pareto_of
    from castmates.project import load
    from castmates.report.text import recommendation
    from castmates.results.plans import read_plan

    project = load(study)
    advice = advised(project, read_plan(project.results.plan_file), limit_of(lead_loss))
    command = f"castmates confirm {study}" + (f" --lead-loss {lead_loss}" if lead_loss else "")
    if as_json:
        show_json({"study": project.study.name, "recommended": rows_of(advice), "confirm": command})
        return
    refused = recommendation.refusals(pareto_of(project))
    typer.echo(recommendation.texts(advice, command, refused), nl=False)
