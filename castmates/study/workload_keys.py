"""The key `variants` of a study: a lead in other settings, such as another precision; each is one more lead."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from castmates.study.modelled import WorkloadModel
from castmates.study.written import Amount, Name, Option, OptionName, VariableName, Written

BASE = "base"  # the lead as it is


class VariantKeys(Written):
    """A lead in another setting: what it changes of its workload."""

    name: Name = Field(description="what it is called: it is the lead LEAD.NAME")
    title: str = Field(
        default="", max_length=300, description="what people call it; the lead's title and its name if left out"
    )
    options: dict[OptionName, Option] = Field(
        default_factory=dict,
        description="options of the command, in place of the lead's; false leaves one out",
    )
    variables: dict[VariableName, str] = Field(
        default_factory=dict, description="environment variables, in addition to the lead's"
    )
    cores: int | None = Field(default=None, ge=1, description="how many CPUs it is given; the lead's if left out")
    memory: Amount | None = Field(default=None, description="what it takes of the memory; the lead's if left out")
    model: WorkloadModel | None = Field(
        default=None, description="how it behaves in a study whose platform is modelled; as the lead if left out"
    )
    work: float | None = Field(
        default=None,
        gt=0,
        description="how many of the lead's steps one of its steps is worth: 4 where its batch is four times as large. "
        "Speeds are compared by it; 1 if left out",
    )

    @field_validator("name")
    @classmethod
    def _not_the_base(cls, name: str) -> str:
        if name == BASE:
            raise ValueError(f"another name: '{BASE}' is the lead as it is")
        return name

    @property
    def changes(self) -> dict[str, Any]:
        """What of the workload has another value, apart from options and variables."""
        return {key: getattr(self, key) for key in ("cores", "memory", "model") if getattr(self, key) is not None}

    @property
    def in_words(self) -> str:
        """What it changes: precision int8, threads 2."""
        told = [f"{name} {_word(value)}" for name, value in self.options.items()]
        told += [f"{name}={value}" for name, value in self.variables.items()]
        told += [f"{self.cores} CPU{'s' if self.cores > 1 else ''}"] if self.cores else []
        told += ["another model of its rate"] if self.model else []
        return ", ".join(told) or "nothing but its name"


def _word(value: object) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


# The keys with which a catalogue file names an installed benchmark suite; workloads/suites finds what is in it.

Root = Annotated[str, Field(min_length=1, description="the folder of the installation")]
Benchmarks = Annotated[
    list[str], Field(default_factory=list, description="which of them; all that can be run if left out")
]
Cores = Annotated[int, Field(ge=1, description="how many CPUs, and threads, each of them is given")]
Memory = Annotated[Amount, Field(description="what each of them takes of the machine's memory, at most")]
Check = Annotated[
    Literal["first", "every", "never"],
    Field(description="which runs have their results compared with the suite's; comparing takes CPU time too"),
]
Progress = Annotated[
    Literal["runs", "barriers", "instructions"],
    Field(
        description="what is a step: a whole run; where the suite was patched for BenchCast, each iteration of a "
        "region of interest (castmates help benchcast); or an instruction, as the processor counts them"
    ),
]
FITS = "a run must fit a window (budget.longest_window) to be measured well"


class Spec2017(Written):
    """SPEC CPU2017, installed, built, and its run directories set up."""

    root: Root
    size: Literal["test", "train", "refrate", "refspeed"] = Field(default="test", description=f"the input; {FITS}")
    tune: Literal["base", "peak"] = Field(default="base", description="which build")
    label: str | None = Field(default=None, description="label of the build, where there are several")
    benchmarks: Benchmarks
    progress: Progress = "runs"
    check: Check = "first"
    cores: Cores = 1
    memory: Memory = "2 GB"


class Parsec(Written):
    """PARSEC 3, built with parsecmgmt, its inputs unpacked."""

    root: Root
    size: Literal["test", "simdev", "simsmall", "simmedium", "simlarge", "native"] = Field(
        default="test", description=f"the input; {FITS}"
    )
    build: str | None = Field(default=None, description="a folder of inst, such as amd64-linux.gcc")
    benchmarks: Benchmarks
    progress: Progress = "runs"
    check: Check = "first"
    cores: Cores = 1
    memory: Memory = "2 GB"


class Npb(Written):
    """NAS Parallel Benchmarks, built."""

    root: Root
    size: Literal["S", "W", "A", "B", "C", "D", "E", "F"] = Field(default="S", description=f"the class; {FITS}")
    benchmarks: Benchmarks
    progress: Progress = "runs"
    cores: Cores = 1
    memory: Memory = "2 GB"


SuiteKeys = Spec2017 | Parsec | Npb
