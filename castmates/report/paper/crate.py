"""A published study as an RO-Crate 1.1 (Process Run Crate): who made which file from what; pure JSON-LD."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from castmates.report.launch_record import LaunchRecord
from castmates.report.paper.methods import escaped
from castmates.results.columns.launch import RECORD

Entity = dict[str, Any]
# RO-Crate has no term for a digest; the vocabulary of its profiles for runs has.
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}]
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "md": "text/markdown",
    "parquet": "application/vnd.apache.parquet",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tex": "application/x-tex",
    "bib": "application/x-bibtex",
    "cff": "application/yaml",
    "yaml": "application/yaml",
    "txt": "text/plain",
}
DESCRIPTOR = {
    "@id": "ro-crate-metadata.json",
    "@type": "CreativeWork",
    "conformsTo": {"@id": CRATE},
    "about": {"@id": "./"},
}
ANALYSIS = "#analysis"
UNKNOWN = "not recorded"


@dataclass(frozen=True)
class Part:
    """A file of the crate, by its path inside."""

    path: str
    size: int
    sha256: str
    about: str

    @property
    def id(self) -> str:
        """Its address in the crate."""
        return quote(self.path)


@dataclass(frozen=True)
class Run:
    """A study that was run: all of it lies in the crate below `top`, "" or ending in a slash."""

    top: str
    inputs: Sequence[str]  # the paths of what was given: the study file and, where it is there, its plan
    records: Mapping[str, LaunchRecord]  # of its launches, by the path of their file


@dataclass(frozen=True)
class About:
    """What the crate as a whole is."""

    name: str
    description: str
    published: str  # ISO 8601
    licence: str  # an SPDX identifier or an address; "" where none was stated
    authors: Sequence[str]
    version: str  # of the Castmates that analysed and wrote it


def metadata(about: About, parts: Sequence[Part], runs: Sequence[Run]) -> Entity:
    """The content of ro-crate-metadata.json."""
    records = {path: record for run in runs for path, record in run.records.items()}
    inputs = [path for run in runs for path in run.inputs]
    measured = _beside(records, parts)
    versions = dict.fromkeys(record.castmates for record in records.values())
    tools = {version: _tool(version) for version in dict.fromkeys([*versions, about.version])}
    actions = [_launch(path, record, run, measured[path]) for run in runs for path, record in run.records.items()]
    of_launches = [path for paths in measured.values() for path in paths]
    apart = {*inputs, *of_launches}
    made = [part.id for part in parts if part.path not in apart]
    actions.append(_analysis(about, [quote(path) for path in (*inputs, *of_launches)], made))
    software = _software(records.values())
    for tool in tools.values():
        tool["softwareRequirements"] = _references(entity["@id"] for entity in software)
    licence = _licence(about.licence)
    people = [
        {"@id": f"#author-{number}", "@type": "Person", "name": name} for number, name in enumerate(about.authors, 1)
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": {"@id": PROFILE},
        "name": about.name,
        "description": about.description,
        "datePublished": about.published,
        "license": {"@id": licence["@id"]},
        "hasPart": _references(part.id for part in parts),
        "mentions": _references(action["@id"] for action in actions),
    }
    if people:
        root["author"] = _references(entity["@id"] for entity in people)
    return {
        "@context": CONTEXT,
        "@graph": [
            DESCRIPTOR,
            root,
            {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
            licence,
            *people,
            *tools.values(),
            *software,
            *actions,
            *map(_file, parts),
        ],
    }


def begun(about: About) -> Entity:
    """What stands in ro-crate-metadata.json while the files are written: who writes here."""
    root = {"@id": "./", "@type": "Dataset", "name": about.name, "description": "Not all of it is written yet."}
    action = {
        "@id": ANALYSIS,
        "@type": "CreateAction",
        "instrument": {"@id": _tool_id(about.version)},
        "actionStatus": "http://schema.org/ActiveActionStatus",
    }
    return {"@context": CONTEXT, "@graph": [DESCRIPTOR, root, _tool(about.version), action]}


def _file(part: Part) -> Entity:
    suffix = part.path.rpartition(".")[2]
    return {
        "@id": part.id,
        "@type": "File",
        "name": part.path,
        "description": part.about,
        "encodingFormat": TYPES.get(suffix, "application/octet-stream"),
        "contentSize": str(part.size),
        "sha256": part.sha256,
    }


def _tool(version: str) -> Entity:
    tool = {
        "@id": _tool_id(version),
        "@type": "SoftwareApplication",
        "name": "Castmates",
        "description": "Co-location interference studies with randomised launches",
    }
    return tool | ({"softwareVersion": version} if version else {})


def _tool_id(version: str) -> str:
    return f"#castmates-{quote(version or 'of-no-known-version')}"


def _software(records: Iterable[LaunchRecord]) -> list[Entity]:
    """What ran beside us, in each version that a launch recorded."""
    named: dict[tuple[str, str], None] = {}
    for record in records:
        for name, version in record.versions.items():
            if name != "castmates":
                named.setdefault((name, version))
    return [
        {
            "@id": f"#{quote(name)}-{quote(version)}",
            "@type": "SoftwareApplication",
            "name": name,
            "softwareVersion": version,
        }
        for name, version in sorted(named)
    ]


def _beside(records: Iterable[str], parts: Sequence[Part]) -> dict[str, list[str]]:
    """The files of each launch: its record, and what lies beside it."""
    files: dict[str, list[str]] = {path.removesuffix(RECORD): [] for path in records}
    for part in parts:
        if (own := files.get(part.path[: part.path.rfind("/") + 1])) is not None:
            own.append(part.path)
    return {f"{place}{RECORD}": paths for place, paths in files.items()}


def _launch(path: str, record: LaunchRecord, run: Run, measured: Sequence[str]) -> Entity:
    """One launch; of a failed one its reason."""
    place = path.removeprefix(run.top).removeprefix("launches/").removesuffix(f"/{RECORD}")
    place = f"{run.top}{place}"
    modelled = record.platform == "modelled"
    action: Entity = {
        "@id": f"#launch-{quote(place)}",
        "@type": "CreateAction",
        "name": f"Launch {place}" + (" (modelled: no program was started)" if modelled else ""),
        "description": f"Platform: {record.platform or UNKNOWN}; host: {record.host or UNKNOWN}.",
        "instrument": {"@id": _tool_id(record.castmates)},
        "object": _references(quote(file) for file in run.inputs),
        "result": _references(quote(file) for file in measured),
        "actionStatus": f"http://schema.org/{'Failed' if record.failed else 'Completed'}ActionStatus",
    }
    if record.failed:
        action["error"] = record.reason
    if record.started:
        action |= _times(record.started, record.seconds)
    return action


def _times(started: str, seconds: float | None) -> Entity:
    times = {"startTime": started}
    if seconds is not None:
        times["endTime"] = (datetime.fromisoformat(started) + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    return times


def _analysis(about: About, inputs: Sequence[str], made: Sequence[str]) -> Entity:
    return {
        "@id": ANALYSIS,
        "@type": "CreateAction",
        "name": "Analysis, figures and tables",
        "description": "Effects and their intervals were estimated from all launches, drawn, and written for a paper.",
        "instrument": {"@id": _tool_id(about.version)},
        "object": _references(inputs),
        "result": _references(made),
        "endTime": about.published,
    }


def _licence(stated: str) -> Entity:
    if not stated:
        return {
            "@id": "#no-licence",
            "@type": "CreativeWork",
            "name": "No licence stated",
            "description": "No licence was stated for these data; ask their authors.",
        }
    address = stated if "://" in stated else f"https://spdx.org/licenses/{quote(stated)}"
    return {"@id": address, "@type": "CreativeWork", "name": stated, "description": "The licence of these data."}


def _references(ids: Iterable[str]) -> list[Entity] | Entity:
    """A list; one reference stands by itself, as the specification recommends."""
    references = [{"@id": id} for id in ids]
    return references[0] if len(references) == 1 else references


# CITATION.cff -> BibTeX.

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
