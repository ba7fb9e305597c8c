"""The key `machines` of a study: the classes of nodes that it is measured on."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator

from castmates.study.modelled import MachineModel
from castmates.study.written import Name, Written

MAKES_ONE = "castmates doctor --capture"


class SlurmKeys(Written):
    """How Slurm finds the nodes of a class, in the words of its own options."""

    constraint: str | None = Field(default=None, description="features of the nodes, as sbatch's --constraint")
    partition: str | None = Field(default=None, description="the partition that they are in")
    nodelist: str | None = Field(default=None, description="their names, such as node[1-8]")


class MachineClass(Written):
    """One class of nodes: machines with the same processors, caches and memory."""

    capture: str | None = Field(
        default=None,
        description=f"the file that `{MAKES_ONE} FILE` wrote on one of its nodes, from the project's root",
    )
    model: MachineModel | None = Field(default=None, description="the machine, in a study whose platform is modelled")
    slurm: SlurmKeys = SlurmKeys()

    @model_validator(mode="after")
    def _one_machine(self) -> Self:
        if (self.capture is None) == (self.model is None):
            raise ValueError("either 'capture' (a file) or, in a modelled study, 'model'")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:  # noqa: ANN401 (pydantic's)
        """A file alone is short for its `capture`."""
        return {"anyOf": [{"type": "string"}, handler(core)]}


def _long(value: object) -> object:
    return {"capture": value} if isinstance(value, str) else value


OneClass = Annotated[MachineClass, BeforeValidator(_long)]


def refusal(machines: dict[str, MachineClass], platform: object) -> str:
    """What the study should have in place of these classes; "" where they are as they should be."""
    for name, one in machines.items():
        if platform == "modelled" and one.model is None:
            return (
                f"a 'model' for '{name}', because this study is modelled and a capture does not describe how a model "
                "behaves"
            )
        if platform != "modelled" and one.model is not None:
            return f"a 'capture' for '{name}' (`{MAKES_ONE} FILE` makes one), because this study is not modelled"
    known: dict[str, str] = {}
    for name, model in ((name, one.model) for name, one in machines.items() if one.model is not None):
        twin = known.setdefault(model.model_dump_json(), name)
        if twin != name:
            return f"different machines, but '{twin}' and '{name}' are the same model"
    return ""


# The key `machine` of a study: how the machine is set for each launch.


def _word(value: object) -> object:
    """Take a bare `on` or `off`, which YAML reads as true or false, for the word."""
    return ("off", "on")[value] if isinstance(value, bool) else value


Switch = Annotated[Literal["on", "off"], BeforeValidator(_word)]


CLOCKS = {"type": "integer", "minimum": 100, "maximum": 12_700}


def _uncore(value: object) -> object:
    """Take a word or a clock."""
    if value not in ("highest", "lowest") and not (type(value) is int and 100 <= value <= 12_700):
        raise ValueError("highest, lowest, or a clock from 100 to 12700 MHz")
    return value


Uncore = Annotated[
    Literal["highest", "lowest"] | int,
    BeforeValidator(_uncore),
    WithJsonSchema({"anyOf": [{"enum": ["highest", "lowest"]}, CLOCKS]}),
]


class Prepare(Written):
    """How the machine is set for each launch, and put back after it; what is left out stays as it is."""

    governor: Name | None = Field(default=None, description="frequency governor of every CPU, such as performance")
    turbo: Switch | None = Field(default=None, description="frequencies above the nominal one")
    thp: Literal["always", "madvise", "never"] | None = Field(default=None, description="transparent huge pages")
    numa_balancing: Switch | None = Field(default=None, description="whether the kernel moves pages between nodes")
    nmi_watchdog: Switch | None = Field(default=None, description="the watchdog that holds one counter of each CPU")
    irq_affinity: Literal["away"] | None = Field(
        default=None, description="away: interrupts, and those still to come, are moved off the launch's CPUs"
    )
    workqueues: Literal["away"] | None = Field(
        default=None, description="away: the kernel's unbound work is moved off the launch's CPUs"
    )
    uncore: Uncore | None = Field(
        default=None, description="clock of mesh, last-level cache and memory controllers: highest, lowest, or in MHz"
    )
    epp: Name | None = Field(
        default=None, description="energy_performance_preference of every CPU, such as performance"
    )
    prefetchers: Switch | None = Field(
        default=None,
        description="hardware prefetchers of the launch's cores, on Intel's Xeon processors and AMD's since Zen 3",
    )
    cpu_dma_latency: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="microseconds that a CPU may take at most to wake up, which keeps it out of deeper sleep",
    )
    cpuset: Literal["isolated"] | None = Field(
        default=None,
        description="isolated: the launch's CPUs belong to its programs alone, in a cpuset partition of cgroup v2; for "
        "programs of one CPU each",
    )

    @property
    def words(self) -> dict[str, str]:
        """The knobs that are to be set, each with its word."""
        return {knob: str(word) for knob, word in self.model_dump(exclude_none=True).items()}


class Machine(Written):
    """What is done with the machine that measures."""

    prepare: Prepare = Field(default=Prepare(), description="knobs that are set for the time of a launch")
