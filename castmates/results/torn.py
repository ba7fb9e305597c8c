"""Launches whose files cannot be used, such as one that has lost a table: they are measured again."""

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from castmates.english import counted
from castmates.files import replace_text, writing
from castmates.results.columns.launch import LAUNCH_TABLES, table_file
from castmates.results.folder import StudyFolder

TOLD = 3
TABLES = frozenset(map(table_file, LAUNCH_TABLES))


def lacking(folder: Path | str) -> str:
    """A table of a launch that is not in its folder, "" without any; one look at it, as there are thousands."""
    with os.scandir(folder) as entries:
        return min(TABLES.difference(entry.name for entry in entries if entry.is_file()), default="")


def torn_words(torn: Mapping[str, str]) -> list[str]:
    """What is said of them: why, of the first ones."""
    if not torn:
        return []
    head = f"{counted(len(torn), 'launch')} cannot be used; the next sweep measures damaged ones again:"
    return [head, *list(torn.values())[:TOLD]]


def remember_torn(folder: StudyFolder, torn: Collection[str]) -> Path:
    """Write down which launches are torn: the note is newer than their records, so that Snakemake replaces these."""
    file = folder.torn_file
    with writing(file):
        replace_text(file, json.dumps(sorted(torn), indent=1) + "\n")
    return file
