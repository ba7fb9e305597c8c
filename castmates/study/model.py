"""What a user may write: the study file and the catalogue of workloads."""

import shlex
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from castmates.study.budget_keys import Budget, Limits
from castmates.study.counter_keys import CounterKeys
from castmates.study.finding_rules import RuleFiles
from castmates.study.machine_keys import Machine, OneClass, refusal
from castmates.study.machine_keys import Prepare as Prepare
from castmates.study.mix_keys import ArrangedMix, Mitigated, MixesKey, MixSets
from castmates.study.mix_keys import MixRule as MixRule
from castmates.study.modelled import MachineModel, WorkloadModel
from castmates.study.partition_keys import CacheKeys, RecommendKeys
from castmates.study.placement_keys import PlaceKeys, PredictKeys
from castmates.study.progress_keys import Calls, Progress, Way
from castmates.study.tracing_keys import ProfileKeys, TraceKeys, recordable, traceable
from castmates.study.workload_keys import Npb, Parsec, Spec2017, VariantKeys
from castmates.study.written import (
    Amount,
    Line,
    Name,
    Option,
    OptionName,
    Package,
    PartialPercentage,
    VariableName,
    Written,
    bytes_of,
)

ControlKind = Literal["positive", "negative"]
CpuList = Annotated[str, StringConstraints(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")]


class Workload(Written):
    """A program in the catalogue: how to prepare it, start it, and read its progress."""

    title: str = Field(default="", max_length=300, description="what people call it; the name if left out")
    like: Name | None = Field(default=None, description="another workload whose keys hold where this one has none")
    command: str | list[str] = Field(
        default="",
        description="the command line, split as a shell would (but no shell runs it), or a list of words",
    )
    options: dict[OptionName, Option] = Field(
        default_factory=dict,
        description="appended to the command as `--NAME VALUE`; true gives the flag alone, false leaves it out; "
        "those of 'like' hold where this one has none of that name",
    )
    stresses: str = Field(default="", description="one phrase: what it does to the machine, such as memory bandwidth")
    environment: Name | None = Field(
        default=None,
        description="what is built for it and comes first on its PATH: 'native' or the NAME of envs/NAME.lock",
    )
    package: Package | None = Field(default=None, description="the Debian or Ubuntu package with its program")
    inputs: Name | None = Field(
        default=None, description="the data set that is made before it runs; {inputs} in the command is its folder"
    )
    progress: Progress = "runs"
    step_line: Line = Field(
        default="",
        description="with 'progress: output': a line that this regular expression matches is a step; its first "
        "group, if there is one, is the number of units done so far",
    )
    ready_line: Line = Field(
        default="",
        description="with 'progress: output': ready at the first line that it matches; at the first step if left out",
    )
    unit: str = Field(
        default="", description="what one unit of progress is called; 'run', 'step' or 'iteration' if left out"
    )
    phases: bool = Field(
        default=False,
        description="it reports the phases of its steps (castmates help phases); a Model Garden job then marks "
        "them by itself",
    )
    requests: bool = Field(
        default=False,
        description="it is an open-loop service, which records its requests (castmates help services): it is "
        "judged by the "
        "99th percentile of their latency, and not by its rate",
    )
    frozen_between_steps: bool = Field(
        default=False,
        description="it queues work on a device, so it is frozen only when it stands between two steps, with nothing "
        "queued (castmates help gpu)",
    )
    cores: int = Field(default=1, ge=1, description="how many CPUs it is given")
    saturate: bool = Field(
        default=False,
        description="it is given as many CPUs as saturate the memory of a package, instead of 'cores'; "
        "`castmates doctor --memory-peak` finds out how many these are",
    )
    variables: dict[VariableName, str] = Field(
        default_factory=dict, description="environment variables it is started with"
    )
    model: WorkloadModel | None = Field(
        default=None, description="how it behaves in a study whose platform is modelled, where nothing is started"
    )
    ready_within: float = Field(default=180.0, gt=0, description="seconds it may take from its start to 'ready'")
    memory: Amount = Field(
        default="1 GB", description="what it takes of the machine's memory, such as 1.9 GB or 512 MiB"
    )
    tags: list[Name] = Field(
        default_factory=list,
        description="words by which a study names all workloads that have them, such as kernels (mixes.random.from)",
    )
    attach: Literal["tensorflow", "torch", "jax"] | None = Field(
        default=None,
        description="the framework of a Python program that is not changed for Castmates: its training steps are "
        "followed from outside, and traced where the study asks for that (castmates help profile-a-program)",
    )
    step_function: str = Field(
        default="",
        description="with 'attach': the compiled function (tf.function, jax.jit) of which each call is a step; if left "
        "out, a step is a call of Keras' train function, of an optimizer's step (PyTorch), or of the function that "
        "takes most of the time (JAX)",
    )

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
        """The command line, split, with its options."""
        command = shlex.split(self.command) if isinstance(self.command, str) else self.command
        options = [(f"--{name}", value) for name, value in self.options.items() if value is not False]
        return [
            *command,
            *(word for flag, value in options for word in (flag, str(value))[: 1 if value is True else 2]),
        ]

    @property
    def way(self) -> Way:
        """How its progress is read."""
        return "calls" if isinstance(self.progress, Calls) else self.progress

    @property
    def goes_on(self) -> bool:
        """Whether a program of its kind runs until it is asked to end: a service, one that Keras' fit repeats."""
        return bool(self.attach) or self.requests or self.frozen_between_steps

    @property
    def calls(self) -> str:
        """What is called; "" where its progress is read otherwise."""
        return self.progress.calls if isinstance(self.progress, Calls) else ""

    @property
    def memory_bytes(self) -> int:
        """What it takes of the machine's memory."""
        return bytes_of(self.memory)


class Catalogue(Written):
    """One file of the catalogue."""

    workloads: dict[Name, Workload] = Field(default_factory=dict, description="the workloads of this file, by name")
    spec2017: Spec2017 | None = Field(default=None, description="an installation of SPEC CPU2017")
    parsec: Parsec | None = Field(default=None, description="an installation of PARSEC 3")
    suites: dict[Name, dict[str, Any]] = Field(
        default_factory=dict,
        description="installations of suites that plug-ins know, by the suite's name (castmates help plugins)",
    )
    npb: Npb | None = Field(default=None, description="an installation of the NAS Parallel Benchmarks")


class Placement(Written):
    """Which CPUs, and which memory, the members of a mix get; docs/placement.md has what holds without a rule."""

    lead: CpuList | None = Field(default=None, description="CPUs of the lead, such as 0-3, taken in this order")
    antagonists: CpuList | None = Field(default=None, description="CPUs of the antagonists, handed out in order")
    llc: Literal["shared", "separate"] | None = Field(
        default=None,
        description="shared: the whole mix has one last-level cache; separate: no antagonist has the lead's",
    )
    smt: Literal["avoid", "share", "idle-sibling"] | None = Field(
        default=None,
        description="avoid: one CPU of each core; share: antagonists on siblings of the lead's CPUs; idle-sibling: "
        "siblings of every CPU are ours, and idle",
    )
    numa: Literal["local", "remote"] | None = Field(
        default=None, description="every member's memory: on the nodes of its CPUs, or on the nearest other node"
    )
    reserve: int | None = Field(
        default=None,
        ge=0,
        description="cores kept free of members, for the runner; 1 if left out and there are more cores than members",
    )


class Controls(Written):
    """Mixes whose outcome is known beforehand: they show whether the study can be trusted, and are not results."""

    positive: MixRule | None = Field(
        default=MixRule(lead="taxed", antagonists=["tax"]),
        description="a mix that must lose more than the margin; without one, no sensitivity is shown",
    )
    negative: MixRule | None = Field(
        default=MixRule(lead="taxed", antagonists=["compute"]),
        description="a mix that must show none",
    )
    reuse: bool = Field(
        default=False,
        description="whether launches of controls count that other studies here measured since the machine started; "
        "`castmates measure` takes them. Controls then have windows of a fixed length, and the first launch of each "
        "is measured by each study (castmates help measure)",
    )


class Attribution(Written):
    """How a loss is divided into its parts."""

    isolated: Name | None = Field(
        default=None,
        description="the partition of 'cache.sweeps' under which lead and antagonists count as isolated; if left out, "
        "the one that gives back most is chosen, on other launches than those that estimate it",
    )


class Study(Written):
    """One YAML file: what to measure and how well."""

    name: Name = Field(description="its results go to results/NAME")
    title: str = Field(default="", max_length=300, description="the report's heading; the name if left out")
    question: str = Field(
        default="", max_length=1000, description="one sentence for the report: what this study wants to know"
    )
    leads: list[Name] = Field(
        default_factory=list, description="each is put beside each of the antagonists, or measured alone"
    )
    antagonists: list[Name] = Field(default_factory=list, description="each is put beside each of the leads")
    mixes: MixesKey = Field(
        default_factory=list,
        description="further mixes, also of several antagonists at once: a list, or the keys random, pairs, groups "
        "and list",
    )
    mitigations: list[Mitigated] = Field(
        default_factory=list, description="mixes, and what is tried against their losses (castmates help partitions)"
    )
    workloads: dict[Name, Workload] = Field(default_factory=dict, description="workloads of this study alone")
    catalogue: str | None = Field(
        default=None,
        description="the folder of catalogue files, from the project's root; if left out, the catalogue that comes "
        "with Castmates, and over it the folder 'workloads' beside the study, where there is one",
    )
    placement: Placement = Placement()
    budget: Budget = Budget()
    limits: Limits = Limits()
    cache: CacheKeys = CacheKeys()
    attribution: Attribution = Attribution()
    recommend: RecommendKeys = RecommendKeys()
    counters: CounterKeys = CounterKeys()
    machine: Machine = Machine()
    platform: Literal["measured", "modelled"] = Field(
        default="measured", description="modelled: nothing is started, rates come from a model of a machine"
    )
    model: MachineModel = Field(default=MachineModel(), description="the machine of a study whose platform is modelled")
    machines: dict[Name, OneClass] = Field(
        default_factory=dict,
        description="the classes of nodes that every mix is measured on, each with the file that `castmates doctor "
        "--capture` wrote on one of its nodes; if left out, the machine at hand (castmates help methodology)",
    )
    leave_out: list[str] = Field(
        default_factory=list,
        description="host names of nodes whose launches are kept and not analysed, as one that fails its controls",
    )
    controls: Controls | None = Field(
        default=Controls(), description="the positive and the negative control; null measures neither"
    )
    margin: PartialPercentage = Field(
        default=0.02,
        description="a change smaller than this is no loss, such as 2%",
    )
    seed: int = Field(default=1, ge=0, description="of every random order in the study")
    place: PlaceKeys = PlaceKeys()
    profile: ProfileKeys | None = Field(
        default=None,
        description="further launches, in which operations of the leads are traced (castmates help operations)",
    )
    predict: PredictKeys | None = Field(
        default=None,
        description="a grid of pairs of which a part is measured, and the rest predicted (castmates help prediction)",
    )
    variants: dict[Name, list[VariantKeys]] = Field(
        default_factory=dict,
        description="by lead: further leads, the same program in other settings, each beside everything that the lead "
        "is beside (castmates help variants)",
    )
    findings: RuleFiles = ()
    trace: TraceKeys | None = Field(
        default=None,
        description="what trace launches record on one clock, and of which mixes each sweep has one (castmates "
        "help tracing)",
    )

    @field_validator("budget")
    @classmethod
    def _with_everyones_loss(cls, budget: Budget, info: ValidationInfo) -> Budget:
        if not budget.antagonists_alone and info.data.get("mitigations"):
            raise ValueError("no 'antagonists_alone: false' beside 'mitigations': their price is what antagonists lose")
        if not budget.placebo and info.data.get("mitigations"):
            raise ValueError("no 'placebo: false' beside 'mitigations', whose partitions are compared with one")
        return budget

    @field_validator("cache")
    @classmethod
    def _beside_placebos(cls, cache: CacheKeys, info: ValidationInfo) -> CacheKeys:
        budget = info.data.get("budget")
        if cache.sweeps and budget is not None and not budget.placebo:
            raise ValueError(
                "no 'cache.sweeps' beside 'placebo: false': the cost of a smaller share is measured beside one"
            )
        return cache

    @field_validator("attribution")
    @classmethod
    def _of_a_partition(cls, attribution: Attribution, info: ValidationInfo) -> Attribution:
        cache = info.data.get("cache")
        if attribution.isolated is not None and cache is not None and not cache.sweeps:
            raise ValueError("no partition by name in a study without 'cache.sweeps', which would make it")
        return attribution

    @field_validator("machine")
    @classmethod
    def _one_who_switches(cls, machine: Machine, info: ValidationInfo) -> Machine:
        cache = info.data.get("cache")
        if machine.prepare.prefetchers and cache is not None and "off" in cache.prefetchers:
            raise ValueError("no 'prepare.prefetchers' beside 'cache.prefetchers', which switches them by scene")
        return machine

    @field_validator("profile")
    @classmethod
    def _can_be_traced(cls, profile: ProfileKeys | None, info: ValidationInfo) -> ProfileKeys | None:
        return None if profile is None else traceable(profile, info.data)

    @field_validator("trace")
    @classmethod
    def _can_be_recorded(cls, trace: TraceKeys | None, info: ValidationInfo) -> TraceKeys | None:
        return None if trace is None else recordable(trace, info.data)

    @field_validator("machines")
    @classmethod
    def _all_of_one_kind(cls, machines: dict[str, OneClass], info: ValidationInfo) -> dict[str, OneClass]:
        if why := refusal(machines, info.data.get("platform")):
            raise ValueError(why)
        return machines

    @property
    def listed_mixes(self) -> Sequence[ArrangedMix]:
        """The mixes under `mixes` that are written out; once a project is read, also those that were made."""
        return self.mixes.listed if isinstance(self.mixes, MixSets) else self.mixes

    @property
    def mix_rules(self) -> list[tuple[str, MixRule]]:
        """Every mix that is written out, with the place of its key."""
        places: dict[str, Sequence[MixRule]] = {"mixes": self.listed_mixes, "mitigations": self.mitigations}
        return [
            (f"{key}.{number}", rule) for key, rules in places.items() for number, rule in enumerate(rules, start=1)
        ]

    @property
    def asks_alone(self) -> bool:
        """Whether something is asked of each lead alone: its steps, or what its ways are worth."""
        return self.profile is not None or any(sweep.lead_ways for sweep in self.cache.sweeps)

    @property
    def control_rules(self) -> list[tuple[ControlKind, MixRule]]:
        """The controls that are wanted."""
        controls = self.controls or Controls(positive=None, negative=None)
        kinds: list[tuple[ControlKind, MixRule | None]] = [
            ("positive", controls.positive),
            ("negative", controls.negative),
        ]
        return [(kind, rule) for kind, rule in kinds if rule is not None]
