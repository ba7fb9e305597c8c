"""What MkDocs calls while it builds the site (mkdocs.yml: hooks)."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs_site.links import relinked
from docs_site.pages import extra_pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files in docs/."""
    for place, text in extra_pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 (MkDocs' names)
    """Let links lead to pages of the site."""
    return relinked(markdown, page.file.src_uri)
