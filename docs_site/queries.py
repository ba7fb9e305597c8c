"""The lists in docs/tracing-query.md: every view with its columns, and every named query with its parameters.

`python -m docs_site.queries` writes them anew from the comments of the .sql files.
"""

from collections.abc import Iterator
from pathlib import Path

from castmates.timeline.queries.asking import named, views

PAGE = Path(__file__).parents[1] / "docs" / "tracing-query.md"
VIEWS = ("<!-- the views: written by `python -m docs_site.queries` -->", "<!-- end of the views -->")
NAMED = ("<!-- the named queries: written by `python -m docs_site.queries` -->", "<!-- end of the named queries -->")


def renewed(page: str) -> str:
    """The page with lists that are true."""
    for (begin, end), lines in ((NAMED, _named()), (VIEWS, _views())):
        text = "\n".join([begin, "", *lines, end])
        before, _, rest = page.partition(begin)
        page = before + text + rest.partition(end)[2]
    return page


def _named() -> Iterator[str]:
    for query in named().values():
        takes = ", ".join(f"`{parameter.name}` ({parameter.about})" for parameter in query.parameters)
        yield f"**`{query.name}`**: {query.title}. {query.about}{f' Parameters: {takes}.' if takes else ''}"
        yield ""


def _views() -> Iterator[str]:
    for view in sorted(views().values(), key=lambda view: view.name):
        yield f"### `{view.name}`"
        yield ""
        yield view.about
        yield ""
        yield "| column | meaning |"
        yield "| --- | --- |"
        yield from (f"| `{name}` | {meaning} |" for name, meaning in view.columns.items())
        yield ""


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
