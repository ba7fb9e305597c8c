"""A study's results -> a folder for a paper: figures, LaTeX tables, methods, citation, and an RO-Crate of it all."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

import yaml

import castmates
from castmates.errors import CastmatesError
from castmates.files import refuse_foreign, replace, replace_text, writing
from castmates.project import load
from castmates.report.figures.drawing import PRINTED, draw_figure
from castmates.report.figures.style import ABOUT
from castmates.report.figures.texts import texts_for, whole_caption
from castmates.report.launch_record import LaunchRecord
from castmates.report.page.page import shown
from castmates.report.paper import crate, methods
from castmates.report.paper.crate import ANALYSIS, Part
from castmates.report.paper.tables import paper_tables
from castmates.report.results import Results, read_results
from castmates.report.text.stamps import first_words
from castmates.report.text.words import platform_words
from castmates.results.confirming import folder_of, study_files
from castmates.results.find import find
from castmates.results.published import METADATA, STUDY, WORKLOADS
from castmates.results.records import read_record, refuse_links
from castmates.study.replaying import catalogue_text, self_contained, workloads_of
from castmates.study.spec import Plan

# A folder that is written file by file, and listed in an RO-Crate: what every file is, its size and its digest.

# What a paper's folder holds, beside the study file: nothing else is ever removed.
FOLDERS = ("launches", "confirm", "data", "figures", "replay", "rounds", "tables")
FILES = ("CITATION.cff", "castmates.bib", "machine.json", "methods.md", "methods.tex", "paper.tex", "plan.json")

Entities = Mapping[str, Mapping[str, Any]]  # a crate's, by their @id


@dataclass
class Folder:
    """What is written, file by file, with a sentence on each for the crate."""

    place: Path
    about: dict[str, str] = field(default_factory=dict)

    def text(self, path: str, content: str, about: str) -> None:
        """Write a text."""
        target = self._target(path)
        with writing(target):
            replace_text(target, content)
        self.about[path] = about

    def copy(self, source: Path, path: str, about: str) -> None:
        """Copy a file of the study."""
        target = self._target(path)
        if not (target.exists() and target.samefile(source)):
            with source.open("rb") as opened, writing(target):
                replace(target, lambda temporary: _pour(opened, temporary))
        self.about[path] = about

    def _target(self, path: str) -> Path:
        """Where a file of this name is written, which results may have brought along: never outside of the folder."""
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise CastmatesError(
                f"{path!r} would be written outside of {self.place}: these results were not written by Castmates, so "
                "do not use them."
            )
        return self.place / path

    def parts(self) -> list[Part]:
        """All files, as they lie there."""
        return [_part(self.place, path, about) for path, about in self.about.items()]

    def begin(self, crate: dict[str, Any]) -> None:
        """Mark a new folder as ours before anything lies in it: a run that is ended amid it can be repeated."""
        if not (self.place / METADATA).exists():
            self._write(crate)

    def finish(self, crate: dict[str, Any]) -> None:
        """Write the crate last, and remove what only the previous one lists as ours, where it is unchanged."""
        before = _written(self.place / METADATA)
        self._write(crate)
        for path in before.keys() - self.about.keys():
            with contextlib.suppress(OSError):
                if _digest(self.place / path) == before[path]:
                    (self.place / path).unlink()

    def _write(self, crate: dict[str, Any]) -> None:
        with writing(self.place / METADATA):
            replace_text(self.place / METADATA, json.dumps(crate, indent=2, ensure_ascii=False) + "\n")


def may_write(folder: Path) -> None:
    """Refuse a folder that holds what no `castmates paper` wrote, such as a paper of the user."""
    refuse_foreign(folder, METADATA, lambda text: bool(_analysis(_entities(text))), "castmates paper")


def _pour(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as opened:
        shutil.copyfileobj(source, opened)


def _part(place: Path, path: str, about: str) -> Part:
    file = place / path
    return Part(path, file.stat().st_size, _digest(file), about)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _entities(text: str) -> Entities:
    """What a crate describes; nothing where this is none."""
    try:
        return {entity["@id"]: entity for entity in json.loads(text)["@graph"]}
    except (ValueError, KeyError, TypeError):
        return {}


def _analysis(graph: Entities) -> Mapping[str, Any]:
    """The action by which a crate is ours: an analysis by Castmates; {} in any other crate."""
    action = graph.get(ANALYSIS, {})
    instrument = action.get("instrument")
    tool = instrument.get("@id") if isinstance(instrument, dict) else None
    ours = str(tool).startswith("#castmates-") and graph.get(str(tool), {}).get("name") == "Castmates"
    return action if ours else {}


def _written(metadata: Path) -> dict[str, str]:
    """The files that we wrote, from the crate, and their digests; none where there is no crate of ours."""
    try:
        graph = _entities(metadata.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    action = _analysis(graph)
    inputs = _references(action.get("object"))
    digests = {unquote(id): graph.get(id, {}).get("sha256") for id in (*inputs, *_references(action.get("result")))}
    studies = {unquote(id) for id in inputs if id.endswith(".yaml")}
    return {path: digest for path, digest in digests.items() if digest and _may_be_ours(path, studies)}


def _references(value: object) -> list[str]:
    """The @id of each that is referred to: of one, or of a list."""
    referred = value if isinstance(value, list) else [value]
    return [str(entity["@id"]) for entity in referred if isinstance(entity, dict) and "@id" in entity]


def _may_be_ours(path: str, studies: Container[str]) -> bool:
    """Whether we write files of this name: in our folders, or beside them."""
    first, *below = PurePosixPath(path).parts or ("",)
    if below:
        return first in FOLDERS and ".." not in below
    return first in FILES or first in studies


CITATION = Path(castmates.__file__).parents[1] / "CITATION.cff"
TABLES = {
    "csv": "The table {name} of the study, a row per line.",
    "parquet": "The table {name} of the study, with its types.",
}
OF_A_LAUNCH = "What the launch recorded of itself: members, versions, ledger, seed."
DRAWN = (*ABOUT, "csv", "txt", "alt.txt")  # as what it is drawn, what it shows, its caption, its words in its place


class Written(NamedTuple):
    """A folder that was written."""

    folder: Path
    no_replay: str  # why others cannot measure the study again from it; "" where they can


def write_paper(named: Path, output: Path | None, licence: str, authors: Sequence[str]) -> Written:
    """Write everything; the folder is an RO-Crate then."""
    place, study_file = find(named)
    refuse_links(place)
    results = read_results(place.path, study_file)
    target = output or place.paper
    if output is not None:  # the study's own folder is ours, also where an earlier run was ended amid it
        may_write(output)
    folder = Folder(target)
    about = _about(results, licence, authors)
    folder.begin(crate.begun(about))
    inputs = _inputs(folder, results, study_file)
    no_replay = write_for_replay(folder, results.plan, study_file)
    figures = _figures(folder, results)
    tables = _tables(folder, results)
    paragraphs = methods.paragraphs(results)
    folder.text("methods.md", methods.as_markdown(paragraphs), "The methods paragraph, in Markdown.")
    folder.text("methods.tex", methods.as_latex(paragraphs), "The methods paragraph, in LaTeX.")
    _citation(folder, results)
    folder.text(
        "paper.tex", _document(results, figures, tables), "A document with all of it, to look at and to cut from."
    )
    _crate(folder, results, inputs, about)
    return Written(target, no_replay)


def _inputs(folder: Folder, results: Results, study_file: Path | None) -> list[str]:
    """The study file and the plan, and what else the study recorded of itself and its machine."""
    if study_file is not None:
        folder.copy(study_file, f"{results.name}.yaml", "The study file.")
    inputs = [*folder.about, "plan.json"]
    folder.copy(results.folder.plan_file, "plan.json", "The plan: mixes, scenes, launches and their seeds.")
    for decision in results.decisions:
        file = results.folder.rounds_file(decision.cohort)
        folder.copy(file, f"rounds/{file.name}", f"How many rounds, and why: {decision.words}")
    if results.folder.machine_file.is_file():
        folder.copy(results.folder.machine_file, "machine.json", "The machine's facts, as they were read.")
    for file in sorted(results.folder.tables.glob("*.*")):
        if about := TABLES.get(file.suffix[1:]):
            folder.copy(file, f"data/{file.name}", about.format(name=file.stem))
    return inputs


def _figures(folder: Folder, results: Results) -> dict[str, str]:
    """Draw those that show something: a sweep has none for paper. Captions by name."""
    texts = {name: texts_for(name, results) for name in shown(results)}
    captions = {name: whole_caption(own, results) for name, own in texts.items() if not own.lacking}
    for name in captions:
        draw_figure(name, results, folder.place / "figures" / name, PRINTED)
        for suffix in ("rst", "page.svg", "page.json"):  # for Snakemake's own report, and for the page
            (folder.place / "figures" / f"{name}.{suffix}").unlink(missing_ok=True)
        folder.about |= {f"figures/{name}.{suffix}": captions[name] for suffix in DRAWN}
    return captions


def _tables(folder: Folder, results: Results) -> list[str]:
    texts = paper_tables(results)
    for name, text in texts.items():
        folder.text(
            f"tables/{name}", text, f"{first_words(results)}A table for LaTeX, with the packages booktabs and graphicx."
        )
    return list(texts)


def _citation(folder: Folder, results: Results) -> None:
    """The tool's own entry, where the project has a citation file."""
    if CITATION.is_file():
        cited = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
        versions = {record.castmates for record in results.records} - {""}
        version = versions.pop() if len(versions) == 1 else castmates.__version__
        folder.text("castmates.bib", crate.as_bibtex(cited, version), "How to cite Castmates, for BibTeX.")
        folder.copy(CITATION, "CITATION.cff", "How to cite Castmates.")


def _document(results: Results, figures: Mapping[str, str], tables: Sequence[str]) -> str:
    """A document that sets everything, so that it can be seen to compile."""
    drawn = [
        "\\begin{figure}\n\\centering\n"
        f"\\includegraphics[width=\\linewidth,height=0.7\\textheight,keepaspectratio]{{figures/{name}.pdf}}\n"
        f"\\caption{{{methods.escaped(caption)}}}\n\\label{{fig:castmates-{name}}}\n\\end{{figure}}\n\\clearpage"
        for name, caption in figures.items()
    ]
    set_ = [f"\\input{{tables/{name.removesuffix('.tex')}}}\n\\clearpage" for name in tables]
    parts = [
        "\\documentclass{article}",
        "\\usepackage[T1]{fontenc}",
        "\\usepackage{booktabs,graphicx,textcomp}",
        "\\usepackage[margin=2cm]{geometry}",
        "\\begin{document}",
        f"\\section*{{{methods.escaped(results.title)}}}",
        "\\input{methods}",
        *drawn,
        *set_,
        *(["\\nocite{castmates}", "\\bibliographystyle{plain}", "\\bibliography{castmates}"] * CITATION.is_file()),
        "\\end{document}",
    ]
    return "\n".join(parts) + "\n"


def _about(results: Results, licence: str, authors: Sequence[str]) -> crate.About:
    return crate.About(
        name=results.title,
        description=f"{platform_words(results.platforms)} Figures, tables and records of the "
        f"Castmates study {results.name}.",
        published=datetime.now(UTC).isoformat(timespec="seconds"),
        licence=licence,
        authors=authors,
        version=castmates.__version__,
    )


def _crate(folder: Folder, results: Results, inputs: Sequence[str], about: crate.About) -> None:
    records: dict[str, LaunchRecord] = {}
    for file, record in zip(results.record_files, results.records, strict=True):
        path = str(file.relative_to(results.folder.path))
        folder.copy(file, path, OF_A_LAUNCH)
        records[path] = record
    runs = [crate.Run("", inputs, records), *_confirming(folder, results)]
    folder.finish(crate.metadata(about, folder.parts(), runs))


def _confirming(folder: Folder, results: Results) -> list[crate.Run]:
    """The fresh launches behind confirmed numbers: their study, and what each measured."""
    runs = []
    for file in study_files(results.folder):
        fresh, top = folder_of(file, results.folder), f"confirm/{file.stem}/"
        folder.copy(file, f"{top}{file.name}", "The study of fresh launches that confirm a partition.")
        records = {}
        for record in fresh.record_files():
            path = f"{top}{record.relative_to(fresh.path)}"
            folder.copy(record, path, OF_A_LAUNCH)
            windows = record.with_name("windows.parquet")
            folder.copy(
                windows, f"{top}{windows.relative_to(fresh.path)}", "What the launch measured, window by window."
            )
            records[path] = LaunchRecord(read_record(record))
        runs.append(crate.Run(top, [f"{top}{file.name}"], records))
    return runs


# What others need to measure a study again, in its paper's folder: the study and its workloads, self-contained.

HEAD = "Written by `castmates paper`: {what}, for `castmates sweep --replay`."


def write_for_replay(folder: Folder, plan: Plan, study_file: Path | None) -> str:
    """Write both; why there is nothing to write, "" where there is."""
    if study_file is None:
        return "the study's file is not known; name it instead of its results folder"
    try:
        project = load(study_file)
    except CastmatesError as problem:
        return str(problem)
    study = self_contained(project.study, plan).text(HEAD.format(what="the study as it was measured"))
    workloads = workloads_of(plan, project.workloads)
    catalogue = catalogue_text(workloads, HEAD.format(what="the workloads that the study names"))
    folder.text(STUDY, study, "The study as it was measured, to be measured again by `castmates sweep --replay`.")
    folder.text(WORKLOADS, catalogue, "The workloads of the study, each with its whole command.")
    return ""
