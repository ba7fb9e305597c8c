"""Snakemake's jobs of a sweep, in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from castmates.study.spec import Launch
from castmates.terminal.words import clock, names_of

LAUNCHES = ("measure_launch", "model_launch")
MORE_LAUNCHES = "take_look"  # the rule by which launches are added on the way
ANALYSIS = ("estimate_operations", "analyse")
WORDS = {
    "build_environment": "building {environment}",
    "build_inputs": "making the data set {inputs}",
    "describe_machine": "looking at this machine",
    "write_plan": "planning",
    "describe_mix": "planning",
    "decide_rounds": "deciding how many rounds follow",
    "take_look": "looking at what is known so far",
    "gather_launches": "gathering tables",
    "profile_launch": "tracing steps, launch {number}",
    "trace_launch": "recording {trace}",
    "estimate_operations": "adding up operations",
    "analyse": "writing the report",
}


@dataclass(frozen=True)
class Job:
    """A job that runs."""

    rule: str
    wildcards: Mapping[str, str]
    begun: float

    @property
    def path(self) -> str:
        """The launch that it measures."""
        return f"{self.wildcards.get('cohort')}/{self.wildcards.get('number')}"

    @property
    def name(self) -> str:
        """What it does."""
        return WORDS.get(self.rule, self.rule).format_map(self.wildcards)

    def now(self, at: float) -> str:
        """What it does, and for how long by now."""
        return f"{self.name}   {clock(at - self.begun)}" if at - self.begun >= 1 else self.name

    def about(self, launches: Mapping[str, Launch]) -> str:
        """What it does; of a launch, which one it is."""
        launch = launches.get(self.path) if self.rule in LAUNCHES else None  # profile launches have the same paths
        return f"{names_of(launch)}, launch {launch.number}" if launch is not None else self.name
