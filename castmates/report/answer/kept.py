"""The answer as `analyse` keeps it beside the page, with a digest of itself and of all that it was made from.

`castmates show` reads it by the standard library alone, as long as that is what is there.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from castmates import __version__
from castmates.files import Unreadable, as_json, mapping_of, replace_text, sha256_of, understanding
from castmates.report.answer.parts import Answer, Card, Curve, Pair, Point, ToSettle
from castmates.results.folder import StudyFolder
from castmates.results.named import rules_beside, studies_with
from castmates.results.records import lacking

if TYPE_CHECKING:
    from castmates.report.results import Results

# The name of a study, where it is written as nearly everybody does: YAML takes longer to read than all else here.
NAME = re.compile(r"^name: *([\w.-]+) *(?:#.*)?$", re.MULTILINE)
AGAIN = "it is worked out again from the tables"
Part = TypeVar("Part", Pair, Point, Curve, Card)


class Kept(NamedTuple):
    """A stored answer, and where it lies."""

    folder: StudyFolder
    answer: Answer


def keep_answer(results: "Results", found: Answer) -> None:
    """Store it; not where files of launches are damaged, which has to be said each time."""
    from castmates.results.bundles import found_launches
    from castmates.results.finding_rules import own_files

    folder, study_file = results.folder, Path(results.study_file)
    if found_launches(folder).torn:
        folder.kept_answer_file.unlink(missing_ok=True)
        return
    rules = own_files(results.study, study_file)
    kept = {"study_file": str(study_file), "rules": [str(file) for file in rules], "answer": as_json(found)}
    text = json.dumps({"digest": _digest(folder, kept), **kept}, indent=1, ensure_ascii=False, allow_nan=False)
    replace_text(folder.kept_answer_file, f"{text}\n")


def kept_answer(named: Path) -> Kept | None:
    """The answer of the study that is named by its file or by its results; None where none is kept of it.

    An error says that the one there is not of the study, launches and tables that are there now.
    """
    try:
        name = named.resolve().name if named.is_dir() else _name_in(named.read_text(errors="replace"))
    except OSError:  # who reads the study says what is wrong with it
        return None
    folder = StudyFolder(named) if named.is_dir() else StudyFolder.of(name)
    if not name or not (file := folder.kept_answer_file).is_file():
        return None
    with understanding(file, "the answer of these results", AGAIN):
        kept = mapping_of(file)
        if not _is_of(named, name, Path(kept["study_file"])):
            return None
        if kept.pop("digest") != _digest(folder, kept):
            raise Unreadable("they changed after it was written, or it was damaged")
        return Kept(folder, _answer(kept["answer"]))


def _name_in(study: str) -> str:
    """The name of a study, from its text; "" where only YAML can tell."""
    names = NAME.findall(study)
    return str(names[0]) if len(names) == 1 else ""


def _is_of(named: Path, name: str, study: Path) -> bool:
    """Whether this file is the study that is meant, so that commands name it alike."""
    if not named.is_dir():
        return named == study
    named_so = [(file, found) for file, text in studies_with(name) if (found := _name_in(text)) in (name, "")]
    return named_so == [(study, name)]


def _digest(folder: StudyFolder, kept: Mapping[str, Any]) -> str:
    """Of an answer and of everything that it is made from, by this version."""
    whole = hashlib.sha256(json.dumps([__version__, kept], sort_keys=True).encode())
    study = Path(kept["study_file"])
    for file in sorted({study, *rules_beside(study), *map(Path, kept["rules"])}):
        whole.update(f"{file} {sha256_of(file)} ".encode())
    for file in folder.analysed_files():
        whole.update(f"{file.relative_to(folder.path)} {sha256_of(file)} ".encode())
    for path in folder.measured_paths():  # its record has been read, and has the digests of the tables
        whole.update(f"{path} {lacking(folder.launch(path))} ".encode())
    return whole.hexdigest()


def _answer(kept: Mapping[str, Any]) -> Answer:
    """The answer that was kept."""
    settle = kept["settle"]
    made = {
        "pairs": _made(Pair, kept["pairs"]),
        "curves": _made(Curve, [one | {"points": tuple(_made(Point, one["points"]))} for one in kept["curves"]]),
        "settle": settle and ToSettle(**settle | {"hopeless": tuple(_made(Pair, settle["hopeless"]))}),
        "cards": _made(Card, kept["cards"]),
    }
    return Answer(**{**kept, **made})


def _made(kind: type[Part], kept: Iterable[Mapping[str, Any]]) -> list[Part]:
    """Parts of the answer; a number that is none is null in JSON, and a tuple is a list."""
    numbers = {field.name for field in fields(kind) if field.type is float}
    return [kind(**{name: _value(value, name in numbers) for name, value in one.items()}) for one in kept]


def _value(value: Any, is_number: bool) -> Any:  # noqa: ANN401 (what JSON can hold)
    return math.nan if value is None and is_number else tuple(value) if isinstance(value, list) else value
