"""The key `recommend` of a study: which loss of the lead can be borne."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from castmates.study.written import LossPercent, Written

MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
LATENCY = "a time such as 2 ms, 500 us or 0.1 s"


TIME = r"(\d+(?:\.\d+)?)\s*(us|ms|s)"


def _latency(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(TIME, value.strip(), re.ASCII) or milliseconds(value) <= 0:
        raise ValueError(LATENCY)
    return value


def milliseconds(text: str) -> float:
    """`2 ms` is 2, `500 us` is 0.5."""
    found = re.fullmatch(TIME, text.strip(), re.ASCII)
    assert found, text
    return float(found[1]) * MILLISECONDS[found[2]]


Latency = Annotated[
    str,
    BeforeValidator(_latency),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(us|ms|s)$"}),
]


class RecommendKeys(Written):
    """What a partition is recommended for."""

    lead_loss: LossPercent | None = Field(
        default=None,
        description="what the lead may lose of its rate alone, at most, such as 3%; with it the report "
        "names the smallest lead mask that keeps the limit",
    )
    latency: dict[Literal["p50", "p95", "p99"], Latency] = Field(
        default_factory=dict,
        description="how long requests to open-loop services may take, such as {p99: 2 ms}; with it the report names "
        "the highest load that keeps the limit, alone and beside each antagonist (castmates help services)",
    )

    @property
    def limits_ms(self) -> dict[str, float]:
        """The limits of latencies in ms, by quantile."""
        return {name: milliseconds(text) for name, text in self.latency.items()}
