"""Writes the study that rehearses another: the same, under the caches of another machine, which do nothing here."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from castmates import shipped
from castmates.errors import CastmatesError
from castmates.files import replace_text, written_text
from castmates.machine.capture import capture
from castmates.results.folder import StudyFolder
from castmates.study.confirmation import LONGEST_NAME, at_defaults
from castmates.study.model import Study
from castmates.study.reading import read_keys
from castmates.study.rehearsing import PREFIX, machine_of

HEAD = "Written by `castmates sweep --rehearse`; the same command writes it again."
WORKLOADS = "workloads"  # the folder beside a study whose files are read over the catalogue


def write_rehearsal(study_file: Path, machine: str) -> Path:
    """Write the study, in the folder of its results, with the workloads beside the first one; return its file."""
    study = read_keys(Study, written_text(study_file, "the study"), str(study_file))
    if rehearsed := machine_of(study.cache.driver):
        raise CastmatesError(f"{study_file}: this study rehearses '{rehearsed}'; sweep it without --rehearse.")
    if any(letter.isspace() for letter in machine):
        raise CastmatesError(f"--rehearse '{machine}': a file's name may have no blanks here; rename it.")
    content = capture.read_files(shipped.machine(machine))  # what is none is refused before anything is written
    new = rehearsing(study, machine, content)
    file = StudyFolder.of(new.name).rehearsal_study_file
    beside = study_file.parent / WORKLOADS
    ours = [] if beside.resolve() == shipped.catalogue().resolve() else sorted(beside.glob("*.yaml"))
    texts = {file: new.text(HEAD)} | {
        file.parent / WORKLOADS / own.name: written_text(own, "the catalogue") for own in ours
    }
    for place, text in texts.items():
        if not place.is_file() or place.read_text(encoding="utf-8") != text:
            replace_text(place, text)
    for own in (file.parent / WORKLOADS).glob("*.yaml"):
        if own not in texts:
            own.unlink()
    return file


def rehearsing(study: Study, machine: str, content: Mapping[str, str]) -> Study:
    """The same study as a rehearsal, under another name; its own rules of findings are not tried on it.

    Files of several machines may have the same name: what is in them is part of the study's.
    """
    named = re.sub(r"[^a-z0-9_-]", "-", Path(machine).name.partition(".")[0].lower())
    if machine not in shipped.machines():
        named = f"{named[:12]}-{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:6]}"
    tail = f"-rehearsed-{named}"[: LONGEST_NAME // 2]
    return study.model_copy(
        update={
            "name": study.name[: LONGEST_NAME - len(tail)] + tail,
            "title": f"{study.title or study.name}: rehearsed as on {machine}",
            "cache": study.cache.model_copy(update={"driver": f"{PREFIX}{machine}"}),
            **at_defaults(study, "findings"),
        }
    )
