"""The command `castmates recommend`: the smallest lead mask that keeps a limit."""

import typer

from castmates.cli.arguments import DEFAULT_STUDY, LeadLoss, StudyFile, limit_of


def recommend(study: StudyFile = DEFAULT_STUDY, lead_loss: LeadLoss = "") -> None:
    """Name the smallest lead mask that keeps a limit, for each mix of a study whose sweep is done."""
    from castmates.pipeline.recommend_partitions import advised, pareto_of
    from castmates.project import load
    from castmates.report.text import recommendation
    from castmates.results.plans import read_plan

    project = load(study)
    advice = advised(project, read_plan(project.results.plan_file), limit_of(lead_loss))
    command = f"castmates confirm {study}" + (f" --lead-loss {lead_loss}" if lead_loss else "")
    refused = recommendation.refusals(pareto_of(project))
    typer.echo(recommendation.texts(advice, command, refused), nl=False)
