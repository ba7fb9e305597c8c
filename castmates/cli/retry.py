"""`castmates sweep --retry`: discards launches that are of no use to the analysis."""

from pathlib import Path

import typer


def discard(study: Path, changed: bool) -> None:
    """Discard failed and unusable launches; `changed`: also those that were measured otherwise than the study says."""
    from castmates.english import counted
    from castmates.project import load
    from castmates.results.profiles import forget_failed
    from castmates.results.records import forget_useless
    from castmates.results.traces import forget_failed as forget_failed_traces
    from castmates.study.changed_design import changed_launches

    project = load(study)
    folder = project.results
    others = changed_launches(project.study, project.plan().launches) if changed else {}
    useless = forget_useless(folder, {path: f"measured with {words[0]}" for path, words in others.items()})
    for what, discarded in (
        ("launch", useless),
        ("profile launch", forget_failed(folder)),
        ("trace", forget_failed_traces(folder)),
    ):
        found = 0
        for reason, place in discarded:
            typer.echo(f"discarded ({reason}): {place}")
            found += 1
        if found or what == "launch":
            typer.echo(f"{counted(found, what)} discarded in {folder}")
