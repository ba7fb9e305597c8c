"""Facts of a machine -> machine.json of a study, and the files of further nodes beside it."""

import json
from collections.abc import Callable
from typing import Any

from castmates.files import mapping_if_there, replace_text
from castmates.linux.owner import boot_id
from castmates.results.folder import StudyFolder


def note_node(folder: StudyFolder, node: str, read_facts: Callable[[], dict[str, Any]]) -> None:
    """Keep the facts of this node once for each of its starts, where the study's machine is another one."""
    file = folder.node_file(node)
    planned, known = mapping_if_there(folder.machine_file), mapping_if_there(file)
    if planned.get("hostname") not in (None, node) and known.get("boot_id") != boot_id():
        replace_text(file, text_of(read_facts()))


def text_of(facts: dict[str, Any]) -> str:
    """The facts as a file has them."""
    return json.dumps(facts, indent=1, sort_keys=True) + "\n"
