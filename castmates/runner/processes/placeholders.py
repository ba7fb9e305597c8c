"""Fills in what is known only when a command is started, such as `{inputs}`."""

import sys
from collections.abc import Mapping
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.study.spec import Member
from castmates.workloads import environments, inputs

PYTHON = "{python}"


def filled(member: Member, scratch: Path, cache: Path) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the member's command and its variables as they are here, and the variables that its interpreter needs."""
    known = {PYTHON: sys.executable, "{cpus}": str(len(member.cpus)), "{scratch}": str(scratch)}
    if member.inputs is not None and member.inputs_key is not None:
        known["{inputs}"] = str(built(member.inputs, member.inputs_key, cache))
    words = [_replaced(word, known) for word in member.command]
    variables = {name: _replaced(value, known) for name, value in member.variables.items()}
    ours = any(PYTHON in word for word in (*member.command, *member.variables.values()))
    return words, variables, {"PYTHONPATH": str(environments.import_folder(cache.resolve()))} if ours else {}


def built(name: str, key: str, cache: Path) -> Path:
    """Return where a data set lies."""
    place = inputs.place_of(name, key, cache.resolve())
    if not inputs.ready_file(place).is_file():
        raise CastmatesError(
            f"the data set '{name}' is not made yet ({place}); run `castmates internals build-inputs {name}` first."
        )
    return place


def _replaced(text: str, known: Mapping[str, str]) -> str:
    for token, value in known.items():
        text = text.replace(token, value)
    return text
