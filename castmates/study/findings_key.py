"""The key `findings` of a study: files of rules on what is worth knowing of it."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema


def _files(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
        raise ValueError("a list of files, such as [rules.yaml]")
    return tuple(value)


RuleFiles = Annotated[
    tuple[str, ...],
    BeforeValidator(_files),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    Field(
        description="files of further rules on what is worth knowing of the study, from the project's root; those in "
        "the folder 'findings' beside the study hold too (castmates help findings)"
    ),
]
