"""CITATION.cff -> BibTeX."""

from collections.abc import Mapping
from typing import Any

from castmates.report.paper.latex import escaped

KEY = "castmates"


def as_bibtex(citation: Mapping[str, Any], version: str) -> str:
    """The tool, in the version that measured; only what the citation file has."""
    people = citation.get("authors") or []
    names = [
        f"{{{escaped(str(person['name']))}}}"
        if person.get("name")
        else escaped(", ".join(str(person[part]) for part in ("family-names", "given-names") if person.get(part)))
        for person in people
    ]
    fields = {
        "author": " and ".join(names),
        "title": f"{{{escaped(str(citation.get('title', '')))}}}",
        "version": escaped(version),
        "year": str(citation.get("date-released", ""))[:4],
        "doi": escaped(str(citation.get("doi", ""))),
        "url": str(citation.get("repository-code") or citation.get("url") or ""),
        "note": f"Licence: {escaped(str(citation['license']))}" if citation.get("license") else "",
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value not in ("", "{}")]
    return f"@misc{{{KEY},\n" + ",\n".join(lines) + "\n}\n"
