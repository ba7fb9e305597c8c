"""What a launch is, exactly: everything that defines a measurement and nothing else, as canonical JSON."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from castmates.study.budget_keys import Limits
from castmates.study.cache import Cache
from castmates.study.frozen import Frozen
from castmates.study.machine_keys import NodeFacts
from castmates.study.mix_keys import Kind
from castmates.study.model import ControlKind, Prepare
from castmates.study.modelled import MachineModel, WorkloadModel
from castmates.study.progress_keys import Way
from castmates.study.remarks import Remark

# What a trace launch records, as its launch defines it.

STACKS, LATENCIES = SAMPLED = ("stacks", "latencies")  # families, each with a recorder that samples it
MOST_SAMPLED = 500 << 20  # bytes of the file of each


class Tracing(Frozen):
    """What is recorded in a trace launch."""

    seconds: float  # of each recording
    rounds: int  # recordings of each scene
    steps: int  # of the lead that its framework profiles within each
    events: tuple[str, ...]  # families
    members: tuple[str, ...] = ()  # workloads whose processes are recorded; none: all
    counts: tuple[tuple[str, int], ...] = ()  # events that are sampled, and once in how many
    buffer: int = 0  # bytes for the kernel's events of each CPU; 0: as large as the user may have
    most: int = 2 * 10**9  # bytes of recorded events at which a recording ends
    keep: int = 0  # bytes of raw files that are kept


# Raise it when the way of measuring changes, or the default of a record: what was measured before is measured again.
PROTOCOL = 1

Role = Literal["lead", "antagonist"]
SceneKind = Literal["alone", "alone-again", "placebo", "corun", "antagonist-alone"]
UNMANAGED = "unmanaged"
REST = "*"  # everybody on the machine who is no member


class Prepared(Frozen):
    """What a workload finds when it starts."""

    environment_key: str | None
    content: str
    inputs_key: str | None = None


class Member(Frozen):
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
    progress: Way
    unit: str
    variables: dict[str, str]
    ready_within: float
    model: WorkloadModel | None = None  # how it behaves, where nothing is started
    inputs: str | None = None  # the data set that it reads
    inputs_key: str | None = None  # where that is built
    calls: str = ""  # of what, with `progress: calls`
    step_line: str = ""  # with `progress: output`
    ready_line: str = ""
    package: str | None = None  # that has its program
    phases: bool = False  # it reports the phases of its steps
    requests: bool = False  # it is an open-loop service, and records its requests
    frozen_between_steps: bool = False  # it queues work on a device, and stands between two steps when it is asked to
    attach: str = ""  # the framework whose steps are followed from outside
    step_function: str = ""  # whose calls are these steps; Keras' train function where it is ""

    @property
    def goes_on(self) -> bool:
        """Whether a program of its kind runs until it is asked to end."""
        return bool(self.attach) or self.requests or self.frozen_between_steps


class Share(Frozen):
    """What a member may take of caches, memory bandwidth and CPU time, and its prefetchers; None is all there is."""

    member: str  # or REST
    ways: int | None = None  # way mask; of data only, where `code` is given
    code: int | None = None  # way mask of code, on machines that keep code and data apart
    bandwidth: int | None = None  # in the machine's unit
    quota: int | None = None  # per cent of the time of its CPUs
    period: int | None = None  # milliseconds after which that time is renewed
    # What the processor held, where it was not the same on all of the member's caches: cache and ways, code's too.
    by_cache: tuple[tuple[int, int], ...] = ()
    prefetchers: Literal["off"] | None = None  # of the cores of all members

    @property
    def of_cache(self) -> bool:
        """Whether the cache's driver has to give it out."""
        return any(each is not None for each in (self.ways, self.code, self.bandwidth))


class Partition(Frozen):
    """What everybody in a mix may take; who is not named has everything."""

    name: str  # "split-4", for display; UNMANAGED has no shares
    shares: tuple[Share, ...]
    curve: str = ""  # its name without the lead's ways

    @property
    def of_cache(self) -> bool:
        """Whether the cache's driver has to give some of it out."""
        return any(share.of_cache for share in self.shares)


class Mix(Frozen):
    """A lead, its antagonists, the CPUs each one sits on (inside the members' names), and partitions to try on them.

    The partitions of one sweep are a separate mix beside the unmanaged one, so that a sweep that is added later
    measures nothing again. Without antagonists it is the lead alone under the partitions.
    """

    name: str  # "dlrm-train+stream"
    identity: str  # fingerprint of all members and partitions: equal identity, same measurement
    lead: str  # member names
    antagonists: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()  # none: unmanaged
    apart: tuple[str, ...] = ()  # antagonists in another cache
    machine: str = ""  # the class of its nodes, which its name and those of its members show; "" without classes

    @property
    def is_compared(self) -> bool:
        """Whether it has a scene besides that of its lead alone, which decides how long it is measured."""
        return bool(self.antagonists or self.partitions)


class Control(Frozen):
    """A mix whose outcome is known beforehand."""

    kind: ControlKind
    mix: Mix


class Mitigation(Frozen):
    """One thing that is tried against the loss of a mix."""

    mix: str  # the name of the mix of which nothing is changed
    kind: Kind
    arms: tuple[tuple[str, str], ...]  # mix and partition: of several the one that gives back most is chosen
    reason: str = ""  # why it cannot be tried here
    machine: str = ""  # of the mix


class LeftOut(Frozen):
    """A mix that the study asks for, and for which the machine has no place."""

    mix: str  # its name
    lead: str  # the workload
    antagonists: tuple[str, ...]  # the workloads
    reason: str  # what it needs, and what there is
    machine: str = ""  # the class of nodes that has none


class Prediction(Frozen):
    """A grid of pairs of which a part is measured, and the rest predicted; all names are those of workloads."""

    leads: tuple[str, ...]
    antagonists: tuple[str, ...]
    bubbles: tuple[str, ...] = ()  # dials beside which every lead is measured
    reporters: tuple[str, ...] = ()  # leads that are measured beside every antagonist
    profiles: int = 0  # mixes with a bubble or a reporter
    pairs: int = 0  # further mixes that the model is fitted to
    check: tuple[tuple[str, str], ...] = ()  # lead and antagonist, measured and kept from the fit
    to_check: int = 0  # how many of these the study asks for; there may not be as many


class Scene(Frozen):
    """What holds during a window."""

    name: str
    kind: SceneKind
    mix: str  # "" where the scene serves several mixes
    active: tuple[str, ...]  # members that run; all others are frozen
    placebos: tuple[int, ...]  # CPUs that run the placebo's spin loop instead of an antagonist
    partition: str
    shares: tuple[Share, ...] = ()  # what the partition gives; none where it is UNMANAGED


class Counting(Frozen):
    """What is counted in the windows of a launch."""

    events: tuple[tuple[str, tuple[str, ...]], ...] = ()  # sets: a name, and its events in perf's words
    topdown: int = 0  # level; 0 is off
    how: Literal["auto", "cgroup", "thread", "cpu"] = "auto"
    series: float = 10.0  # readings in a second between a window's edges; 0 for none
    profile: int = 0  # steps of the lead that are profiled in each scene after the rounds
    cost_pairs: int = 1  # pairs of windows, with and without each of them, that show what they cost
    ranges: int = 0  # rows at most that a member's annotations have; 0 for none


class Profiling(Frozen):
    """What is traced in a profile launch."""

    steps: int  # of the lead in each trace
    times: int  # traces of each scene
    scenes: tuple[SceneKind, ...]  # kinds of scenes
    keep: int  # bytes of traces that are kept
    ranges: int = 0  # rows at most that the lead's annotations have; 0 for none
    primitives: bool = False  # oneDNN logs what it executes
    first_epoch: bool = False  # each trace begins with the first record, from storage or from the page cache


class Design(Frozen):
    """How long and how often a launch measures, and when it rejects a window."""

    rounds: int
    spare_rounds: int
    window: float
    longest_window: float
    settle: float
    longest_settle: float
    steps: int
    limits: Limits
    prepare: Prepare = Prepare()
    monitor: float = 10.0  # readings of the cache in a second; 0 for none
    driver: str = "resctrl"  # what shares the cache out
    beyond_site: bool = False  # members leave the class of service in which they are found
    model: MachineModel | None = None  # the machine that is modelled, where nothing is measured
    counters: Counting = Counting(cost_pairs=0)
    slice: float | None = None  # seconds that a scene runs at a time; None: as long as suits the lead
    decided: bool = False  # the cohort's first launches decide on `rounds`; 0 before they did
    adaptive: bool = False  # looks on the way decide which mixes a launch measures
    profiling: Profiling | None = None  # of a profile launch, which measures no rounds
    tracing: Tracing | None = None  # of a trace launch, which measures none either


class Cohort(Frozen):
    """The mixes of one lead that share a launch."""

    id: str
    protocol: int
    native_key: str  # where the placebo, and the keeper of commands without a heartbeat, are built
    members: tuple[Member, ...]  # the lead first
    mixes: tuple[Mix, ...]
    scenes: tuple[Scene, ...]
    machine: str = ""  # the class of nodes that it is measured on; "" in a study without classes

    @property
    def lead(self) -> Member:
        """The member whose loss is studied."""
        return self.members[0]


class Launch(Frozen):
    """One launch of a cohort."""

    study: str
    cohort: Cohort
    number: int
    seed: int
    design: Design
    skipped: tuple[str, ...] = ()  # identities of mixes that looks left out of this launch: a decision, as of rounds

    @property
    def path(self) -> str:
        """Its place below results/<study>/launches."""
        return f"{self.cohort.id}/{self.number}"


def cohorts_of(launches: Iterable[Launch]) -> list[Cohort]:
    """Every cohort that has one of these launches, in their order."""
    return list({launch.cohort.id: launch.cohort for launch in launches}.values())


class NodeClass(Frozen):
    """A class of nodes: what it was planned from, and what a node must have to be of it."""

    name: str
    capture: str  # the file; "" where the machine is modelled
    facts: NodeFacts | None  # None where the machine is modelled
    cache: Cache | None = None  # that the partitions of its mixes were made for
    memory: dict[str, int] = Field(default_factory=dict)  # as in a plan, whose own is empty then


class DrawnMix(Frozen):
    """A mix that was drawn at random, wherever its members sit."""

    lead: str  # workloads
    antagonists: tuple[str, ...]


class Drawn(Frozen):
    """The list of random mixes: it is appended to, and never drawn again."""

    seed: int
    mixes: tuple[DrawnMix, ...]  # in the order in which they were drawn


class MixSet(Frozen):
    """Mixes that one key of a study asks for together, and that have a mean."""

    name: str  # random, pairs, groups
    mixes: tuple[str, ...]  # their names, without a class of nodes
    leads: tuple[str, ...] = ()  # of random mixes: from which leads and antagonists are drawn
    pool: tuple[str, ...] = ()


class Variant(Frozen):
    """A lead in other settings, which is one more lead."""

    lead: str  # the workload as it is
    name: str  # of the variant
    workload: str  # the lead that it is: LEAD.NAME
    work: float = 1.0  # how many steps of the lead one of its steps is worth
    words: str = ""  # what it changes


class Plan(Frozen):
    """All launches of a study, those measured already included, and those that it may turn out not to need."""

    study: str
    titles: dict[str, str]  # workload -> what people call it
    mixes: tuple[Mix, ...]  # the active ones, in the study's order
    controls: tuple[Control, ...]  # measured like mixes, and no result of the study
    launches: tuple[Launch, ...]
    looks: tuple[
        tuple[str, ...], ...
    ] = ()  # paths of the launches that each look adds; none without a wanted precision
    mitigations: tuple[Mitigation, ...] = ()  # what is tried against the losses of some mixes
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[Remark, ...] = ()  # what the study asks of the cache and does not get, or gets differently
    cache: Cache | None = None  # that the partitions were made for; None where there are none
    cautions: tuple[str, ...] = ()  # where an antagonist cannot do on this machine what it is named for, or is too far
    memory: dict[str, int] = Field(default_factory=dict)  # workload -> bytes that it takes, where they matter
    machines: tuple[NodeClass, ...] = ()  # none where a study has no classes: it is planned for the machine at hand
    ignored_hosts: tuple[str, ...] = ()  # whose launches are kept and not analysed
    drawn: Drawn | None = None  # all random mixes that were ever drawn; the study may use only the first of them
    sets: tuple[MixSet, ...] = ()
    prediction: Prediction | None = None
    latency_limits: dict[str, float] = Field(default_factory=dict)  # of requests to services: ms, by quantile
    later: tuple[str, ...] = ()  # identities of mixes that an adaptive study measures only where a look asks for them
    profiles: tuple[Launch, ...] = ()  # in which leads are traced; they are none of `launches`, and measure no rates
    variants: tuple[Variant, ...] = ()
    traces: tuple[Launch, ...] = ()  # launches in which everything is recorded on one clock; they measure nothing

    @property
    def machine(self) -> str:
        """The class of nodes that all of it is for; "" without classes, and where there are several."""
        return self.machines[0].name if len(self.machines) == 1 else ""

    @property
    def cohorts(self) -> list[Cohort]:
        """Every cohort that has a launch, in the order of the launches."""
        return cohorts_of(self.launches)

    @property
    def wanted(self) -> dict[str, Mix]:
        """Every mix that is to be measured, a result or a control, by identity."""
        return {mix.identity: mix for mix in (*self.mixes, *(control.mix for control in self.controls))}
