"""How many launches were asked for beyond those of a study's file: kept with its results, for all later commands."""

import json

from castmates.files import replace_text
from castmates.results.folder import StudyFolder
from castmates.results.records import read_json


def asked_blocks(folder: StudyFolder) -> int:
    """The number asked for last; 0 where none was asked for."""
    blocks = read_json(folder.asked_file).get("blocks")
    return blocks if isinstance(blocks, int) else 0


def remember_blocks(folder: StudyFolder, blocks: int) -> None:
    """Keep the number that is asked for now."""
    if asked_blocks(folder) != blocks:
        replace_text(folder.asked_file, json.dumps({"blocks": blocks}) + "\n")
