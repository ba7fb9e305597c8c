"""The command `castmates status`: how far the sweep of a study is."""

from castmates.cli.arguments import AsJson, StudyFile
from castmates.cli.screen import show, show_json


def status(study: StudyFile, as_json: AsJson = False) -> None:
    """Show how far a sweep is: launches measured, failed and missing, the time left, and whether one is running."""
    from castmates.preview.progress import progress, screen
    from castmates.project import load

    found = progress(load(study))
    if as_json:
        show_json(found)
    else:
        show(screen(found))
