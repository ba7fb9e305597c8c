"""JSON Schema of study and catalogue -> a page with every key: type, default and meaning."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
SCHEMAS = "config/schemas"


def study_page(root: Path) -> str:
    """Every key of a study file."""
    return _page(
        root,
        "study.schema.json",
        "Keys of a study",
        "A study is one YAML file. [Configuration](../../config/README.md) explains the keys in context.",
    )


def catalogue_page(root: Path) -> str:
    """Every key of a catalogue file."""
    return _page(
        root,
        "catalogue.schema.json",
        "Keys of a catalogue file",
        "The files in `config/workloads` describe programs. [Add a workload](../add-a-workload.md) shows how.",
    )


def _page(root: Path, name: str, title: str, words: str) -> str:
    schema = json.loads((root / SCHEMAS / name).read_text(encoding="utf-8"))
    parts = [
        f"# {title}",
        f"{words}\n\nGenerated from `{SCHEMAS}/{name}`, with which editors complete and check these files.",
    ]
    parts.append(_table(schema))
    parts += [_section(name, definition) for name, definition in schema.get("$defs", {}).items()]
    return "\n\n".join(parts) + "\n"


def _section(name: str, definition: Schema) -> str:
    about = definition.get("description", "")
    if "properties" in definition:
        return f"## {name}\n\n{about}\n\n{_table(definition)}"
    return f"## {name}\n\n{about}\n\n{_type(definition)}"


def _table(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    rows = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    for key, value in schema.get("properties", {}).items():
        default = "required" if key in required else _default(value)
        rows.append(f"| `{key}` | {_type(value)} | {default} | {_cell(value.get('description', ''))} |")
    return "\n".join(rows)


def _default(value: Schema) -> str:
    """A default with its own keys is described where these are."""
    default = value.get("default")
    if default is None or default == "" or default == [] or (isinstance(default, dict) and "$ref" in value):
        return "–"
    return f"`{_cell(json.dumps(default, ensure_ascii=False))}`"


def _type(value: Schema) -> str:
    return " or ".join(dict.fromkeys(_types(value))) or "anything"


def _types(value: Schema) -> Iterator[str]:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "anyOf" in value:
        for one in value["anyOf"]:
            yield from _types(one)
    elif "enum" in value:
        yield from (f"`{_word(one)}`" for one in value["enum"])
    elif "const" in value:
        yield f"`{_word(value['const'])}`"
    elif value.get("type") == "array":
        yield f"list of {_type(value.get('items', {}))}"
    elif value.get("type") == "object":
        of = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
        inner = next((one for one in of if isinstance(one, dict)), None)
        yield f"mapping of {_type(inner)}" if inner else "mapping"
    elif value.get("type") == "null":
        yield "none"
    elif "type" in value:
        yield {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
            value["type"], value["type"]
        )


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
