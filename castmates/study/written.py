"""What everything that is read from YAML has in common: its base, names, amounts of memory, shares."""

import math
import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64),
    Field(description="lower-case letters, digits, '.', '_' and '-'"),
]

OptionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$"), Field(description="without --")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Written(BaseModel):
    """Base of everything read from YAML: unknown keys are errors, values are not bent into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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


def _percentage(value: object) -> float:
    """Take `1%` for 0.01."""
    if isinstance(value, str):
        text = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value.strip())
        value = float(text[1]) / 100 if text else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError("a share, such as 1% or 0.01")
    return float(value)


def _precision(value: object) -> float:
    try:
        share = _percentage(value)
    except ValueError:
        share = 0.0
    if not share:
        raise ValueError("a share above 0, such as 1% or 0.01")
    return share


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
IN_PERCENT = {"type": "string", "pattern": r"%\s*$"}
Percentage = Annotated[
    float,
    BeforeValidator(_percentage),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, IN_PERCENT]}),
]
Precision = Annotated[
    float,
    BeforeValidator(_precision),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, IN_PERCENT]}),
]
