"""The key `place` of a study, and the file of `castmates advice --place --jobs`: which jobs share which caches."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator

from castmates.study.written import LossPercent, Name, Written

MOST_JOBS = 256
COUNT_EXPECTED = f"a whole number from 1 to {MOST_JOBS}, or the keys count and limit"


class JobKeys(Written):
    """So many jobs of one workload."""

    count: int = Field(default=1, ge=1, le=MOST_JOBS, description="how many of them there are")
    limit: LossPercent | None = Field(
        default=None, description="what each of them may lose of its rate when alone, at most, such as 5%"
    )


def _count_alone(value: object) -> object:
    """`stream: 2` is short for `stream: {count: 2}`."""
    if isinstance(value, bool) or not isinstance(value, int | dict | JobKeys):
        raise ValueError(COUNT_EXPECTED)
    if type(value) is int:
        if not 1 <= value <= MOST_JOBS:
            raise ValueError(COUNT_EXPECTED)
        return {"count": value}
    return value


JOB_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_JOBS},
        {
            "type": "object",
            "properties": JobKeys.model_json_schema()["properties"],
            "additionalProperties": False,
        },
    ]
}
JobOf = Annotated[JobKeys, BeforeValidator(_count_alone), WithJsonSchema(JOB_SCHEMA)]


class PlaceKeys(Written):
    """Jobs that are to be divided among the last-level caches of a machine (docs/place.md)."""

    jobs: dict[Name, JobOf] = Field(
        default_factory=dict,
        description="by workload: how many there are, and what each may lose, such as {count: 2, limit: 5%}; a number "
        "alone is the count",
    )
    domains: int | None = Field(
        default=None, ge=1, le=64, description="last-level caches to use; those of the machine if left out"
    )
    cores: int | None = Field(
        default=None, ge=1, le=1024, description="cores around each of them; those of the machine if left out"
    )
    aim: Literal["losses", "domains"] = Field(
        default="losses",
        description="what is best among groupings that keep all limits: losses (the smallest sum of them, which is the "
        "highest system throughput), or domains (the fewest caches in use, and then the losses)",
    )
    masks: bool = Field(
        default=True,
        description="whether jobs around one cache may have separate ways, where losses under them are known",
    )
    most: int | None = Field(default=None, ge=1, le=64, description="jobs that may share one cache")
    machine: Name | None = Field(
        default=None, description="the class of nodes, in a study with 'machines', whose losses and caches are meant"
    )

    @field_validator("jobs")
    @classmethod
    def _not_too_many(cls, jobs: dict[str, JobKeys]) -> dict[str, JobKeys]:
        if sum(job.count for job in jobs.values()) > MOST_JOBS:
            raise ValueError(f"{MOST_JOBS} jobs at most, all kinds together")
        return jobs
