"""Facts that the report reads from JSON files, by name and type: any of them may be missing there."""

from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)


class Facts(BaseModel):
    """Facts of which each may be missing; what is of another type than a fact counts as missing."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _missing_where_odd(cls, value: object, usual: ValidatorFunctionWrapHandler, about: ValidationInfo) -> Any:  # noqa: ANN401 (any field)
        try:
            return usual(value)
        except ValidationError:
            return cls.model_fields[str(about.field_name)].get_default(call_default_factory=True)
