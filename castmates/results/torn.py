"""Blocks that have lost a table after they were measured: they are measured again."""

import json
import os
from collections.abc import Collection
from pathlib import Path

from castmates.files import replace_text, writing
from castmates.results.columns.block import BLOCK_TABLES, table_file
from castmates.results.folder import StudyFolder

TABLES = frozenset(map(table_file, BLOCK_TABLES))


def is_whole(folder: Path | str) -> bool:
    """Check whether all tables of a block are in its folder; one look at the folder, as there are thousands."""
    with os.scandir(folder) as entries:
        return len(TABLES.intersection(entry.name for entry in entries)) == len(TABLES)


def torn_blocks(folder: StudyFolder, measured: Collection[str]) -> frozenset[str]:
    """Those of the measured blocks, by their paths, that lack a table."""
    return frozenset(path for path in measured if not is_whole(folder.block(path)))


def remember_torn(folder: StudyFolder, torn: Collection[str]) -> Path:
    """Write down which blocks are torn: the note is newer than their records, so that Snakemake replaces these."""
    file = folder.torn_file
    with writing(file):
        replace_text(file, json.dumps(sorted(torn), indent=1) + "\n")
    return file
