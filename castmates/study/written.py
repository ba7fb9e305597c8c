"""What everything that is read from YAML has in common: its base, names, amounts of memory, shares."""

import math
import re
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
