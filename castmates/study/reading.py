"""YAML text -> checked models; every error is a sentence that names file, line and key."""

import difflib
import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core import SchemaSerializer
from pydantic_core.core_schema import WithDefaultSchema

from castmates.errors import CastmatesError
from castmates.study.finding_rules import FindingRules
from castmates.study.model import Catalogue, Study
from castmates.study.placement_keys import PlaceKeys
from castmates.study.written import BY_HAND, Written

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]
# What pydantic says less plainly, by its kind of error.
PLAIN = {
    "bool_type": "true or false",
    "list_type": "a valid list, such as [a, b]",
    "too_short": "a list of one or more",
    "too_long": "at most {max_length} of them",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
}
YAML = "tag:yaml.org,2002:"
KINDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing"}
PYTHONS = {"NoneType": "nothing", "dict": "keys with values", "list": "a list"} | KINDS
MOST_DEEP = 50
MOST_VALUES = 100_000  # of a file, counted again wherever an alias repeats them
MOST_DIGITS = 40
# YAML 1.1 takes 010 for 8 and 1:30 for 90, which nobody means.
OCTAL_OR_SIXTIES = re.compile(r"[-+]?(?:0[0-7_]+|\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?)")


class _Loader(yaml.SafeLoader):
    """A safe loader within bounds, whose errors have lines, and whose dates stay strings: `2026-01-01`."""

    deep = values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node, where it is not too deep and there are not too many."""
        self.deep, self.values = self.deep + 1, self.values + 1
        if self.deep > MOST_DEEP or self.values > MOST_VALUES:
            most = f"{MOST_DEEP} levels" if self.deep > MOST_DEEP else f"{MOST_VALUES} values"
            raise _wrong(f"it has more than {most}", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self.deep -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Make what a node stands for."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, OverflowError):
            kind = KINDS[node.tag.removeprefix(YAML)]
            raise _wrong(f"'{str(node.value)[:40]}' is not {kind}", node.start_mark) from None


def _wrong(what: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, what, mark)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_keys(model: type[Model], text: str, file: str) -> Model:
    """Parse `text` (of the file named so in errors) into `model`."""
    data, lines = _parse(text, file)
    if not isinstance(data, dict):
        raise CastmatesError(f"{file}: expected keys such as {_some(model)}, found {_kind(data)}.")
    try:
        return model.model_validate(data, context=BY_HAND)
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


def parsed(text: str, named: str) -> Any:  # noqa: ANN401 (what YAML can hold)
    """What a text holds, with a sentence where it is no YAML."""
    return _parse(text, named)[0]


def _parse(text: str, file: str) -> tuple[Any, dict[Path, int]]:
    loader = None
    lines: dict[Path, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _Walk(lines, file).over(node, ())
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise CastmatesError(f"{file}, line {line}: this is not valid YAML: {problem.problem}.") from None
    except yaml.reader.ReaderError as problem:
        line, character = text.count("\n", 0, problem.position) + 1, problem.character
        code = character if isinstance(character, int) else ord(character)
        raise CastmatesError(
            f"{file}, line {line}: this is not valid YAML: the character U+{code:04X} cannot stand in it."
        ) from None
    finally:
        if loader is not None:
            loader.dispose()


class _Walk:
    """Notes the line of every key, and refuses what YAML takes in silence otherwise than it looks."""

    def __init__(self, lines: dict[Path, int], file: str) -> None:
        self._lines, self._file = lines, file
        self._around: list[yaml.Node] = []
        self._values = 0

    def over(self, node: yaml.Node, path: Path) -> None:
        """Look at a node and at all below it."""
        line = node.start_mark.line + 1
        self._lines.setdefault(path, line)
        self._values += 1
        if any(node is each for each in self._around):
            self._refuse(line, "an alias (*name) stands inside its own anchor (&name); remove it")
        if self._values > MOST_VALUES or len(self._around) > MOST_DEEP:
            self._refuse(line, f"its aliases (*name) add up to more than {MOST_VALUES} values or {MOST_DEEP} levels")
        if isinstance(node, yaml.ScalarNode):
            self._check(node, line)
            return
        if node.tag not in (f"{YAML}map", f"{YAML}seq"):
            self._refuse(line, f"the tag {_tag(node)} is not supported; leave it out")
        self._around.append(node)
        if isinstance(node, yaml.MappingNode):
            self._over_keys(node, path)
        else:
            for index, value in enumerate(node.value):
                self.over(value, (*path, index))
        self._around.pop()

    def _over_keys(self, node: yaml.MappingNode, path: Path) -> None:
        """YAML itself would keep the last of a key written twice, silently."""
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == f"{YAML}merge":
                self._refuse(line, "merge keys (<<) are not supported; write the keys out")
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(line, "a key is a list or has keys itself; write a word")
            name = str(key.value)
            if key.tag != f"{YAML}str":
                self._refuse(line, f"the key {name[:40]} is not a word; put it in quotes")
            self._check(key, line)
            if name in seen:
                where = ".".join(map(str, path)) or "the file"
                self._refuse(
                    line,
                    f"'{name}' is written twice in {where} (first in line {seen[name]}); names must be unique, so "
                    "rename or remove one",
                )
            seen[name] = line
            self._lines[(*path, name)] = line
            self.over(value, (*path, name))

    def _check(self, node: yaml.ScalarNode, line: int) -> None:
        """Refuse a word that YAML would take for something else, or that nobody can use."""
        kind, word = node.tag.removeprefix(YAML), node.value
        if kind not in KINDS:
            self._refuse(line, f"the tag {_tag(node)} is not supported; leave it out")
        if kind in ("int", "float"):
            if len(word) > MOST_DIGITS:
                self._refuse(line, f"a number has {len(word)} characters; at most {MOST_DIGITS} can be read")
            if OCTAL_OR_SIXTIES.fullmatch(word):
                number = yaml.SafeLoader("").construct_yaml_int(node) if kind == "int" else "another number"
                self._refuse(line, f"{word} would be {number} in YAML; write the number you mean, or put it in quotes")
        if not word.isprintable() and any("\ud800" <= each <= "\udfff" for each in word):
            self._refuse(line, "a text has half of a character (such as \\ud800); write the character itself")

    def _refuse(self, line: int, what: str) -> NoReturn:
        raise CastmatesError(f"{self._file}, line {line}: {what}.")


def _tag(node: yaml.Node) -> str:
    return str(node.tag).replace(YAML, "!!")[:40]


def _sentences(problem: ValidationError, model: type[BaseModel], lines: dict[Path, int], file: str) -> Iterable[str]:
    # A union such as `str | list[str]` reports each arm by its own error; the first one is enough.
    reported: set[Path] = set()
    for error in problem.errors(include_url=False):
        path = _written_path(error["loc"], lines)
        if path in reported:
            continue
        reported.add(path)
        line = lines.get(path) or lines.get(path[:-1]) or 1
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in path) or "the file"
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
    plain = PLAIN.get(kind, "").format_map(context)
    expected = plain or str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
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


def _some(model: type[BaseModel]) -> str:
    return ", ".join(list(model.model_fields)[:3])


def _kind(data: object) -> str:
    return PYTHONS.get(type(data).__name__, "a value")


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{_kind(value)} of {len(text)} characters"


# JSON Schemas of the YAML files, for editors; `make schemas` writes them, a test shows when they are stale.

SCHEMAS: dict[str, type[Written]] = {
    "study.schema.json": Study,
    "catalogue.schema.json": Catalogue,
    "place.schema.json": PlaceKeys,
    "findings.schema.json": FindingRules,
}


class _Schema(GenerateJsonSchema):
    """Schemas whose defaults are as people write them; those of keys below a key stand there alone."""

    def get_default_value(self, schema: WithDefaultSchema) -> Any:  # noqa: ANN401 (as pydantic has it)
        default = super().get_default_value(schema)
        if isinstance(default, BaseModel) and not default.model_fields_set:
            return NoDefault
        if not isinstance(default, float | tuple):
            return default
        return SchemaSerializer(schema["schema"]).to_python(default, mode="json", context=BY_HAND)


def schema_text(name: str) -> str:
    """The schema file of this name, as text."""
    known = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:castmates:{name}"}
    schema = known | SCHEMAS[name].model_json_schema(schema_generator=_Schema)
    return json.dumps(schema, indent=2) + "\n"
