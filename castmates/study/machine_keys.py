"""The key `machines` of a study: the classes of nodes that it is measured on."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator

from castmates.study.frozen import Frozen
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


# What a node must have to be of a class, and the first thing in which it differs.

SAME_MEMORY = 0.05  # firmware keeps a little more on one node than on another


class LastLevel(Frozen):
    """One last-level cache."""

    id: int
    bytes: int | None
    ways: int | None
    cpus: str


class NodeFacts(Frozen):
    """What decides where members sit, how large they are, and which partitions they get."""

    processor: str | None
    online: str  # CPUs
    siblings: tuple[str, ...]  # CPUs of the same core, where there are several
    packages: int | None
    caches: tuple[LastLevel, ...]
    nodes: tuple[str, ...]  # memory nodes with their CPUs: "0: 0-7"
    memory_bytes: int | None
    ways: int | None  # bits of resctrl's masks; None where resctrl is not mounted
    groups: int | None  # that it has room for


def recorded(machine: Mapping[str, Any]) -> NodeFacts | None:
    """The same of a study's machine.json; None where it lacks the topology, as that of a model does."""
    topology = machine.get("topology") or {}
    if not topology.get("online"):
        return None
    return NodeFacts(
        processor=machine.get("cpu_model"),
        online=topology["online"],
        siblings=tuple(topology.get("siblings") or ()),
        packages=topology.get("packages"),
        caches=tuple(
            LastLevel(id=each.get("id", 0), bytes=each.get("bytes"), ways=each.get("ways"), cpus=each.get("cpus", ""))
            for each in topology.get("llcs") or ()
        ),
        nodes=tuple(f"{each.get('id')}: {each.get('cpus')}" for each in topology.get("nodes") or ()),
        memory_bytes=machine.get("memory_bytes"),
        ways=None,
        groups=None,
    )


def difference(wanted: NodeFacts, found: NodeFacts) -> str:
    """The first thing that a node has and a class has not, as a clause; "" where it is of the class."""
    return next(_differences(wanted, found), "")


def _differences(wanted: NodeFacts, found: NodeFacts) -> Iterator[str]:
    one = {
        "its processor is": (found.processor or "unknown", wanted.processor or "unknown"),
        "its CPUs are": (found.online, wanted.online),
        "its siblings are": (_some(found.siblings), _some(wanted.siblings)),
        "it has sockets:": (found.packages, wanted.packages),
        "its memory nodes have the CPUs": (_some(found.nodes), _some(wanted.nodes)),
        "it has last-level caches:": (len(found.caches), len(wanted.caches)),
    }
    for what, (here, there) in one.items():
        if here != there:
            yield f"{what} {here}, and not {there}"
    for cache, planned in zip(found.caches, wanted.caches, strict=False):
        if cache != planned:
            yield f"its last-level cache {cache.id} has {_words(cache)}, and not {_words(planned)}"
    for what, has, needs in (("ways", found.ways, wanted.ways), ("groups", found.groups, wanted.groups)):
        if has is not None and needs is not None and has != needs:
            yield f"its resctrl has {has} {what}, and not {needs}"
    ours, theirs = found.memory_bytes, wanted.memory_bytes
    if ours is not None and theirs is not None and abs(ours - theirs) > SAME_MEMORY * theirs:
        yield f"it has {ours / 1e9:.1f} GB of memory, and not {theirs / 1e9:.1f} GB"


def _some(lists: tuple[str, ...]) -> str:
    """These lists in words."""
    return "; ".join(lists) or "none"


def _words(cache: LastLevel) -> str:
    size = "an unknown size" if cache.bytes is None else f"{cache.bytes / 2**20:g} MiB"
    return f"{size} in {cache.ways or 'an unknown number of'} ways around CPUs {cache.cpus}"
