"""Which pages the site has besides those in docs/: files from elsewhere in the repository, and generated ones."""

from collections.abc import Callable, Mapping
from pathlib import Path

from docs_site import api, commands, figures, quirks, study_keys, tables

ROOT = Path(__file__).parents[1]
# A file of the repository -> its place in the site.
ELSEWHERE = {
    "config/README.md": "configuration.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "tests/README.md": "contributing/tests.md",
    "tests/lab/README.md": "contributing/lab.md",
    "envs/README.md": "contributing/environments.md",
}
# A page of the site -> what writes it.
GENERATED: Mapping[str, Callable[[Path], str]] = {
    "reference/study-keys.md": study_keys.study_page,
    "reference/workload-keys.md": study_keys.catalogue_page,
    "reference/commands.md": commands.page,
    "reference/tables.md": tables.page,
    "reference/figures.md": figures.page,
    "reference/api.md": api.page,
    "reference/quirks.md": quirks.page,
}


def extra_pages() -> dict[str, str]:
    """The text of every page that is not a file in docs/, by its place in the site."""
    copied = {place: (ROOT / source).read_text(encoding="utf-8") for source, place in ELSEWHERE.items()}
    return copied | {place: write(ROOT) for place, write in GENERATED.items()}


def source_of(place: str) -> str:
    """The repository's file that a page of the site comes from, or would come from."""
    sources = {site: source for source, site in ELSEWHERE.items()}
    return sources.get(place, f"docs/{place}")


def place_of(source: str) -> str | None:
    """The place of a file of the repository in the site; None if it is not part of it."""
    if source == "README.md":
        return "index.md"
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    return ELSEWHERE.get(source)
