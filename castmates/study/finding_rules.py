"""What a user may write in a file of findings: rules on the tables of a study, with advice, and what tries it.

A rule is data: which rows of a table it is about, which number of theirs is compared with which threshold, and what
follows. Nothing of it is run as a program.
"""

import math
import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PlainValidator, StringConstraints, WithJsonSchema, model_validator

from castmates.study.mix_keys import Kind
from castmates.study.written import Name, OptionName, VariableName, Written


def _column(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", value):
        raise ValueError("the name of a table or a column, such as waiting_share")
    return value


Column = Annotated[str, BeforeValidator(_column)]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
PLACE = re.compile(r"\{([^{}]*)\}")  # in a sentence or a command: what is put there
About = Literal["lead", "mix", "study"]
Take = Literal["any", "all", "sum", "count"]
Shown = Literal["share", "percent", "faster", "ms", "mb", "times", "number"]


class Compared(Written):
    """A number that a cell has to be above or below."""

    above: float | None = None
    below: float | None = None


Word = str | bool | int | float
CELL_EXPECTED = "a value, a list of values, or a bound such as {above: 0.1}"


def _cell(value: object) -> object:
    if isinstance(value, dict):
        bounds = [bound for key, bound in value.items() if key in ("above", "below") and type(bound) in (int, float)]
        if len(bounds) != 1 or len(value) != 1:
            raise ValueError(CELL_EXPECTED)
        return Compared(**{key: float(bound) for key, bound in value.items()})
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(each, str | bool | int | float) for each in values):
        raise ValueError(CELL_EXPECTED)
    return tuple(values)


_WORD = {"type": ["string", "number", "boolean"]}
_BOUND = {"type": "object", "properties": {key: {"type": "number"} for key in ("above", "below")}, "maxProperties": 1}
# A word (in which * stands for any letters), a number, true or false; a list of these, of which it is one; a bound.
Cell = Annotated[
    tuple[Word, ...] | Compared,
    PlainValidator(_cell),
    WithJsonSchema({"anyOf": [_WORD, {"type": "array", "items": _WORD, "minItems": 1}, _BOUND]}),
]


def _ends(value: object) -> object:
    if isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise ValueError("the columns of the lower and the upper end, such as [waiting_low, waiting_high]")


Ends = Annotated[
    tuple[Column, Column],
    BeforeValidator(_ends),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}),
]


class Condition(Written):
    """Which rows of a table are looked at, and which number of theirs is beyond which threshold."""

    table: Column = Field(description="a table of results/<study>/tables, such as input_pipeline")
    rows: dict[Column, Cell] = Field(
        default={},
        description="which rows it is about: column and value, in which * stands for any letters, or a list of values; "
        "where there are none, nothing is known",
    )
    where: dict[Column, Cell] = Field(
        default={},
        description="what such a row must show besides, written in the same way or as `{above: NUMBER}`; where none "
        "does, the condition does not hold",
    )
    without: dict[Column, Cell] = Field(default={}, description="of these rows, those that are left out")
    number: Column = Field(description="the column that is compared with the threshold")
    per: Column | None = Field(default=None, description="a column of the same row by which the number is divided")
    interval: Ends | None = Field(
        default=None, description="the columns of the lower and the upper end of the number's interval"
    )
    no_interval: Text | None = Field(default=None, description="why the number has no interval, in place of 'interval'")
    above: float | None = Field(default=None, description="the threshold that is exceeded: by the lower end")
    below: float | None = Field(default=None, description="the threshold that is undercut: by the upper end")
    take: Take = Field(
        default="any",
        description="any row, all rows, the sum of the rows, or their count; the last two have no interval",
    )
    shown: Shown = Field(
        default="number",
        description="how the number is written; a share is shown in per cent, and a gain in per cent as 1.8 × as fast",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.above is None) == (self.below is None):
            raise ValueError("one of 'above' and 'below'")
        if (self.interval is None) == (self.no_interval is None):
            raise ValueError("one of 'interval' (two columns) and 'no_interval' (why there is none)")
        if self.interval is not None and (self.take in ("sum", "count") or self.per):
            raise ValueError("'no_interval' beside 'per', 'take: sum' and 'take: count'")
        return self


class Scaled(Written):
    """The value of an option that follows from what the lead has."""

    times: float | None = None  # so many times what it is now
    of_cpus: float | None = None  # so many times the number of its CPUs


VALUE_EXPECTED = "a word, a number, true, false, or what it follows from: {times: 4} or {of_cpus: 1}"


def _value(value: object) -> object:
    if isinstance(value, dict):
        factors = [key for key, factor in value.items() if type(factor) in (int, float) and 0 < factor < math.inf]
        if len(value) != 1 or factors not in (["times"], ["of_cpus"]):
            raise ValueError(VALUE_EXPECTED)
        return Scaled(**{key: float(factor) for key, factor in value.items()})
    if not isinstance(value, str | bool | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(VALUE_EXPECTED)
    return value


_FACTOR = {"type": "object", "properties": {key: {"type": "number"} for key in ("times", "of_cpus")}}
Value = Annotated[Word | Scaled, PlainValidator(_value), WithJsonSchema({"anyOf": [_WORD, _FACTOR]})]


def _cores(value: object) -> object:
    if isinstance(value, dict):
        value = _value(value)
    if not isinstance(value, Scaled) and (type(value) is not int or value < 1):
        raise ValueError("a number of CPUs, or how many times as many: {times: 2}")
    return value


Cores = Annotated[
    int | Scaled,
    PlainValidator(_cores),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _FACTOR]}),
]


class Change(Written):
    """What is changed of the lead: it is then measured as it is, and changed."""

    programs: list[Text] = Field(
        default=[], description="words of which the lead's command must have one, such as castmates.workloads.tfmodels"
    )
    unless: dict[OptionName, Cell] = Field(
        default={}, description="options of the lead with which it cannot be tried, such as {model: dlrm}"
    )
    options: dict[OptionName, Value] = Field(default={}, description="options of its command")
    variables: dict[VariableName, Value] = Field(default={}, description="environment variables")
    cores: Cores | None = Field(default=None, description="how many CPUs it is given: a number, or {times: 2}")
    work: OptionName | None = Field(
        default=None, description="the option that the work of a step is in proportion to, such as batch"
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.options or self.variables or self.cores):
            raise ValueError("something that changes: 'options', 'variables' or 'cores'")
        return self


class Trial(Written):
    """How `castmates advice --try` tries the advice."""

    lead: list[Change] = Field(
        default=[], description="what is changed of the lead; the first whose 'programs' the lead runs is tried"
    )
    mitigate: list[Kind] = Field(default=[], description="what is tried against the loss of the mix, as 'mitigations'")
    command: Text | None = Field(
        default=None, description="another command that tries it, with {study} and columns of the row"
    )
    shows: Text = Field(description="what the gain shows, and what it does not, in a sentence")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(map(bool, (self.lead, self.mitigate, self.command))) != 1:
            raise ValueError("one of 'lead', 'mitigate' and 'command'")
        return self


class Rule(Written):
    """What is worth knowing of a study, when it is so, and what to do then."""

    title: Text = Field(description="what is found, in a few words")
    about: About = Field(
        default="lead", description="whom a finding is about: a lead, a mix (a lead beside its antagonists), the study"
    )
    when: list[Condition] = Field(min_length=1, description="all of these hold, of the same lead or mix")
    sentence: Text = Field(
        description="the sentence, with {lead}, {beside}, {number} (and {number2} of the second condition), "
        "{threshold}, and columns of the row of the first condition"
    )
    because: Text = Field(description="why it matters, in a sentence")
    advice: Text = Field(description="what to do")
    trial: Trial | None = Field(default=None, alias="try", description="how `castmates advice --try` tries the advice")
    sources: list[Text] = Field(default=[], description="where this is known from")
    look: Text | None = Field(
        default=None,
        description="the command that shows it in a trace, with {study} and columns of the row of the first condition",
    )

    @model_validator(mode="after")
    def _of_a_mix(self) -> Self:
        if self.trial and self.trial.mitigate and self.about != "mix":
            raise ValueError("'about: mix' beside 'try.mitigate': it is tried against the loss of a mix")
        if self.trial and self.trial.lead and self.about == "study":
            raise ValueError("'about: lead' or 'about: mix' beside 'try.lead': a study has several leads")
        return self


class FindingRules(Written):
    """One file of rules."""

    findings: dict[Name, Rule | None] = Field(
        description="the rules of this file, by name, in the order in which their findings are shown; null switches a "
        "rule of an earlier file off"
    )


# The key `findings` of a study: files of rules on what is worth knowing of it.


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
