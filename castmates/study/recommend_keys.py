"""The key `recommend` of a study: which loss of the lead can be borne."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from castmates.study.written import Written

EXPECTED = "a loss in per cent, above 0 and below 100, such as 3 or 2.5%"


def percent_of_loss(value: object) -> float:
    """`3` and `3%` are 3 per cent."""
    if isinstance(value, str) and (text := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", value.strip())):
        value = float(text[1])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 100:
        raise ValueError(EXPECTED)
    return float(value)


PercentOfLoss = Annotated[
    float,
    BeforeValidator(percent_of_loss),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100},
                {"type": "string", "pattern": r"^\d+(\.\d+)?\s*%?$"},
            ]
        }
    ),
]


class RecommendKeys(Written):
    """What a partition is recommended for."""

    lead_loss: PercentOfLoss | None = Field(
        default=None,
        description="what the lead may lose of its solo rate, at most, in per cent, such as 3; with it the report "
        "names the smallest lead mask that keeps the limit",
    )
