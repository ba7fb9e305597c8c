"""The tables of some measured launches -> one file each, because thousands of small files are slow to read."""

from pathlib import Path

from castmates.results.bundle_names import bundles
from castmates.results.bundles import gather_bundle
from castmates.results.folder import StudyFolder
from castmates.results.plans import analysed
from castmates.study.spec import Plan


def write_bundle(plan: Plan, folder: StudyFolder, name: str, output: Path) -> None:
    """Gather the tables of a bundle's launches."""
    paths = bundles(launch.path for launch in analysed(plan, folder).launches)[name]
    gather_bundle([folder.launch(path) for path in paths], output)
