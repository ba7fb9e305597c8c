"""What a block is, exactly: everything that defines a measurement and nothing else, as canonical JSON."""

import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

from castmates.study.model import ControlKind, Limits, Prepare

# Raise it when the way of measuring changes, so that old blocks are not mixed with new ones.
PROTOCOL = 2

Role = Literal["lead", "antagonist"]
SceneKind = Literal["solo", "solo-again", "placebo", "corun", "alone"]
UNMANAGED = "unmanaged"


class Spec(BaseModel):
    """Base of the frozen records that a plan is made of."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def canonical(self) -> str:
        """The one JSON text of this record; equal records give equal texts."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def fingerprint(self, digits: int = 8) -> str:
        """A short name of the content."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:digits]


class Prepared(Spec):
    """What a workload finds when it starts."""

    environment_key: str | None
    content: str


class Member(Spec):
    """A workload on its CPUs."""

    name: str  # "stream@1": the workload and its CPUs
    workload: str
    role: Role
    cpus: tuple[int, ...]
    nodes: tuple[int, ...]  # memory nodes that it is bound to; none where it is not bound
    command: tuple[str, ...]
    environment: str | None
    environment_key: str | None  # where the environment is built
    content: str  # digest of what runs there: the lock, the sources
    progress: Literal["heartbeat", "runs"]
    unit: str
    variables: dict[str, str]
    ready_within: float


class Mix(Spec):
    """A lead, its antagonists, and the CPUs each one sits on (inside the members' names)."""

    name: str  # "dlrm-train+stream"
    identity: str  # fingerprint of all members: equal identity, same measurement
    lead: str  # member names
    antagonists: tuple[str, ...]


class Control(Spec):
    """A mix whose outcome is known beforehand."""

    kind: ControlKind
    mix: Mix


class Scene(Spec):
    """What holds during a window."""

    name: str
    kind: SceneKind
    mix: str  # "" where the scene serves several mixes
    active: tuple[str, ...]  # members that run; all others are frozen
    placebos: tuple[int, ...]  # CPUs that run the placebo's spin loop instead of an antagonist
    partition: str


class Design(Spec):
    """How long and how often a block measures, and when it rejects a window."""

    rounds: int
    spare_rounds: int
    window: float
    longest_window: float
    settle: float
    longest_settle: float
    steps: int
    limits: Limits
    prepare: Prepare = Prepare()


class Company(Spec):
    """The mixes of one lead that share a launch."""

    id: str
    protocol: int
    native_key: str  # where the placebo, and the keeper of commands without a heartbeat, are built
    members: tuple[Member, ...]  # the lead first
    mixes: tuple[Mix, ...]
    scenes: tuple[Scene, ...]

    @property
    def lead(self) -> Member:
        """The member whose loss is studied."""
        return self.members[0]


class Block(Spec):
    """One launch of a company."""

    study: str
    company: Company
    number: int
    seed: int
    design: Design

    @property
    def path(self) -> str:
        """Its place below results/<study>/blocks."""
        return f"{self.company.id}/{self.number}"


class Plan(Spec):
    """All blocks of a study, those measured already included, and those that it may turn out not to need."""

    study: str
    titles: dict[str, str]  # workload -> what people call it
    mixes: tuple[Mix, ...]  # the active ones, in the study's order
    controls: tuple[Control, ...]  # measured like mixes, and no result of the study
    blocks: tuple[Block, ...]
    looks: tuple[tuple[str, ...], ...] = ()  # paths of the blocks that each look adds; none without a wanted precision

    @property
    def wanted(self) -> dict[str, Mix]:
        """Every mix that is to be measured, a result or a control, by identity."""
        return {mix.identity: mix for mix in (*self.mixes, *(control.mix for control in self.controls))}
