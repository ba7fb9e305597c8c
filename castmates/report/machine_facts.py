"""What the report asks of machine.json."""

from collections.abc import Mapping
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

# Facts that the report reads from JSON files, by name and type: any of them may be missing there.


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


class CacheFacts(Facts):
    """A last-level cache."""

    level: int | None = None
    bytes: int | None = None
    ways: int | None = None
    cpus: str = "?"
    clusters: int = 1  # memory nodes that divide it


class TopologyFacts(Facts):
    """The CPUs."""

    allowed: str | None = None  # that may be used
    cores: int | None = None
    packages: int | None = None
    llcs: tuple[CacheFacts, ...] = ()
    siblings: tuple[str, ...] | None = None  # CPUs that share a core


class TurboFacts(Facts):
    """Whether turbo is on."""

    on: bool | None = None


class IdleState(Facts):
    """A state in which a CPU sleeps."""

    name: str = "–"
    wakes_in_us: int | None = None
    off_on: str = ""  # CPUs for which it is switched off


class IdleFacts(Facts):
    """What CPUs may sleep in."""

    driver: str | None = None
    governor: str | None = None
    states: tuple[IdleState, ...] = ()


class PerfFacts(Facts):
    """What perf can count."""

    hardware: str | None = None
    why: str | None = None


class ResctrlFacts(Facts):
    """Whether caches can be shared out."""

    kernel: bool | None = None
    mounted: bool | str | None = None
    writable: bool | None = None
    delegated: Any = None


class QuirkFacts(Facts):
    """Something that is known to be wrong or hidden on this processor or kernel."""

    title: str = ""
    happens: str = ""
    do: str = ""
    sources: tuple[str, ...] = ()


class ProcessorFacts(Facts):
    """Who made the processor: x86 names a vendor, Arm an implementer."""

    vendor: str | None = None
    implementer: str | None = None


class Finding(Facts):
    """A row of `castmates doctor`."""

    name: str = ""
    state: str = ""
    finding: str = ""


class MachineFacts(Facts):
    """The machine that measured; of a modelled one its model."""

    read_at: str | None = None
    hostname: str | None = None
    cpu_model: str | None = None
    processor: ProcessorFacts = ProcessorFacts()
    kernel: str | None = None
    distribution: str | None = None
    topology: TopologyFacts = TopologyFacts()
    memory_bytes: int | None = None
    steal_share: float | None = None
    turbo: TurboFacts | None = None
    idle_states: IdleFacts | None = None
    uncore_clock: Mapping[str, Mapping[str, int]] | None = None  # by domain: its range in MHz
    governors: Mapping[str, str] | None = None
    transparent_hugepages: str | None = None
    hypervisor_flag: bool | None = None
    virtualisation: Mapping[str, str | None] = {}
    perf: PerfFacts | None = None
    resctrl: ResctrlFacts = ResctrlFacts()
    model: Mapping[str, Any] = {}
    rehearsed: Mapping[str, Any] = {}  # the machine whose ways and ids were those of a rehearsal here
    rdt_trial: Mapping[str, Any] | None = None  # what the trial of masks and throttles found
    quirks: tuple[QuirkFacts, ...] = ()
    doctor: tuple[Finding, ...] = ()
    classes: Mapping[str, Any] = {}  # of modelled classes of nodes: the facts of each
    memory_peak: Mapping[str, Any] | None = None  # what the trial of memory bandwidth found

    @property
    def chiplets(self) -> bool:
        """Whether last-level caches share a package's memory, so that each has its own way there."""
        if self.model:
            caches = self.model.get("domains") or 1
            return bool(caches > (self.model.get("sockets") or caches))
        return len(self.topology.llcs) > (self.topology.packages or len(self.topology.llcs))

    def recorded(self, name: str) -> bool:
        """Whether the file has this fact, even if its value is that it is not known."""
        return name in self.model_fields_set
