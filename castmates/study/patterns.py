"""Regular expressions for lines of output: written as people write them, handed on as POSIX extended ones.

The keeper `lines` matches with the C library, which knows no `\\d`, takes a backslash inside brackets for itself, and
has neither lazy repetition nor groups that are not counted.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator

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
