"""Links between files of the repository -> links between pages of the site.

In the repository a page links to files, for example `../config/README.md`. In the site some of them are elsewhere,
and files that are no pages are not there at all: a link to one becomes the file's name.
"""

import os.path
import posixpath
import re
from pathlib import Path

from docs_site.pages import ROOT, place_of, source_of

LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]\n]*(?:\n[^\]\n]+)?)\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def relinked(markdown: str, place: str) -> str:
    """The page's text with its links as the site needs them; code stays as it is."""
    parts = FENCED.split(markdown)
    return "".join(
        part if number % 2 else LINK.sub(lambda link: _link(link, place), part) for number, part in enumerate(parts)
    )


def _link(link: re.Match[str], place: str) -> str:
    path, mark, anchor = link["target"].partition("#")
    if not path or re.match(r"\w+:", path):
        return link[0]
    here = posixpath.dirname(source_of(place))
    source = posixpath.normpath(posixpath.join(here, path))
    found = place_of(source)
    if found is None:
        if not (ROOT / source).exists():
            return link[0]  # the strict build complains of it
        return f"{link['words']} (`{source}`)" if source not in link["words"] else link["words"]
    target = os.path.relpath(found, posixpath.dirname(place) or ".")
    return f"{link['picture']}[{link['words']}]({Path(target).as_posix()}{mark}{anchor})"
