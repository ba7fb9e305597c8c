"""The key `variants` of a study: a lead in other settings, such as another precision; each is one more lead."""

from typing import Any

from pydantic import Field, field_validator

from castmates.study.modelled import WorkloadModel
from castmates.study.written import Amount, Name, Option, OptionName, VariableName, Written

BASE = "base"  # the lead as it is


class VariantKeys(Written):
    """A lead in another setting: what it changes of its workload."""

    name: Name = Field(description="what it is called: it is the lead LEAD.NAME")
    title: str = Field(
        default="", max_length=300, description="what people call it; the lead's title and its name if left out"
    )
    options: dict[OptionName, Option] = Field(
        default_factory=dict,
        description="options of the command, in place of the lead's; false leaves one out",
    )
    variables: dict[VariableName, str] = Field(
        default_factory=dict, description="environment variables, in addition to the lead's"
    )
    cores: int | None = Field(default=None, ge=1, description="how many CPUs it is given; the lead's if left out")
    memory: Amount | None = Field(default=None, description="what it takes of the memory; the lead's if left out")
    model: WorkloadModel | None = Field(
        default=None, description="how it behaves in a study whose platform is modelled; as the lead if left out"
    )
    work: float | None = Field(
        default=None,
        gt=0,
        description="how many of the lead's steps one of its steps is worth: 4 where its batch is four times as large. "
        "Speeds are compared by it; 1 if left out",
    )

    @field_validator("name")
    @classmethod
    def _not_the_base(cls, name: str) -> str:
        if name == BASE:
            raise ValueError(f"another name: '{BASE}' is the lead as it is")
        return name

    @property
    def changes(self) -> dict[str, Any]:
        """What of the workload has another value, apart from options and variables."""
        return {key: getattr(self, key) for key in ("cores", "memory", "model") if getattr(self, key) is not None}

    @property
    def in_words(self) -> str:
        """What it changes: precision int8, threads 2."""
        told = [f"{name} {_word(value)}" for name, value in self.options.items()]
        told += [f"{name}={value}" for name, value in self.variables.items()]
        told += [f"{self.cores} CPU{'s' if self.cores > 1 else ''}"] if self.cores else []
        told += ["another model of its rate"] if self.model else []
        return ", ".join(told) or "nothing but its name"


def _word(value: object) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)
