"""What everything that is read from YAML has in common: its base, names, amounts of memory, shares."""

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, StringConstraints
from pydantic_core import core_schema

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64),
    Field(description="lower-case letters, digits, '.', '_' and '-'"),
]

OptionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$"), Field(description="without --")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


# The context in which what a person writes is read, or made. Without it, these are records, with numbers alone.
BY_HAND = {"by_hand": True}


class Written(BaseModel):
    """Base of everything read from YAML: unknown keys are errors, values are not bent into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def as_written(self) -> dict[str, Any]:
        """What a person would write for it in YAML: the keys that are not at their defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True, context=BY_HAND)

    def text(self, head: str) -> str:
        """The same as a file, which begins with a comment."""
        import yaml  # here, as what reads a plan needs none

        return f"# {head}\n" + yaml.safe_dump(self.as_written(), sort_keys=False, allow_unicode=True)


UNITS = {"B": 1} | {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)}
UNITS |= {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)}


def bytes_of(amount: str) -> int:
    """`1.9 GB` or `512 MiB` in bytes."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", amount)
    if parts is None or parts[2] not in UNITS:
        raise ValueError("an amount of memory with its unit, such as 1.9 GB or 512 MiB")
    return int(float(parts[1]) * UNITS[parts[2]])


def _amount(value: object) -> object:
    bytes_of(str(value))
    return value


def _option(value: object) -> object:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("a word, a number, true (the flag alone) or false (left out)")
    return value


def _package(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", value):
        raise ValueError("the name of a Debian package, such as xz-utils")
    return value


Amount = Annotated[str, BeforeValidator(_amount)]
Option = Annotated[str | int | float | bool, BeforeValidator(_option)]
Package = Annotated[str, BeforeValidator(_package)]


BARE = re.compile(r"[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class InPercent:
    """What a number is annotated with that people write as `5%`; 0.05 is kept of it, or 5 where `kept` is 1.

    A bare number is refused, because it could be a fraction or a number of per cent; 0 is the same as both.
    """

    zero: bool = True  # whether it may be 0%
    all: bool = True  # whether it may be 100%; what may be 0% may always
    kept: Literal[1, 100] = 100  # what the number of per cent is divided by

    @property
    def expected(self) -> str:
        """What it may be."""
        above_zero = f"above 0% and {'at most' if self.all else 'below'} 100%"
        return f"a share {'from 0% to 100%' if self.zero else above_zero}, such as 3%"

    @property
    def pattern(self) -> str:
        """What it is written like, as a regular expression of Python and of JSON schemas."""
        digits = r"(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)" if self.all else r"[0-9]{1,2}(\.[0-9]+)?"
        return rf"^{'' if self.zero else '(?=.*[1-9])'}{digits} ?%$"

    def read(self, value: object) -> float:
        """Read what a person wrote."""
        if isinstance(value, str) and re.match(self.pattern, value.strip()):
            return float(value.strip().rstrip(" %")) / self.kept
        number = float(value) if isinstance(value, str) and BARE.fullmatch(value.strip()) else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(self.expected)
        if number == 0 and self.zero:
            return 0.0
        readings = (f"{reading:.10g}%" for reading in (number, 100 * number))
        meant = " or ".join(reading for reading in readings if re.match(self.pattern, reading))
        raise ValueError(f"{meant}: shares are written with %" if meant else self.expected)

    def written(self, number: float) -> str:
        """Write what is kept, as a person would."""
        return f"{number * self.kept:.10g}%"

    def _validated(self, value: object, info: core_schema.ValidationInfo) -> object:
        is_record = not info.context and not isinstance(value, str)
        return value if is_record else self.read(value)

    def _serialized(self, value: float, info: core_schema.SerializationInfo) -> float | str:
        return self.written(value) if info.context else value

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Take and give text where people read and write, and numbers elsewhere."""
        serializer = core_schema.plain_serializer_function_ser_schema(self._serialized, info_arg=True)
        return core_schema.with_info_before_validator_function(
            self._validated, handler(source), serialization=serializer
        )

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        """Say the same to editors."""
        text: dict[str, Any] = {"type": "string", "pattern": self.pattern}
        return {"anyOf": [{"const": 0}, text]} if self.zero else text


PART = InPercent(zero=False, all=False)
LOSS = InPercent(zero=False, all=False, kept=1)
Percentage = Annotated[float, InPercent()]
PositivePercentage = Annotated[float, InPercent(zero=False)]
PartialPercentage = Annotated[float, PART]
LossPercent = Annotated[float, LOSS]


# Regular expressions for lines of output: written as people write them, handed on as POSIX extended ones.
#
# The keeper `lines` matches with the C library, which knows no `\d`, takes a backslash inside brackets for itself, and
# has neither lazy repetition nor groups that are not counted.

CLASSES = {"d": "0-9", "s": "[:space:]", "w": "[:alnum:]_"}
ASSERTIONS = "bB"
GNU = "<>`'"  # with a backslash, edges of words and of the text to the C library, and just themselves to people
QUANTIFIER = re.compile(r"\{\d*,?\d*\}")
NAMED_CLASS = re.compile(r"\[:[a-z]+:\]")
EXPECTED = "a regular expression for a line"


def posix(pattern: str) -> str:
    """Translate it into a POSIX expression; ValueError where there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of [[:alpha:]], which we pass on
            re.compile(pattern)
    except re.error as problem:
        raise ValueError(f"{EXPECTED} ({problem})") from None
    if "\n" in pattern or "\0" in pattern:
        raise ValueError(f"{EXPECTED}, which has no end of a line inside")
    return "".join(_translated(pattern))


def _translated(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        character, rest = pattern[at], pattern[at + 1 :]
        if character == "[":
            text, at = _brackets(pattern, at + 1)
            yield text
            continue
        if character == "\\":
            yield _escaped(rest[0])
            at += 2
            continue
        if character == "{":
            quantifier = QUANTIFIER.match(pattern, at)
            written = quantifier[0] if quantifier and quantifier[0] != "{}" else "{"
            character = {"{": "\\{", "{,}": "*"}.get(written, written)
            at += len(written) - 1
            rest = pattern[at + 1 :]
        if character == "(" and rest.startswith("?"):
            raise ValueError(f"{EXPECTED} without '(?': groups are all counted here, and flags are not known")
        if character[-1] in "*+?}" and rest[:1] in ("?", "+"):
            raise ValueError(f"{EXPECTED} without '{character}{rest[0]}': repetition takes as much as it can here")
        yield character
        at += 1


def _escaped(character: str) -> str:
    if character in CLASSES:
        return f"[{CLASSES[character]}]"
    if character.lower() in CLASSES:
        return f"[^{CLASSES[character.lower()]}]"
    if character.isalnum() and character not in ASSERTIONS:
        raise ValueError(f"{EXPECTED} without '\\{character}': only \\d, \\s, \\w, \\b and their capitals are known")
    return character if character in GNU else f"\\{character}"


def _brackets(pattern: str, at: int) -> tuple[str, int]:
    """Read a set of characters from behind its bracket on; return it and where it ends."""
    negated = pattern[at] == "^"
    at += negated
    begin, parts = at, []
    while pattern[at] != "]" or at == begin:
        if named := NAMED_CLASS.match(pattern, at):
            parts.append(named[0])
            at = named.end()
            continue
        if pattern[at : at + 2] in ("[=", "[."):
            raise ValueError(f"{EXPECTED} without a class of equals or a named character ('{pattern[at : at + 2]}')")
        character = pattern[at]
        at += 1
        if character == "\\":
            character = pattern[at]
            at += 1
            if character.isalnum():
                parts.append(_class_inside(character))
                continue
        elif character == "-" and parts and len(parts[-1]) == 1 and pattern[at] not in "]\\":
            parts[-1] += f"-{pattern[at]}"
            at += 1
            continue
        parts.append(character)
    if set(parts) == {"^"} and not negated:
        return "\\^", at + 1  # alone in a set, it would negate the set
    return f"[{'^' if negated else ''}{_ordered(parts)}]", at + 1


def _class_inside(character: str) -> str:
    if character not in CLASSES:
        raise ValueError(f"{EXPECTED} without '\\{character}' in brackets: only \\d, \\s and \\w are known there")
    return CLASSES[character]


def _ordered(parts: list[str]) -> str:
    """POSIX has no escapes in brackets: a `]` stands first, a `^` not first, a `-` first or last."""
    first, caret, dash = ([character] if character in parts else [] for character in ("]", "^", "-"))
    plain = [part for part in parts if part not in ("]", "^", "-")]
    return "".join([*first, *plain, *caret, *dash] if first or plain else [*dash, *caret])


def _line(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"{EXPECTED}, in quotes")
    posix(value)
    return value


Line = Annotated[str, BeforeValidator(_line)]
