"""What a user may write: the study file and the catalogue of workloads."""

import shlex
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64),
    Field(description="lower-case letters, digits, '.', '_' and '-'"),
]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ControlKind = Literal["positive", "negative"]
CpuList = Annotated[str, StringConstraints(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")]


class Written(BaseModel):
    """Base of everything read from YAML: unknown keys are errors, values are not bent into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Workload(Written):
    """A program in the catalogue: how to prepare it, start it, and read its progress."""

    title: str = Field(default="", description="what people call it; the name if left out")
    like: Name | None = Field(default=None, description="another workload whose keys hold where this one has none")
    command: str | list[str] = Field(
        default="",
        description="the command line, split as a shell would (but no shell runs it), or a list of words",
    )
    environment: Name | None = Field(
        default=None,
        description="what is built for it and comes first on its PATH: 'native' or the NAME of envs/NAME.lock",
    )
    progress: Literal["heartbeat", "runs"] = Field(
        default="runs",
        description="'heartbeat': the program reports ready and its steps; 'runs': it is run again and again and "
        "each completed run is one unit",
    )
    unit: str = Field(default="", description="what one unit of progress is called; 'run' or 'step' if left out")
    cores: int = Field(default=1, ge=1, description="how many CPUs it is given")
    variables: dict[VariableName, str] = Field(
        default_factory=dict, description="environment variables it is started with"
    )
    ready_within: float = Field(default=180.0, gt=0, description="seconds it may take from its start to 'ready'")

    @field_validator("command")
    @classmethod
    def _can_be_split(cls, command: str | list[str]) -> str | list[str]:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError:
            raise ValueError("a command line whose quotes are closed") from None
        if not words:
            raise ValueError("a command line with at least a program's name")
        return command

    @property
    def words(self) -> list[str]:
        """The command line, split."""
        return shlex.split(self.command) if isinstance(self.command, str) else self.command


class Catalogue(Written):
    """One file of the catalogue."""

    workloads: dict[Name, Workload] = Field(description="the workloads of this file, by name")


class MixRule(Written):
    """One lead and the antagonists that run beside it at the same time."""

    lead: Name = Field(description="the workload whose loss is studied")
    antagonists: list[Name] = Field(
        min_length=1, description="the workloads beside it; a name twice means two instances"
    )


class Placement(Written):
    """Which CPUs the members of a mix sit on, where the default (one CPU per core, in order) is not wanted."""

    lead: CpuList | None = Field(default=None, description="CPUs of the lead, such as 0-3")
    antagonists: CpuList | None = Field(default=None, description="CPUs of the antagonists, handed out in order")


class Budget(Written):
    """How much measuring a study may do."""

    blocks: int = Field(
        default=5, ge=1, le=10_000, description="launches of each company; the sampling unit of the headline"
    )
    rounds: int = Field(default=3, ge=1, le=1000, description="passes over all scenes inside a block")
    spare_rounds: int = Field(
        default=1, ge=0, le=1000, description="rounds a block may add for those with rejected windows"
    )
    window: float = Field(default=1.0, gt=0, le=600, description="seconds a scene is measured, at least")
    longest_window: float = Field(
        default=5.0,
        gt=0,
        le=600,
        description="seconds a window may be stretched to so that its members complete enough steps",
    )
    settle: float = Field(
        default=0.1, ge=0, le=3600, description="seconds between a change of scene and its window, at least"
    )
    longest_settle: float = Field(
        default=2.0,
        ge=0,
        le=3600,
        description="seconds that the settle time is raised to, at most, where rates are seen to become steady later",
    )
    steps: int = Field(
        default=10, ge=2, description="steps that every member should complete in a window, which is stretched for it"
    )
    company: int = Field(default=6, ge=1, le=64, description="mixes that share a launch, at most")


class Limits(Written):
    """When a window is rejected; decided before anything is measured."""

    steal: float = Field(
        default=0.03,
        ge=0,
        le=1,
        description="share of CPU time stolen by the hypervisor on the members' CPUs",
    )
    foreign: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="share of a CPU of the block that other programs took (two clock ticks are forgiven)",
    )
    swap: int = Field(default=0, ge=0, description="pages that the machine swapped in or out during a window")


class Controls(Written):
    """Mixes whose outcome is known beforehand: they say whether the study can be believed, and are no result of it."""

    positive: MixRule | None = Field(
        default=MixRule(lead="chase", antagonists=["stream"]),
        description="a mix that must show a loss; without one, no sensitivity is shown",
    )
    negative: MixRule | None = Field(
        default=MixRule(lead="compute", antagonists=["compute"]),
        description="a mix that must show none",
    )


class Study(Written):
    """One YAML file: what to measure and how well."""

    name: Name = Field(description="its results go to results/NAME")
    title: str = Field(default="", description="the report's heading; the name if left out")
    question: str = Field(default="", description="one sentence for the report: what this study wants to know")
    leads: list[Name] = Field(default_factory=list, description="each is put beside each of the antagonists")
    antagonists: list[Name] = Field(default_factory=list, description="each is put beside each of the leads")
    mixes: list[MixRule] = Field(default_factory=list, description="further mixes, also of several antagonists at once")
    workloads: dict[Name, Workload] = Field(default_factory=dict, description="workloads of this study alone")
    catalogue: str = Field(
        default="config/workloads", description="the folder of catalogue files, from the project's root"
    )
    placement: Placement = Placement()
    budget: Budget = Budget()
    limits: Limits = Limits()
    controls: Controls | None = Field(
        default=Controls(), description="the positive and the negative control; null measures neither"
    )
    margin: float = Field(
        default=0.02,
        gt=0,
        lt=1,
        description="a change smaller than this is called equivalent to none (0.02 is 2 %)",
    )
    seed: int = Field(default=1, ge=0, description="of every random order in the study")

    @property
    def control_rules(self) -> list[tuple[ControlKind, MixRule]]:
        """The controls that are wanted."""
        one = self.controls or Controls(positive=None, negative=None)
        kinds: list[tuple[ControlKind, MixRule | None]] = [("positive", one.positive), ("negative", one.negative)]
        return [(kind, rule) for kind, rule in kinds if rule is not None]
