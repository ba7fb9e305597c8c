"""YAML text -> checked models; every error is a sentence that names file, line and key."""

import difflib
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from castmates.errors import CastmatesError

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]
# What pydantic says less plainly, by its kind of error.
PLAIN = {
    "bool_type": "true or false",
    "list_type": "a valid list, such as [a, b]",
    "too_short": "a list of one or more",
}


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a key written twice, and dates: `2026-01-01` stays a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(model: type[Model], text: str, file: str) -> Model:
    """Parse `text` (of the file named so in errors) into `model`."""
    data, lines = _parse(text, file)
    if not isinstance(data, dict):
        raise CastmatesError(f"{file}: expected keys such as {_some(model)}, found {_kind(data)}.")
    try:
        return model.model_validate(data)
    except ValidationError as problem:
        raise CastmatesError("\n".join(_sentences(problem, model, lines, file))) from None


def value_of(text: str, key: str) -> object:
    """The value of a key at the top of a text; None where it has none, or is no YAML."""
    try:
        data, _ = _parse(text, "")
    except CastmatesError:
        return None
    return data.get(key) if isinstance(data, dict) else None


def line_of(text: str, file: str, key: Path) -> int:
    """The line in which a key is written, or the nearest one around it; 1 where there is none."""
    _, lines = _parse(text, file)
    return next((lines[key[:length]] for length in range(len(key), 0, -1) if key[:length] in lines), 1)


def _parse(text: str, file: str) -> tuple[Any, dict[Path, int]]:
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Path, int] = {}
        if node is None:
            return None, lines
        _walk(node, (), lines, file)
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise CastmatesError(f"{file}, line {line}: this is not valid YAML: {problem.problem}.") from None
    except yaml.YAMLError as problem:
        raise CastmatesError(f"{file}: this is not valid YAML: {' '.join(str(problem).split())}.") from None
    except RecursionError:
        raise CastmatesError(f"{file}: an alias (*name) stands inside its own anchor (&name); remove it.") from None
    finally:
        if loader is not None:
            loader.dispose()


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int], file: str) -> None:
    """Note the line of every key, and refuse a key written twice (YAML itself would keep the last, silently)."""
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: dict[Hashable, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if key.tag != "tag:yaml.org,2002:str":
                raise CastmatesError(f"{file}, line {line}: the key {name} is not a word; put it in quotes.")
            if name in seen:
                where = ".".join(map(str, path)) or "the file"
                raise CastmatesError(
                    f"{file}, line {line}: '{name}' is written twice in {where} (first in line {seen[name]}); "
                    "names must be unique, so rename or remove one."
                )
            seen[name] = line
            lines[(*path, name)] = line
            _walk(value, (*path, name), lines, file)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, (*path, index), lines, file)


def _sentences(problem: ValidationError, model: type[BaseModel], lines: dict[Path, int], file: str) -> Iterable[str]:
    # A union such as `str | list[str]` reports each arm by its own error; the first one is enough.
    reported: set[Path] = set()
    for error in problem.errors(include_url=False):
        path = _written_path(error["loc"], lines)
        if path in reported:
            continue
        reported.add(path)
        line = lines.get(path) or lines.get(path[:-1]) or 1
        key = _dotted(path)
        yield f"{file}, line {line}: {_sentence(error, key, path, model)}"


def _written_path(location: tuple[str | int, ...], lines: dict[Path, int]) -> Path:
    """Keep the parts of a location that the user wrote; pydantic adds the names of union arms and `[key]`."""
    path: Path = ()
    for part in location:
        if (*path, part) in lines or (
            part == location[-1] and isinstance(part, str) and "[" not in part and part not in ("str", "list")
        ):
            path = (*path, part)
    return path


def _sentence(error: Any, key: str, path: Path, model: type[BaseModel]) -> str:  # noqa: ANN401 (pydantic's ErrorDetails)
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    if kind == "extra_forbidden":
        known = _known_keys(model, path[:-1])
        return f"unknown key '{key}'{did_you_mean(str(path[-1]), known)} (known here: {', '.join(known)})."
    if kind == "missing":
        return f"the key '{key}' is missing."
    if kind == "string_pattern_mismatch":
        if "A-Za-z0-9][" in context["pattern"]:
            return f"'{key}': {value!r} is no name of an option; write it without '--' (letters, digits, '_', '-')."
        if "A-Z" in context["pattern"]:
            return f"'{key}': {value!r} is no name of an environment variable (letters, digits and '_')."
        if "a-z" in context["pattern"]:
            return f"'{key}' is {value!r}, but a name is made of lower-case letters, digits, '.', '_' and '-'."
        return f"'{key}' is {value!r}, but expected a CPU list such as 0-3 or 0,2."
    if kind in ("model_type", "dict_type"):
        return f"'{key}' is {_shown(value)}, but expected keys with values, such as `key: value`."
    expected = PLAIN.get(kind) or str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
    return f"'{key}' is {_shown(value)}, but expected {expected}."


def _known_keys(model: type[BaseModel], path: Path) -> list[str]:
    """Walk the model along a written path to the model that the last part belongs to."""
    schema = model.model_json_schema()
    node: Any = schema
    for part in path:
        if isinstance(part, int) and (lists := _lists(node)):
            node = lists[0]["items"]
            continue
        node = _resolved(node, schema)
        if "items" in node:
            node = node["items"]
        elif part in node.get("properties", {}):
            node = node["properties"][part]
        else:
            node = node.get("additionalProperties") or next(iter(node.get("patternProperties", {}).values()), {})
    return list(_resolved(node, schema).get("properties", {}))


def _lists(node: Any) -> list[Any]:  # noqa: ANN401 (a piece of JSON schema)
    """The forms of a key that are lists, where it has several forms."""
    return [each for each in node.get("oneOf", []) if "items" in each]


def _resolved(node: Any, schema: Any) -> Any:  # noqa: ANN401 (a piece of JSON schema)
    for reference in [node, *node.get("anyOf", []), *node.get("allOf", []), *node.get("oneOf", [])]:
        if "$ref" in reference:
            return _resolved(schema["$defs"][reference["$ref"].rsplit("/", 1)[-1]], schema)
    # What a word alone is short for stands beside that word.
    return next((each for each in node.get("anyOf", []) if "properties" in each), node)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean 'stream'?`, or nothing where no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f", did you mean '{near[0]}'?" if near else ""


def _dotted(path: Path) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path) or "the file"


def _some(model: type[BaseModel]) -> str:
    return ", ".join(list(model.model_fields)[:3])


def _kind(data: object) -> str:
    return "nothing" if data is None else f"a {type(data).__name__}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
